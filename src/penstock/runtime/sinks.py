"""The sink of a job: which connector it is, and what that needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.connectors.registry import sink_of
from penstock.connectors.sink import CheckedSink, ReachedSink, SinkContext
from penstock.errors import InternalError
from penstock.formats import encode_frame, encode_rows
from penstock.formats.keys import key_field, key_format, key_options
from penstock.frozen import frozen
from penstock.runtime.change_rows import envelopes, retractions, upserts
from penstock.runtime.shared_target import SharedTarget
from penstock.runtime.targets import ChangesTarget, ClosedTarget, SinkTarget
from penstock.spark.format_outside import outside_for
from penstock.spark.offset_log import latest_batch, read_offsets
from penstock.stores.topics.rows import rows_to_table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.catalog.model import ColumnDefinition, SinkDefinition
    from penstock.connectors.sink import Sink
    from penstock.formats import Outside
    from penstock.options.resolved import ResolvedOptions
    from penstock.runtime.home import Home
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.targets import Target
    from penstock.stores.views import BatchChanges, SeenVersion
    from penstock.types import SqlType

_PARTITIONED: Final = frozenset({"kafka", "topic"})


@frozen
class OpenSink:
    """A sink that a job writes to, with the types that the job's query has for its columns."""

    sink: Sink
    context: SinkContext
    columns: tuple[str, ...]  # those that are given, in the order of the query

    @property
    def definition(self) -> SinkDefinition:
        return self.context.definition

    def fit(self, rows: pa.Table) -> pa.Table:
        """Rows of the query as rows of the sink."""
        return fitted(rows, self.definition, self.columns)

    def rows_of(self, changes: BatchChanges) -> pa.Table:
        """Changes as rows of the sink, in the form that it takes."""
        options = self.definition.options
        if options.format == "debezium-json":
            named = options.values.get("key.fields")
            key = self.definition.primary_key or (named if isinstance(named, tuple) else ())
            apart = not key and options.connector in _PARTITIONED
            return envelopes(changes, self.fit, options.values, None if apart else key)
        if options.changes == "upsert":
            return upserts(changes, self.definition.primary_key, self.fit)
        return retractions(changes, self.fit)


def open_sink(spec: JobSpec, home: Home, types: Mapping[str, SqlType]) -> OpenSink:
    """The sink of a job, ready to be written to."""
    if spec.sink is None:
        raise InternalError(f"job {spec.name} has neither a view nor a sink")
    given = types if spec.view is None else {**types, **dict(home.views.spec(spec.view).columns)}
    return _opened(spec, home, _typed(spec.sink, given), spec.columns, spec.name)


def _opened(spec: JobSpec, home: Home, definition: SinkDefinition, columns: tuple[str, ...], producer: str) -> OpenSink:
    sink = sink_of(definition.options.connector)
    sink.prepare(definition, home.path, home.topics)
    facts = home.views.job_facts(spec.name)
    context = _context(definition, home, spec.name, f"{producer}@{facts.get('created_at_us', 0)}")
    if isinstance(sink, CheckedSink):
        sink.check(context)
    return OpenSink(sink, context, columns)


def reach_sink(spec: JobSpec, home: Home) -> None:
    """Raises where nobody is there to be written to by a new job; one that runs tries again by itself."""
    for definition in filter(None, (spec.sink, *(branch.sink for branch in spec.branches))):
        sink = sink_of(definition.options.connector)
        if isinstance(sink, ReachedSink):
            sink.reach(_context(definition, home, spec.name, spec.name))


def sink_target(spec: JobSpec, home: Home, types: Mapping[str, SqlType]) -> Target:
    """Where the rows of a job go that are not for a view; `types` are those that Spark finds for its columns."""
    found = open_sink(spec, home, types)
    view = spec.view
    if view is not None and spec.plan.shows_closed:

        def closed(
            rows: pa.Table, batch_id: int, closing_us: int, clock_us: int, versions: tuple[SeenVersion, ...]
        ) -> pa.Table:
            return home.views.stage(spec.name, view, batch_id, rows, closing_us, clock_us, versions).after

        return ClosedTarget(_rows_target(found, spec.columns), view, spec.plan, types, closed)
    if view is not None:

        def changed(
            rows: pa.Table, batch_id: int, closing_us: int, clock_us: int, versions: tuple[SeenVersion, ...]
        ) -> pa.Table:
            staged = home.views.stage(spec.name, view, batch_id, rows, closing_us, clock_us, versions)
            return found.rows_of(staged)

        return ChangesTarget(found.sink, found.context, view, spec.plan, types, changed)
    return _rows_target(found, spec.columns)


def shared_target(spec: JobSpec, home: Home) -> Target:
    """Where the rows of a job go that runs several INSERTs. Each sink knows it by a name of its own."""
    found = []
    for branch in spec.branches:
        opened = _opened(spec, home, branch.sink, branch.columns, f"{spec.name}.{branch.sink.name.text}")
        found.append((branch.core, _rows_target(opened, branch.columns)))
    return SharedTarget(spec.plan.scans[0].view, found)


def _rows_target(found: OpenSink, columns: tuple[str, ...]) -> SinkTarget:
    return SinkTarget(
        found.sink, found.context, found.fit, lambda frame: fitted_frame(frame, found.definition, columns)
    )


