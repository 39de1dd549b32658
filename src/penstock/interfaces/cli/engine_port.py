"""What the command line needs of an engine, and no more.

A statement is read by the command line, planned by the engine against its own catalog, and then run: so the command
line can choose how to show a query before it starts, and every error has its place in the user's whole script.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.changes import Change, Job
    from penstock.interfaces.result import Result
    from penstock.options import ChangeForm
    from penstock.plan.script import StatementReport
    from penstock.plan.session import Session
    from penstock.sql.redact import Source
    from penstock.sql.script import Parsed


class OpenChanges(Protocol):
    """The changes of a query that nobody keeps."""

    columns: tuple[str, ...]

    def drain(self, timeout: float) -> None:
        """Read what is there now and close every window; nothing comes after that."""

    def changes(self, since: int | None, timeout: float | None) -> Iterator[Change]:
        """What there is as inserts, or the changes behind one; it ends after so many seconds without one."""

    def close(self) -> None:
        """End the query, and leave nothing behind."""


class EnginePort(Protocol):
    """An open engine. `jobs` and `settle` may be called from another thread than the statement that runs."""

    @property
    def session(self) -> Session:
        """The catalog, settings and jobs as they are now."""

    def plan_statement(self, parsed: Parsed, source: Source) -> StatementReport:
        """What a statement would do now. An error is in the report, not raised; spans count in `source`."""

    def run_statement(self, report: StatementReport) -> Result | None:
        """Do it, and give its answer if it has one. A query over streams is UNBOUNDED_QUERY here."""

    def take_notices(self) -> Sequence[str]:
        """What to tell the user since the last call, beyond the notices of the reports."""

    def select_once(self, report: StatementReport) -> Result:
        """The answer of a query over streams for the rows that are there now: all windows closed, nothing kept."""

    def stream_statement(self, report: StatementReport) -> AsyncIterator[pa.RecordBatch]:
        """The rows of a query over streams as they come; closing the iterator stops its job."""

    def subscribe(
        self,
        name: str,
        since: int | None = None,
        timeout: float | None = None,
        *,
        changes: ChangeForm | None = None,
    ) -> Iterator[Change]:
        """The changes of a view, in one of the forms; it ends after so many seconds without one."""

    def newest_change(self, view: str) -> int:
        """The number of the last change of a view, 0 where it had none."""

    def subscribe_query(self, report: StatementReport) -> OpenChanges:
        """The changes of the query of a SUBSCRIBE, from now until they are closed."""

    def jobs(self) -> Sequence[Job]:
        """All jobs, with `reads` and `writes` filled in."""

    def set_aside(self) -> Mapping[str, int]:
        """How many rows the system tables keep that no answer counts: `late_rows` and `dead_letters`."""

    def settle(self, timeout: float = 60.0) -> None:
        """Until every running job has committed the input that is there."""

    def drain(self, name: str, timeout: float = 60.0) -> None:
        """Close all windows of a job and stop it."""

    def resume_job(self, name: str) -> None:
        """Start a job that is stopped or paused."""

    def close(self) -> None:
        """Stop everything at a batch boundary; nothing is lost."""


def connect(state: Path) -> EnginePort:
    """The engine of a state directory."""
    from penstock.interfaces.cli.database_engine import DatabaseEngine

    return DatabaseEngine(state)
