"""The Python interface: `penstock.connect` and the database it opens."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from penstock.errors import InternalError, InvalidArgument, ResolutionError, UnsupportedError
from penstock.interfaces.argument_types import check_name, check_type, checks_arguments
from penstock.interfaces.catalog_answers import catalog_answer, columns_table, explain, options_table
from penstock.interfaces.changes import Change, Job, checked_form, checked_since
from penstock.interfaces.installation import require
from penstock.interfaces.job_answers import jobs_table, physical_table, watermark_table
from penstock.interfaces.live_batches import batch_rows, live_batches
from penstock.interfaces.result import Result
from penstock.interfaces.subscription import follow_changes, follow_query, is_query, subscription_to
from penstock.interfaces.tailing import tail
from penstock.options import resolve_setting, setting_notice
from penstock.plan.analyze import analyze
from penstock.plan.asked_order import with_order_shown
from penstock.plan.script import StatementReport, read_script, report_statement
from penstock.plan.subscriptions import changing_query, changing_view, subscription_key
from penstock.runtime import job_control
from penstock.runtime.checkpoints import CheckpointCoordinator
from penstock.runtime.dimension_report import explain_dimensions
from penstock.runtime.engine import Engine
from penstock.runtime.inserts import append_rows
from penstock.runtime.job import START_SECONDS
from penstock.runtime.job_checkpoints import JobCheckpoints
from penstock.runtime.live_queries import LiveQuery, live_query
from penstock.runtime.realtime import explain_realtime
from penstock.runtime.registering import register_function
from penstock.runtime.statements import run_statement
from penstock.runtime.system_rows import job_rows
from penstock.secrets import Secret
from penstock.sql import statements as s
from penstock.stores.views import Answer

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.options import ChangeForm
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.script import Parsed
    from penstock.stores.topics import Appended

_LOG: Final = logging.getLogger(__name__)
DEFAULT_PATH: Final = "./penstock"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def connect(path: str | Path = DEFAULT_PATH, **settings: object) -> Database:
    """Open a database: the directory where everything is kept, made where it is missing.

    Settings are those of SET, for this connection. Use it in a `with` block, or call `close`.
    """
    check_type("connect", "path", path, (str, os.PathLike), "a path")
    if not str(path).strip():
        raise ResolutionError("INVALID_ARGUMENT", "the path of the database is empty", hint="name a directory")
    given = {key: option_value(value) for key, value in settings.items()}
    typed = dict(resolve_setting(key, value) for key, value in given.items())
    require("duckdb", "pyarrow")  # before anything is made; Spark may be asked for later, or never
    engine = Engine(Path(path), typed)
    engine.notices += [notice for key, value in given.items() if (notice := setting_notice(key, value)) is not None]
    return Database(engine)


def option_value(value: object) -> s.OptionValue:
    """A value of Python as SET would be given it."""
    if isinstance(value, timedelta):
        return s.OptionValue("interval", Secret(str(value // timedelta(microseconds=1))))
    if isinstance(value, list | tuple):  # of paths
        return s.OptionValue("text", Secret(os.pathsep.join(map(str, value))))
    if isinstance(value, bool):
        return s.OptionValue("boolean", Secret(str(value).lower()))
    if isinstance(value, int | float):
        return s.OptionValue("number", Secret(str(value)))
    return s.OptionValue("text", Secret(str(value)))


@checks_arguments
class Database:
    """An open database. Any thread may use it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.catalog_tables.update(columns=columns_table, options=options_table)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The state directory."""
        return self._engine.home.path

    def close(self) -> None:
        """End every job at a batch boundary and let the directory go; jobs go on when it is opened again."""
        self._engine.close()

    def notices(self) -> list[str]:
        """What there is to tell since the last call: no-ops, defaults that were taken, repairs."""
        with self._engine.turn:
            found, self._engine.notices = self._engine.notices, []
        return found

    # SQL

    def execute(self, sql: str) -> Result | None:
        """Run a script; the result of its last statement, if that has one. The first error ends it."""
        self._engine.check_open()
        parsed, source = read_script(sql)
        result: Result | None = None
        for statement in parsed:
            with self._engine.turn:
                report, _ = report_statement(statement, source, self._engine.session)
                result = self.run(report)
        return result

    def run(self, report: StatementReport) -> Result | None:
        """Run one analysed statement."""
        self._engine.check_open()
        if report.error is not None:
            raise report.error
        _LOG.info("read %s", report.kind)
        looked = self._look(report)
        if looked is not None:
            return Result(looked)
        if isinstance(report.statement, s.Subscribe | s.SubscribeQuery):
            asked = "SELECT …" if isinstance(report.statement, s.SubscribeQuery) else report.statement.target
            raise UnsupportedError(
                "UNSUPPORTED_STATEMENT",
                "SUBSCRIBE does not end",
                hint=f'for change in db.subscribe("{asked}")',
                span=report.span,
            )
        found = run_statement(self._engine, report)
        self._engine.notices += report.notices
        return None if found is None else _result(found)

    def _look(self, report: StatementReport) -> pa.Table | None:
        statement = report.statement
        if isinstance(statement, s.Show) and statement.kind == "JOBS":
            return jobs_table(job_rows(self._engine))
        if isinstance(statement, s.ExplainWatermark):
            return watermark_table(self._engine, statement.name.text)
        if isinstance(statement, s.Explain) and statement.physical:
            return physical_table(self._engine, report)
        if isinstance(statement, s.Explain) and report.plan is not None:
            realtime = explain_realtime(statement.statement, report.plan, self._engine.session)
            return explain(report, explain_dimensions(self._engine, report.plan), realtime)
        return catalog_answer(report)

    def sql(self, sql: str) -> Result:
        """The answer to one SELECT over views, system tables and bounded tables; over a stream UNBOUNDED_QUERY."""
        report = self._one(sql)
        if not isinstance(report.statement, s.Select):
            looked = self._look(report)
            if looked is None:
                raise UnsupportedError(
                    "UNSUPPORTED_STATEMENT",
                    f"sql() answers queries, not {report.kind}",
                    hint="run it with execute()",
                    span=report.span,
                )
            return Result(looked)
        found = run_statement(self._engine, report)
        if found is None:
            raise InternalError("a query without an answer")
        return _result(found)

    def _one(self, sql: str, made: Callable[[Parsed], Parsed] = lambda parsed: parsed) -> StatementReport:
        self._engine.check_open()
        parsed, source = read_script(sql)
        if len(parsed) != 1:
            raise UnsupportedError(
                "UNSUPPORTED_STATEMENT",
                f"one statement is asked for, and there are {len(parsed)}",
                hint="use execute()",
            )
        report, _ = report_statement(made(parsed[0]), source, self._engine.session)
        if report.error is not None:
            raise report.error
        return report

    def _query(self, sql: str, *, order_shown: bool = False) -> LogicalPlan:
        """The plan of a query; `order_shown`: with further columns that it is ordered by, where it selects them not."""
        report = self._one(sql)
        if not isinstance(report.statement, s.Select) or report.plan is None:
            raise UnsupportedError(
                "UNSUPPORTED_STATEMENT", f"a query is asked for, not {report.kind}", hint="use execute()"
            )
        query = with_order_shown(report.statement.query) if order_shown else report.statement.query
        if query is report.statement.query or not report.plan.streams():
            return report.plan
        return analyze(replace(report.statement, query=query), self._engine.session).plans[0]

    def stream(self, sql: str) -> AsyncGenerator[pa.RecordBatch]:
        """The rows of a query over streams or views as they come, until the loop is left.

        Batches of an updating query have a leading column `_op`, 'insert' or 'delete'.
        """
        return live_batches(lambda: self._follow(sql))

    def follow(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Like `stream`, for a program without an event loop."""
        query = self._follow(sql)
        try:
            while (batch := query.next_batch()) is not None:
                yield batch
        finally:
            query.close()

    def _follow(self, sql: str) -> LiveQuery:
        plan = self._query(sql)
        if plan.bounded and any(scan.kind == "materialized view" for scan in plan.scans()):
            plan = self._subscribed(sql)  # views go on, though an answer of now ends
        query = live_query(self._engine, plan, batch_rows=batch_rows(self._engine.session, plan))
        query.start(START_SECONDS)
        return query

    def select_once(self, sql: str, timeout: float = 600.0) -> Result:
        """The answer to a query over streams from what is there now, with every window closed."""
        plan = self._query(sql, order_shown=True)
        if not plan.streams():
            return self.sql(sql)
        query = live_query(self._engine, plan, batch_rows=10_000, keep_rows=True)
        try:
            query.start(START_SECONDS)
            return Result(query.collect(timeout))
        finally:
            query.close()

    def tail_query(
        self,
        sql: str,
        every: float | timedelta | None = None,
        *,
        event: Event | None = None,
        iterations: int | None = None,
    ) -> Iterator[Result]:
        """Ask a query that ends again and again: now, and then `every` so many seconds, or when `event` is set.

        Every 5 seconds when neither is given; until the loop is left, or for so many `iterations`.
        """
        return tail(lambda: self.sql(sql), every, event, iterations, lambda: self._engine.closed)

    # rows in, changes out

    def append(self, stream: str, data: object, partition: int | None = None, key: str | None = None) -> list[Appended]:
        """Append rows to a topic or a memory stream: a list of dicts, Arrow, Polars or pandas. Where they went.

        They go to `partition`, or by a hash of the column `key`, or to one partition after the other, call by call.
        """
        self._engine.check_open()
        return append_rows(self._engine, stream, data, partition=partition, key=key)

    def subscribe(
        self,
        name: str,
        since: int | None = None,
        timeout: float | None = None,
        *,
        changes: ChangeForm | None = None,
        snapshot: bool = True,
    ) -> Iterator[Change]:
        """The changes of a view: all its rows as inserts, then changes as they come; or those after `since`.

        Ends after `timeout` seconds without a change. CHANGELOG_EXPIRED where `since` is no longer kept. `changes` asks
        for another form: 'append', 'upsert', 'retract' or 'debezium'. Without `snapshot` the rows that are there are
        left out: of a view when this is called, of a query when its first change is asked for. A query in place of a
        name is answered, and its changes followed, while somebody reads them.
        """
        self._engine.check_open()
        if is_query(name):
            return self._subscribe_query(name, since, timeout, checked_form(changes), snapshot=snapshot)
        definition = self._engine.view_definition(name)
        view, key = definition.name.text, subscription_key(changing_view(definition), checked_form(changes))
        if since is not None or not snapshot:
            newest = self._engine.home.views.last_seq(view)
            since = newest if since is None else checked_since(view, since, newest)
        return follow_changes(self._engine, view, since, timeout, changes, key)

    def _subscribe_query(
        self, sql: str, since: int | None, timeout: float | None, form: ChangeForm | None, *, snapshot: bool
    ) -> Iterator[Change]:
        if since is not None:
            raise InvalidArgument(
                "INVALID_ARGUMENT",
                "a query has no changes of before to go on behind",
                hint="leave since out, or keep the query as a materialized view",
            )
        plan = self._subscribed(sql)
        subscription_key(changing_query(plan), form)
        return follow_query(self._engine, plan, timeout, form, snapshot=snapshot)

    def _subscribed(self, sql: str) -> LogicalPlan:
        plan = self._one(sql, subscription_to).plan
        if plan is None:
            raise InternalError("a subscription without a plan")
        return plan

    # jobs and time

    def settle(self, timeout: float = 60.0) -> None:
        """Wait until every running job has committed all input that is there now, and closed the windows it ends."""
        job_control.settle(self._engine, timeout)

    def drain(self, name: str, timeout: float = 60.0) -> None:
        """Close every open window of a job, commit and stop it; RESUME JOB goes on with newer rows."""
        job_control.drain(self._engine, name, timeout)

    def advance_watermark(self, stream: str, timestamp: datetime | int | str) -> None:
        """Say that nothing older comes in a stream; a number counts milliseconds since 1970."""
        found = self._engine.session.catalog.get(s.Name(stream))
        job_control.advance_watermark(self._engine, found.name.text, _microseconds(timestamp))

    def jobs(self) -> list[Job]:
        """All jobs, as SHOW JOBS tells of them."""
        self._engine.check_open()
        return [_job(row, self._engine) for row in job_rows(self._engine)]

    def metrics(self) -> dict[str, dict[str, float]]:
        """By job, its counters and gauges."""
        found: dict[str, dict[str, float]] = {}
        for row in self._engine.system_table("penstock.metrics").to_pylist():
            found.setdefault(row["job"], {})[row["name"]] = row["value"]
        return found

    def health(self) -> dict[str, Any]:
        """Whether everything that should run does."""
        jobs = {job.name: job.state for job in self.jobs()}
        failed = sorted(name for name, state in jobs.items() if state == "failed")
        return {"status": "failing" if failed else "ok", "failed": failed, "jobs": jobs, "path": str(self.path)}

    def checkpoints(self, job: str, interval_seconds: float | None = None) -> CheckpointCoordinator:
        """The checkpoints of a job: trigger one, wait for it, go back to one."""
        found = self._engine.find_job(job)
        return CheckpointCoordinator(interval_seconds, backend=JobCheckpoints(self._engine, found))

    def register_table(self, name: str, data: object) -> None:
        """Make a table of rows that queries and jobs can read and join: Arrow, Polars, pandas or a list of dicts.

        It is a dimension table without a key: kept until DROP TABLE, and other rows under the same name replace it.
        """
        self._engine.check_open()
        check_name("register_table", "name", name)
        self._engine.dimensions.register(name, data)

    def register_function(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[object] | None = None,
        returns: object | None = None,
        *,
        aggregate: bool = False,
        takes: Literal["values", "arrow", "pandas"] | None = None,
        on_error: Literal["fail", "null"] = "fail",
    ) -> None:
        """Make a Python function one of SQL, for jobs and queries, under a name of its own.

        Types are those of SQL ("DOUBLE"), Arrow or Python; left out, they are read from the annotations. A function
        `takes` Arrow arrays, pandas series or single values: by its annotations, else single values. An aggregate gets
        the values of a whole group; a class with `partial`, `merge` and `finish` is one whose results merge.
        `on_error="null"`: NULL for a row it fails on, instead of an error.
        """
        self._engine.check_open()
        check_name("register_function", "name", name)
        options = {"on_error": on_error} if on_error != "fail" else {}
        register_function(
            self._engine,
            name,
            function,
            arguments=arguments,
            returns=returns,
            aggregate=aggregate,
            options={**options, **({"takes": takes} if takes is not None else {})},
        )

    # dimension tables

    def register_dimension(
        self, name: str, data: object, broadcast: bool = True, *, key: str | Sequence[str] = ()
    ) -> int:
        """Make a dimension table that jobs join streams with; kept until DROP TABLE. The number of its version.

        `data` is a table of Arrow, Polars or pandas, or a list of dicts. `broadcast=False` joins it by a shuffle. No
        two rows may have the same `key`, where one is given. Registered again with other rows it gets a new version.
        """
        self._engine.check_open()
        check_name("register_dimension", "name", name)
        columns = (key,) if isinstance(key, str) else tuple(key)
        return self._engine.dimensions.register(name, data, broadcast=broadcast, key=columns)

    def update_dimension(self, name: str, data: object) -> int:
        """A new version of a dimension table, with the same columns; its number.

        Every job sees it from the next batch that it plans, and no batch sees two versions.
        """
        self._engine.check_open()
        return self._engine.dimensions.update(name, data)


