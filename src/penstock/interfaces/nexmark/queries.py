"""The 24 queries as files: for each the statement in our SQL, and what it means in DuckDB's.

They stand in the package, so that `penstock nexmark verify` has them wherever it is installed; `benchmarks/nexmark` is
a link to them.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from penstock.frozen import frozen

COUNT: Final = 24
NAMES: Final = tuple(f"q{number}" for number in range(COUNT))
_FILES_PATH: Final = "path = 'q10'"


@frozen
class NexmarkQuery:
    """A query: statements of ours, of which the last starts a job of the query's name, and the oracle's answer."""

    name: str
    statements: str
    oracle: str

    @property
    def about(self) -> str:
        """What it asks, in a sentence."""
        return self.statements.splitlines()[0].removeprefix("-- ")

    @property
    def writes_files(self) -> bool:
        """Whether the answer is in files, not in a view."""
        return _FILES_PATH in self.statements

    @property
    def by_the_clock(self) -> bool:
        """Whether the answer depends on when the events were processed."""
        return "PROCTIME()" in self.statements

    def writing_to(self, path: str) -> str:
        """The statements, with the files in a directory of the caller's."""
        quoted = path.replace("'", "''")
        return self.statements.replace(_FILES_PATH, f"path = '{quoted}'")


def setup_script() -> str:
    """The stream of events and the three relations over it."""
    return _text("setup.sql")


def nexmark_query(name: str) -> NexmarkQuery:
    """A query by its name, such as `q5`."""
    return NexmarkQuery(name, _text(f"{name}.sql"), _text(f"{name}.oracle.sql"))


def _text(name: str) -> str:
    return (files("penstock.interfaces.nexmark") / "queries" / name).read_text(encoding="utf-8")
