"""An engine in memory for tests of the command line: DuckDB over lists of rows instead of Spark over files.

It keeps the promises of the port that the command line builds on: a job sees input only when it is settled or drained,
a windowed view shows nothing until its job is drained or its windows are over, and rows that come behind a drained
window are late. So a command that forgets to settle or drains too early prints another answer here, as it would there.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import JobFailed, RuntimeFailure
from penstock.interfaces.catalog_answers import catalog_answer
from penstock.interfaces.changes import Change, Job
from penstock.interfaces.cli.outcomes import jobs_of, rows_given
from penstock.interfaces.result import Result
from penstock.plan.script import StatementReport, report_statement
from penstock.plan.session import Session
from penstock.runtime.states import JobState
from penstock.sql import statements as s
from penstock.sql.redact import Source
from penstock.sql.script import Parsed
from penstock.stores.arrow_values import python_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.options import ChangeForm

TYPES = {"STRING": "VARCHAR", "TIMESTAMP": "TIMESTAMPTZ", "BINARY": "BLOB"}


@dataclass
class FakeJob:
    name: str
    sql: str
    reads: tuple[str, ...]
    writes: str
    windowed: bool
    appends: bool
    state: JobState = JobState.RUNNING
    taken: int = 0  # rows of its input that it has read
    batch: int = 0
    closed: int = 0  # rows that are in closed windows; later ones for the same windows are late


class FakeChanges:
    """The changes of a query over what there is."""

    def __init__(self, engine: FakeEngine, text: str) -> None:
        self._engine = engine
        self._text = text
        self.columns = tuple(engine._run(text).schema.names)

    def drain(self, timeout: float) -> None:
        self._engine.log.append("drain the query")

    def changes(self, since: int | None, timeout: float | None) -> Iterator[Change]:
        for seq, row in enumerate(self._engine._run(self._text).to_pylist(), start=1):
            if since is None or seq > since:
                self._engine.touched = time.monotonic()
                yield Change(seq, "insert", None, row, 0)

    def close(self) -> None:
        self._engine.log.append("close the query")


@dataclass
class FakeEngine:
    """One state directory. `close` and opening again keep what is in it, as on disk."""

    session: Session = field(default_factory=Session)
    topics: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    running: dict[str, FakeJob] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)  # job -> why it fails when it reads
    live: bool = False  # somebody follows: `arriving` comes row by row, and when nothing is left, Ctrl-C
    arriving: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    patience: float = 6.0  # a busy machine takes its time
    touched: float = 0.0  # when anything last came or went
    closed: bool = True
    notices: list[str] = field(default_factory=list)

    def open(self, state: Path) -> FakeEngine:
        assert self.closed, "opened twice"
        self.closed = False
        self.log.append(f"open {state}")
        return self

    def plan_statement(self, parsed: Parsed, source: Source) -> StatementReport:
        return report_statement(parsed, source, self.session)[0]

    def run_statement(self, report: StatementReport) -> Result | None:
        statement = report.statement
        if isinstance(statement, s.Select):
            assert report.plan is not None
            if report.plan.streams():
                raise RuntimeFailure("UNBOUNDED_QUERY", "the query reads a stream and would never end")
            return self._answer(report)
        answer = catalog_answer(report)
        if answer is not None:
            return Result(answer)
        if isinstance(statement, s.Show):
            import pyarrow as pa

            return Result(pa.table({"name": list(self.running), "state": [job.state for job in self.running.values()]}))
        assert report.analysis is not None
        self.session = report.analysis.session
        if isinstance(statement, s.CreateRelation):
            self.topics.setdefault(statement.name.text, [])
        elif isinstance(statement, s.Insert) and rows_given(statement) is not None:
            text = report.source.text[statement.query.span.start : statement.query.span.end]
            import duckdb

            self.topics[statement.target.text] += duckdb.connect().execute(text).fetchall()
        elif jobs_of(report):
            self._start(report)
        elif isinstance(statement, s.ControlJob):
            self.log.append(f"{statement.action.lower()} {statement.name}")
            self.running[statement.name.text].state = JobState.PAUSED
        return None

    def _start(self, report: StatementReport) -> None:
        (name,) = jobs_of(report)
        if name in self.running:
            return
        statement, plan = report.statement, report.plan
        assert isinstance(statement, s.CreateMaterializedView | s.Insert)
        assert plan is not None
        self.running[name] = FakeJob(
            name,
            report.source.text[statement.query.span.start : statement.query.span.end],
            tuple(scan.relation for scan in plan.scans()),
            statement.target.text if isinstance(statement, s.Insert) else name,
            windowed="TUMBLE" in report.source.text[report.span.start : report.span.end].upper(),
            appends=isinstance(statement, s.Insert),
        )

    def take_notices(self) -> Sequence[str]:
        taken, self.notices = self.notices, []
        return taken

    def select_once(self, report: StatementReport) -> Result:
        self.log.append("select once")
        return self._answer(report)

    async def stream_statement(self, report: StatementReport) -> AsyncIterator[pa.RecordBatch]:
        self.log.append("stream")
        shown = 0
        try:
            while True:
                table = self._answer(report).arrow()
                if table.num_rows > shown:
                    (batch,) = table.slice(shown).combine_chunks().to_batches()
                    shown = table.num_rows
                    self.touched = time.monotonic()
                    yield batch
                await asyncio.sleep(0.01)
        finally:
            self.log.append("stream ended")

    def newest_change(self, view: str) -> int:
        return int(self._view(self.running[view]).num_rows)

    def subscribe_query(self, report: StatementReport) -> FakeChanges:
        assert isinstance(report.statement, s.SubscribeQuery)
        span = report.statement.query.span
        self.log.append("subscribe to a query")
        return FakeChanges(self, report.source.text[span.start : span.end])

    def subscribe(
        self,
        name: str,
        since: int | None = None,
        timeout: float | None = None,
        *,
        changes: ChangeForm | None = None,
    ) -> Iterator[Change]:
        rows = self._view(self.running[name]).to_pylist()
        for seq, row in enumerate(rows, start=1):
            if since is None or seq > since:
                self.touched = time.monotonic()
                yield Change(seq, "upsert" if changes == "upsert" else "insert", None, row, self.running[name].batch)

    def jobs(self) -> Sequence[Job]:
        if self.live:
            self._time_passes()
        return [
            Job(
                job.name,
                job.state,
                batch_id=job.batch,
                input_rows=job.taken,
                error=self.fails.get(job.name),
                reads=job.reads,
                writes=job.writes,
            )
            for job in self.running.values()
        ]

    def settle(self, timeout: float = 60.0) -> None:
        self.log.append("settle")
        # Each job takes what is there when the call begins: what another job writes meanwhile is for the next time.
        present = {job.name: self._input(job) for job in self.running.values()}
        for job in self.running.values():
            if job.state.active:
                self._read(job, present[job.name])

    def set_aside(self) -> dict[str, int]:
        late = sum(job.taken - job.closed for job in self.running.values() if job.windowed and job.closed)
        return {"late_rows": late, "dead_letters": 0}

    def drain(self, name: str, timeout: float = 60.0) -> None:
        self.log.append(f"drain {name}")
        job = self.running[name]
        assert job.state.active, f"{name} is {job.state}"
        self._read(job, self._input(job))
        job.closed = job.closed or job.taken
        job.state = JobState.STOPPED

    def resume_job(self, name: str) -> None:
        self.log.append(f"resume {name}")
        self.running[name].state = JobState.RUNNING

    def close(self) -> None:
        self.log.append("close")
        self.closed = True

    # inside

    def _input(self, job: FakeJob) -> int:
        return sum(len(self.topics[name]) for name in job.reads)

    def _read(self, job: FakeJob, rows: int) -> None:
        if job.name in self.fails:
            job.state = JobState.FAILED
            raise JobFailed(job.name, self.fails[job.name])
        if job.appends:
            before = len(python_rows(self._query(job, job.taken)))
            self.topics[job.writes] += python_rows(self._query(job, rows))[before:]
        job.taken = rows
        job.batch += 1
        self.touched = time.monotonic()

    def _time_passes(self) -> None:
        if self.arriving:
            topic, row = self.arriving.pop(0)
            self.topics[topic].append(row)
            self.touched = time.monotonic()
        else:
            self.touched = self.touched or time.monotonic()
            if time.monotonic() - self.touched > self.patience:
                self.live = False
                _thread.interrupt_main()
        for job in self.running.values():
            if job.state.active and self._input(job) > job.taken:
                with contextlib.suppress(JobFailed):
                    self._read(job, self._input(job))

    def _query(self, job: FakeJob, rows: int) -> pa.Table:
        return self._run(job.sql, dict.fromkeys(job.reads, rows))

    def _view(self, job: FakeJob) -> pa.Table:
        return self._query(job, job.closed if job.windowed else job.taken)

    def _answer(self, report: StatementReport) -> Result:
        assert report.plan is not None
        text = report.source.text[report.span.start : report.span.end]
        views = [scan.relation for scan in report.plan.scans() if scan.kind == "materialized view"]
        as_of = {name: (self.running[name].batch, None) for name in views}
        return Result(self._run(text), as_of)

    def _run(self, text: str, rows: dict[str, int] | None = None) -> pa.Table:
        """A query of plain SQL over the topics (their first rows, where a number is given) and the views."""
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE MACRO tumble(ts, size) AS time_bucket(size, ts)")
        connection.execute("CREATE SCHEMA penstock")
        connection.execute("CREATE TABLE penstock.late_rows (job VARCHAR)")
        for name, kept in self.topics.items():
            relation = self.session.catalog.find(s.Name(name))
            assert relation is not None
            types = [f"{column.name} {TYPES.get(str(column.type), str(column.type))}" for column in relation.columns]
            connection.execute(f"CREATE TABLE {name} ({', '.join(types)})")
            taken = kept if rows is None else kept[: rows.get(name, 0)]
            if taken:
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(types))})", taken)
        if rows is None:
            for job in self.running.values():
                view = self._view(job)
                connection.register(f"held_{job.name}", view)
                connection.execute(f"CREATE TABLE {job.name} AS SELECT * FROM held_{job.name}")
        found = connection.sql(text.rstrip(";").replace("TUMBLE_START", "TUMBLE")).to_arrow_table()
        connection.close()
        return found


def reopened(engine: FakeEngine) -> FakeEngine:
    """The same state directory in another process."""
    return replace(engine, log=[], closed=True)
