"""The DuckDB database of the view store: how it is opened, its transactions, and what its errors mean to us.

Nothing outside the database can be reached from it (no files, no extensions, no variables of the program), and its
configuration cannot be changed any more. Checkpoints happen when we ask for them, never inside a commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import CatalogError, InternalError, PenstockError, RuntimeFailure
from penstock.stores.private_files import PRIVATE_FILE, RESTORE, make_private_directory, shown, touch_private, unusable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FILE: Final = "views.duckdb"

_FULL: Final = re.compile(r"no space left|disk quota|disk full|max_temp_directory_size|file too large", re.IGNORECASE)
_LOCKED: Final = re.compile(r"could not set lock|conflicting lock|being used by another", re.IGNORECASE)
_FUNCTION: Final = re.compile(r"\[FUNCTION_FAILED\] (.*)")
_CALLED: Final = "while executing the UDF"
_CLOSED: Final = re.compile(r"connection (?:already |has been )?(?:closed|never)|closed database", re.IGNORECASE)


class ViewDatabase:
    """An open database. `writer` belongs to whoever holds the store's lock; readers get connections of their own."""

    def __init__(self, root: duckdb.DuckDBPyConnection, path: Path | None) -> None:
        self._root = root
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._guard = Lock()
        self.closed = False
        self.raised: list[PenstockError] = []  # in functions that DuckDB has called, of which it tells a text only
        self.path = path
        self.writer = root.cursor()
        self._protect()

    @classmethod
    def open(cls, state_path: Path | None, threads: int | None = None) -> ViewDatabase:
        """Open the database of a state directory, or one in memory."""
        import duckdb

        path = None if state_path is None else state_path / FILE
        if state_path is not None:
            make_private_directory(state_path)
        spill = "" if path is None else str(path.with_suffix(".spill"))
        settings: dict[str, Any] = {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "python_enable_replacements": "false",
            "checkpoint_threshold": "1TB",
            "temp_directory": spill,
        }
        if threads is not None:
            settings["threads"] = threads
        try:
            root = duckdb.connect(":memory:" if path is None else str(path), config=settings)
            root.execute("SET GLOBAL TimeZone = 'UTC'")
            root.execute("SET GLOBAL lock_configuration = true")
        except duckdb.Error as error:
            raise _cannot_open(path, error) from None
        return cls(root, path)

    @contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """One transaction of the writer: all of it is on disk when the block ends, or nothing is."""
        writer = self.writer
        with self.errors():
            try:
                # Where this fails a transaction may still have begun: DuckDB waits by a clock, which can be set back.
                writer.execute("BEGIN")
                yield writer
                writer.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    writer.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees the database as it is now, whatever is committed meanwhile, and cannot change it."""
        with self.errors():
            with self._guard:
                reader = self._idle.pop() if self._idle else self._root.cursor()
            try:
                reader.execute("BEGIN TRANSACTION READ ONLY")
                yield reader
                reader.execute("ROLLBACK")
            except BaseException:
                # Nobody knows what a failed query has left behind.
                reader.close()
                raise
            with self._guard:
                if self.closed:
                    reader.close()
                else:
                    self._idle.append(reader)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns DuckDB's errors into ours."""
        import duckdb

        if self.closed:
            raise RuntimeFailure("DATABASE_CLOSED", "the database has been closed", hint="connect again")
        try:
            yield
        except duckdb.Error as error:
            raise self._meaning(error) from error

    def checkpoint(self) -> bool:
        """Bring the log into the database file; False where it cannot be done just now."""
        import duckdb

        with self.errors():
            try:
                self.writer.execute("CHECKPOINT")
            except duckdb.TransactionException:
                return False
            self._protect()
        return True

    def log_bytes(self) -> int:
        """The size of the log that the next checkpoint clears away."""
        try:
            return 0 if self.path is None else _log(self.path).stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Close every connection. A reader that is in the middle of a query ends it first."""
        with self._guard:
            self.closed = True
            idle, self._idle = self._idle, []
        for connection in (*idle, self.writer, self._root):
            connection.close()

    def _protect(self) -> None:
        # DuckDB makes its files with the rights of any file, and takes no empty file for a new database. Before the
        # first row is written both are private; a log that is there it goes on with.
        if self.path is not None:
            try:
                # Not opened here: closing a file lets go of the lock that DuckDB holds on it in this process.
                self.path.chmod(PRIVATE_FILE)
                if _log(self.path).exists():
                    _log(self.path).chmod(PRIVATE_FILE)
                else:
                    touch_private(_log(self.path))
            except OSError as error:
                raise unusable(self.path, error) from None

    def _meaning(self, error: duckdb.Error) -> PenstockError:
        import duckdb

        text = first_line(error)
        if self.raised and _CALLED in str(error):
            raised = self.raised[0]
            self.raised.clear()
            return raised
        if (failed := _FUNCTION.search(str(error))) is not None:
            return RuntimeFailure("FUNCTION_FAILED", failed[1], hint="mend the function, then resume the job")
        if _FULL.search(str(error)):
            return _full(self.path)
        if isinstance(error, duckdb.ConnectionException) or _CLOSED.search(text):
            return RuntimeFailure("DATABASE_CLOSED", "the database has been closed", hint="connect again")
        data = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
        if isinstance(error, data) and "returned by a subquery" in text:
            return RuntimeFailure("DATA_ERROR", MANY_ROWS, hint=MANY_ROWS_HINT)
        if isinstance(error, data):
            told = _our_types(text)
            if (beyond := _BEYOND.search(text)) is not None:
                told = f"{beyond['value']} does not fit into {_our_types(beyond['type'])}"
                if beyond["from"] == _SUM:
                    return RuntimeFailure("DATA_ERROR", f"overflow, in a sum: {told}", hint=SUM_HINT)
            return RuntimeFailure("DATA_ERROR", told, hint=_mend(told))
        if isinstance(error, duckdb.OutOfMemoryException):
            return RuntimeFailure("STORAGE_FULL", f"the view store ran out of memory: {text}", hint="ask for less")
        if isinstance(error, duckdb.IOException | duckdb.FatalException | duckdb.SerializationException):
            return _damaged(self.path, text)
        return InternalError(f"the view store: {text}")


def first_line(error: Exception) -> str:
    """What DuckDB said, without the kind of error before it and the piece of text after it."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    line = re.sub(r"^[A-Za-z ]+ Error: ", "", line).rstrip("!. ")
    return line[:1].lower() + line[1:]