def _result(found: Answer) -> Result:
    as_of: Mapping[str, tuple[int | None, int | None]] = found.as_of
    return Result(found.table, {view: (batch, mark) for view, (batch, mark) in as_of.items() if batch is not None})


def _job(row: Mapping[str, Any], engine: Engine) -> Job:
    spec = engine.jobs[row["name"]].spec
    return Job(
        name=row["name"],
        state=row["state"],
        batch_id=row["batch_id"],
        watermark=_time(row["watermark"]),
        input_rows=row["input_rows"],
        lag=row["lag"],
        restarts=row["restarts"],
        error=row["error"],
        reads=spec.inputs,
        writes=", ".join(sink.name.text for sink in spec.sinks) or spec.view,
        bounded=spec.bounded,
        batch_rows=row["batch_rows"],
        max_batch_rows=row["max_batch_rows"],
    )


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def _microseconds(moment: datetime | int | str) -> int:
    """A number counts milliseconds; a text is ISO 8601; what has no zone is UTC."""
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment * 1000
    try:
        found: object = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        found = moment
    if not isinstance(found, datetime):
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"{moment!r} is no time",
            hint="give a datetime, a text such as '2026-01-31T12:00:00Z', or a number of milliseconds since 1970",
        )
    found = in_utc(found)
    return (found - _EPOCH) // timedelta(microseconds=1)


def in_utc(moment: datetime) -> datetime:
    """A time without a zone is one in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
