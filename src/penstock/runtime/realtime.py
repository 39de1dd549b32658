"""Which jobs can run in Spark's real-time mode, and what is told of those that cannot.

In that mode rows do not wait for a batch to be planned: each partition is read by a task that stays, and what it makes
of a row is written at once. So the job is one that keeps nothing and whose rows pass through Spark alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError, OptionError
from penstock.formats.registry import uses_registry
from penstock.sql.statements import CreateMaterializedView, CreateSink, Insert

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.catalog.model import SinkDefinition, SourceDefinition
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session
    from penstock.runtime.job_spec import JobSpec
    from penstock.spark.checked_scan import CheckedScan
    from penstock.sql.statements import Statement

# Spark's own least, below which its batches would follow one another too closely.
_SHORTEST: Final = timedelta(seconds=5)
# Rows wait while a batch ends, about a second: at this length, Spark's own, one in three hundred of them.
_USUAL: Final = timedelta(minutes=5)
_IN_PYTHON: Final = frozenset({"protobuf"})


def is_realtime(spec: JobSpec) -> bool:
    """Whether a job is to run in real-time mode."""
    return spec.options.mode == "realtime"


def batch_length(spec: JobSpec) -> timedelta:
    """How long a batch of real-time mode lasts: as often as that its offsets are kept."""
    found = spec.session.settings.get("checkpoint_interval")
    return max(found if isinstance(found, timedelta) else _USUAL, _SHORTEST)


def check_realtime(spec: JobSpec) -> None:
    """Raises QUERY_NOT_YET where a job asks for real-time mode and cannot have it."""
    reason = next(_reasons(spec), None) if is_realtime(spec) else None
    if reason is not None:
        raise NotYetError(
            "QUERY_NOT_YET",
            f"job {spec.name} cannot run in real-time mode: {reason}",
            hint="leave out mode = 'realtime'",
        )


def check_slots(spec: JobSpec, scans: list[CheckedScan], slots: int) -> None:
    """Raises INVALID_OPTION where Spark has no slot to spare for a task that stays on each partition."""
    needed = sum(scan.partitions for scan in scans)
    if needed >= slots:
        raise OptionError(
            "INVALID_OPTION",
            f"job {spec.name} in real-time mode keeps a task on each of {needed} partitions, and Spark runs {slots}",
            hint=f"start with the setting parallelism = {needed + 1} or more: others need one, too",
        )
    for scan in scans:
        most = scan.definition.options.values.get("max_parallelism")
        if isinstance(most, int) and scan.partitions > most:
            raise OptionError(
                "INVALID_OPTION",
                f"job {spec.name} in real-time mode keeps a task on each of {scan.partitions} partitions of "
                f"{scan.definition.name}, and max_parallelism is {most}",
                hint=f"set max_parallelism = {scan.partitions} or more",
            )


def explain_realtime(statement: Statement | None, plan: LogicalPlan, session: Session) -> str | None:
    """For EXPLAIN of a statement that asks for real-time mode: whether it can have it; None for any other."""
    from penstock.catalog.model import SinkDefinition
    from penstock.options import resolve_view_options
    from penstock.plan.analyze import analyze
    from penstock.plan.insert_options import insert_options
    from penstock.runtime.job_statements import make_insert_spec, make_sink_spec

    try:
        if isinstance(statement, CreateMaterializedView):
            options = resolve_view_options(statement.options, statement.name, session.settings)
            return None if options.mode != "realtime" else f"no: {_NO_VIEW}"
        if isinstance(statement, Insert):
            if insert_options(statement, session).mode != "realtime":
                return None
            spec = make_insert_spec(statement, plan, session)
        elif isinstance(statement, CreateSink):
            created = analyze(statement, session)
            if not isinstance(created.definition, SinkDefinition):
                return None
            if created.definition.options.values.get("mode") != "realtime":
                return None
            spec = make_sink_spec(created.definition, plan, created.session)
        else:
            return None
    except NotYetError as error:
        return f"no: {error.message.partition('real-time mode: ')[2] or error.message}"
    seconds = batch_length(spec).total_seconds()
    return f"yes: each row is written at once, at least once; offsets are kept every {seconds:g} seconds"


_NO_BATCHES: Final = "max_rows_per_batch limits a batch, and rows are written without waiting for one"
_NO_VIEW: Final = "its rows go to a view, and Spark writes to topics of Kafka only"


def _reasons(spec: JobSpec) -> Iterator[str]:
    """Why a job is none for real-time mode."""
    plan = spec.plan
    if spec.sink is None:
        yield _NO_VIEW
        return
    if spec.sink.options.connector != "kafka":
        yield f"sink {spec.sink.name} is over connector '{spec.sink.options.connector}', and Spark writes to Kafka only"
    for source in spec.sources:
        if source.options.connector != "kafka":
            yield f"{source.name} is over connector '{source.options.connector}', and Spark reads from Kafka only"
    if len(spec.sources) != 1:
        yield f"it reads {len(spec.sources)} streams, not one"
    if plan.kind != "append" or plan.kept or plan.steps or plan.uses_event_time:
        yield "it keeps state between rows: windows, joins, DISTINCT and aggregates need batches"
    if plan.dimensions or plan.static:
        yield "it joins a dimension"
    if plan.functions:
        yield f"it calls functions in Python: {', '.join(plan.functions)}"
    if spec.options.max_rows_per_batch is not None:
        yield _NO_BATCHES
    for source in spec.sources:
        yield from _of_source(source)
    yield from _of_sink(spec.sink)


def _of_source(source: SourceDefinition) -> Iterator[str]:
    values = source.options.values
    formats = [source.options.format, values.get("key.format")]
    if source.bounded:
        yield f"{source.name} comes to an end"
    if values.get("max_rows_per_batch") is not None:
        yield _NO_BATCHES
    if values.get("bad_data") == "fail":
        yield f"{source.name} has bad_data = 'fail', and rows are written before anybody looks at the bad ones"
    for name in formats:
        if name in _IN_PYTHON:
            yield f"records of {source.name} in format {name} are read in Python"
        elif isinstance(name, str) and uses_registry(name, values):
            yield f"schemas of {source.name} may come while it runs"


def _of_sink(sink: SinkDefinition) -> Iterator[str]:
    values = sink.options.values
    if values.get("delivery") == "exactly_once":
        yield f"sink {sink.name} is exactly once, and rows are written before their offsets are kept"
    if values.get("record_timestamp_field") is not None or any(
        column.metadata == "timestamp" and not column.virtual for column in sink.columns
    ):
        yield f"records of sink {sink.name} have a timestamp of their own, which Spark's sink cannot set"
    if values.get("sink.parallelism") is not None:
        yield f"sink {sink.name} has sink.parallelism, and the tasks that read are those that write"
    for name in (sink.options.format, values.get("key.format")):
        if name in _IN_PYTHON:
            yield f"records of sink {sink.name} in format {name} are written in Python"