# A value that is out of the range of a type.
_BEYOND: Final = re.compile(
    r"type (?P<from>\w+) with value (?P<value>\S+) can't be cast because the value is out of range for the destination "
    r"type (?P<type>\w+)"
)
_SUM: Final = "INT128"  # only sums of whole numbers are so wide
SUM_HINT: Final = "sum a wider type: SUM(CAST(… AS DECIMAL(38, 0))); TRY_SUM gives NULL where a sum does not fit"
MANY_ROWS: Final = "a subquery that stands for one value has more than one row"
MANY_ROWS_HINT: Final = "IN compares with all of them; an aggregate such as MAX, or ORDER BY … LIMIT 1, makes it one"
# What DuckDB calls its whole numbers, in our words.
_WIDTHS: Final = {"8": "TINYINT", "16": "SMALLINT", "32": "INT", "64": "BIGINT", "128": "DECIMAL(38, 0)"}


def _our_types(text: str) -> str:
    return re.sub(r"\bINT(8|16|32|64|128)\b", lambda found: _WIDTHS[found[1]], text)


def _mend(text: str) -> str:
    """What to do about a value that an expression cannot take."""
    if "division by zero" in text:
        return "TRY_DIVIDE gives NULL for such rows; or leave them out with WHERE"
    if "overflow" in text or "sum(" in text:
        return "CAST to a wider type such as DECIMAL(38, 0) before computing; or leave such rows out with WHERE"
    return "TRY_CAST gives NULL for such values; or leave them out with WHERE"


def run_with(connection: duckdb.DuckDBPyConnection, text: str, name: str, table: pa.Table) -> None:
    """Run a statement in which an Arrow table stands under a name."""
    connection.register(name, table)
    # Where the statement fails, the transaction ends and takes the name with it.
    connection.execute(text)
    connection.unregister(name)


def fetched(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """The answer of a query as an Arrow table, in DuckDB's types."""
    return connection.sql(text).to_arrow_table()


def one_row(connection: duckdb.DuckDBPyConnection, text: str, given: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of an answer. All of it is fetched: a connection does nothing else before."""
    rows = connection.execute(text, list(given)).fetchall()
    return rows[0] if rows else None


def _log(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def _full(path: Path | None) -> RuntimeFailure:
    place = "memory" if path is None else shown(path)
    return RuntimeFailure(
        "STORAGE_FULL", f"{place} cannot grow: no space left", hint="make space on the disk, then resume the job"
    )


def _damaged(path: Path | None, reason: str) -> CatalogError:
    place = "the view store" if path is None else shown(path)
    return CatalogError("STATE_PATH_UNUSABLE", f"{place} is damaged or cannot be read: {reason}", hint=RESTORE)


def _cannot_open(path: Path | None, error: duckdb.Error) -> PenstockError:
    if _FULL.search(str(error)):
        return _full(path)
    if _LOCKED.search(str(error)):
        place = "memory" if path is None else shown(path)
        return RuntimeFailure(
            "ENGINE_ALREADY_RUNNING",
            f"another process works with {place}",
            hint="stop it first, or choose another state_path",
        )
    if path is not None and not os.access(path, os.R_OK | os.W_OK):
        return unusable(path, PermissionError(13, "permission denied"))
    return _damaged(path, first_line(error))
