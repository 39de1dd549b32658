"""The engine of the command line: an open database, statement by statement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.interfaces.cli.script_run import PATIENT, SET_ASIDE
from penstock.interfaces.database import Database
from penstock.interfaces.installation import require
from penstock.interfaces.subscription import QueryChanges
from penstock.options import resolve_subscribe_options
from penstock.plan.script import report_statement
from penstock.runtime.engine import Engine
from penstock.runtime.job_control import resume
from penstock.sql.statements import SubscribeQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.changes import Change, Job
    from penstock.interfaces.result import Result
    from penstock.options import ChangeForm
    from penstock.plan.script import StatementReport
    from penstock.plan.session import Session
    from penstock.sql.redact import Source
    from penstock.sql.script import Parsed


class DatabaseEngine:
    """Fits a database to the port of the command line."""

    def __init__(self, state: Path) -> None:
        require("duckdb", "pyarrow")
        self._engine = Engine(state, {})
        self._database = Database(self._engine)
        self._told: frozenset[str] = frozenset()

    @property
    def session(self) -> Session:
        return self._engine.session

    def plan_statement(self, parsed: Parsed, source: Source) -> StatementReport:
        report, _ = report_statement(parsed, source, self._engine.session)
        return report

    def run_statement(self, report: StatementReport) -> Result | None:
        self._told = frozenset(report.notices)
        return self._database.run(report)

    def take_notices(self) -> Sequence[str]:
        # Those of the report were told when it was planned.
        return [notice for notice in self._database.notices() if notice not in self._told]

    def select_once(self, report: StatementReport) -> Result:
        return self._database.select_once(_text(report), timeout=PATIENT)

    def stream_statement(self, report: StatementReport) -> AsyncIterator[pa.RecordBatch]:
        return self._database.stream(_text(report))

    def subscribe(
        self,
        name: str,
        since: int | None = None,
        timeout: float | None = None,
        *,
        changes: ChangeForm | None = None,
    ) -> Iterator[Change]:
        return self._database.subscribe(name, since, timeout, changes=changes)

    def newest_change(self, view: str) -> int:
        return self._engine.home.views.last_seq(self._engine.view_definition(view).name.text)

    def subscribe_query(self, report: StatementReport) -> QueryChanges:
        assert isinstance(report.statement, SubscribeQuery)
        assert report.plan is not None
        options = resolve_subscribe_options(report.statement.options, None)
        found = QueryChanges(self._engine, report.plan, options.changes, snapshot=options.snapshot)
        found.start()
        return found

    def jobs(self) -> Sequence[Job]:
        return self._database.jobs()

    def set_aside(self) -> Mapping[str, int]:
        counts = {name: self._database.sql(f"SELECT COUNT(*) FROM penstock.{name}") for name in SET_ASIDE}
        return {name: int(found.rows()[0][0]) for name, found in counts.items()}

    def settle(self, timeout: float = 60.0) -> None:
        self._database.settle(timeout)

    def drain(self, name: str, timeout: float = 60.0) -> None:
        self._database.drain(name, timeout)

    def resume_job(self, name: str) -> None:
        resume(self._engine, name)

    def close(self) -> None:
        self._database.close()


def _text(report: StatementReport) -> str:
    return report.source.text[report.span.start : report.span.end]