def write_once(home: Home, definition: SinkDefinition, rows: pa.Table) -> None:
    """Write rows that belong to no batch."""
    sink = sink_of(definition.options.connector)
    sink.prepare(definition, home.path, home.topics)
    context = _context(definition, home, "insert", "insert")
    if isinstance(sink, CheckedSink):
        sink.check(context)  # also makes a topic that is not there, with as many partitions as it is to have
    sink.write(rows, context, None)


def _context(definition: SinkDefinition, home: Home, job: str, producer: str) -> SinkContext:
    return SinkContext(
        job=job,
        producer=producer,
        definition=definition,
        topics=home.topics,
        encode=_encoder(definition, home),
        state_path=home.path,
        encode_frame=_frame_encoder(definition, home),
        encode_key=_key_encoder(definition, home),
        encode_key_frame=_key_frame_encoder(definition, home),
        roots=home.roots,
        input_hash=lambda batch_id: _input_hash(home.checkpoint(job), batch_id),
        in_doubt=batches_in_doubt(home, job),
    )


def batches_in_doubt(home: Home, job: str) -> Callable[[int], bool]:
    """Which batches a run before now may have written without knowing it: those that were planned then and are not in
    the ledger. None where nothing was written before; and a job over views alone plans none."""
    entry, planned = home.views.ledger(job), latest_batch(home.checkpoint(job))
    if entry is None or planned is None or not entry.counters.get("output_rows"):
        return range(0).__contains__
    return range(entry.batch_id + 1, planned + 1).__contains__


def _input_hash(checkpoint: Path, batch_id: int) -> str:
    """What Spark's log says that a batch reads; a job over views alone has no such log."""
    if not (checkpoint / "offsets" / str(batch_id)).exists():
        return ""
    return read_offsets(checkpoint, batch_id).hash


def outside_of(home: Home) -> Outside:
    """What the formats of a state directory may reach."""
    return outside_for(home.path, home.roots)


def record_format(options: ResolvedOptions) -> str | None:
    """The format in which rows are written: those that are Debezium's envelopes themselves are plain JSON."""
    envelopes = options.format == "debezium-json" and options.changes == "append"
    return "json" if envelopes else options.format


def _encoder(definition: SinkDefinition, home: Home) -> Callable[[pa.Table], pa.Array] | None:
    format_ = record_format(definition.options)
    if format_ is None:
        return None
    return lambda rows: encode_rows(rows, format_, definition.options.values, outside_of(home))


def _frame_encoder(definition: SinkDefinition, home: Home) -> Callable[..., DataFrame] | None:
    format_ = record_format(definition.options)
    if format_ is None:
        return None
    return lambda frame, columns=None: encode_frame(
        frame, format_, definition.options.values, columns, outside_of(home)
    )


def _key_encoder(definition: SinkDefinition, home: Home) -> Callable[[pa.Table], pa.Array] | None:
    options = definition.options.values
    if definition.options.format is None:
        return None

    def encode(rows: pa.Table) -> pa.Array:
        named = rows.rename_columns([key_field(name, options) for name in rows.column_names])
        return encode_rows(named, key_format(options), key_options(options), outside_of(home))

    return encode


def _key_frame_encoder(definition: SinkDefinition, home: Home) -> Callable[..., DataFrame] | None:
    options = definition.options.values
    if definition.options.format is None:
        return None

    def encode(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        from pyspark.sql import functions as f

        # Under the names that the key has for them; whoever asks is done with the columns of the value.
        names = {key_field(name, options): f.col("`" + name.replace("`", "``") + "`") for name in columns}
        own = frame.withColumns(names)
        return encode_frame(own, key_format(options), key_options(options), list(names), outside_of(home))

    return encode


def _typed(definition: SinkDefinition, types: Mapping[str, SqlType]) -> SinkDefinition:
    """The sink with types for the columns that it takes from its query."""
    columns = tuple(
        replace(entry, type=types.get(entry.name)) if entry.type is None else entry for entry in definition.columns
    )
    return replace(definition, columns=columns)


def fitted(rows: pa.Table, definition: SinkDefinition, given: Sequence[str]) -> pa.Table:
    """Rows of a query as rows of the sink: named by position, in the declared types, what is not given NULL."""
    if not definition.columns:
        return rows
    targets = _given(definition, given)
    return rows_to_table(rows.rename_columns([entry.name for entry in targets]), definition.columns)


def fitted_frame(frame: DataFrame, definition: SinkDefinition, given: Sequence[str]) -> DataFrame:
    """The same inside Spark."""
    from pyspark.sql import functions as f

    if not definition.columns:
        return frame
    places = {entry.name: f"c{place}" for place, entry in enumerate(_given(definition, given))}
    frame = frame.toDF(*places.values())
    columns = []
    for entry in definition.columns:
        assert entry.type is not None, "a column of a sink has a type"
        value = f.col(places[entry.name]) if entry.name in places else f.lit(None)
        columns.append(value.cast(entry.type.spark()).alias(entry.name))
    return frame.select(*columns)


def _given(definition: SinkDefinition, given: Sequence[str]) -> Sequence[ColumnDefinition]:
    """The columns of a sink that a query gives, in its order."""
    declared = {entry.name.casefold(): entry for entry in definition.columns}
    return [declared[name.casefold()] for name in given] if given else definition.columns
