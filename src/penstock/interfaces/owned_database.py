"""A database that belongs to an object over it: opened when it is first needed, closed with the object."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from threading import RLock

from penstock.interfaces.database import Database
from penstock.runtime.engine import Engine


class OwnedDatabase:
    """Opens its database at the first `get` and closes it once.

    Without a path everything is kept in a directory of its own, which is made when it is needed and removed at the end:
    what nobody has named, nobody can come back to.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, object]) -> None:
        self.path = None if path is None else path.absolute()
        self._settings = settings
        self._lock = RLock()
        self._database: Database | None = None
        self._end: weakref.finalize[..., OwnedDatabase] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an open database."""
        return self._end is not None and self._end.alive

    def get(self) -> Database:
        """The open database. After `close` it is a closed one, which refuses work by itself."""
        with self._lock:
            if self._database is None:
                kept = self.path
                self.path = kept or Path(tempfile.mkdtemp(prefix="penstock-"))
                self._database = Database(Engine(self.path, self._settings))
                # Also for a program that forgets to close.
                self._end = weakref.finalize(self, _close, self._database, self.path if kept is None else None)
            return self._database

    def close(self) -> None:
        """Close the database and remove what is not kept; more than once does no harm."""
        with self._lock:
            if self._end is not None:
                self._end()


def _close(database: Database, directory: Path | None) -> None:
    database.close()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
