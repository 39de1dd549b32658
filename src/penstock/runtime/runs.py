"""Making a run of a job: its Spark session, its scans, its event time, the view it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.connectors.nudges import Nudges
from penstock.connectors.registry import source_of
from penstock.connectors.source import OutsideSource, ScanRequest
from penstock.errors import PenstockError, RuntimeFailure
from penstock.formats import KeptReadings
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import BATCH_VIEW
from penstock.plan.processing_plan import CLOCK
from penstock.plan.scan_columns import columns_to_read
from penstock.plan.update_mode import KEEP_COLUMN
from penstock.runtime.begun_anew import begin_anew
from penstock.runtime.event_time import EventTimeTracker, ScanTime
from penstock.runtime.failures import as_failure
from penstock.runtime.job_spec import idle_timeout_us
from penstock.runtime.realtime import check_slots, is_realtime
from penstock.runtime.realtime_run import RealtimeRun
from penstock.runtime.run import Run
from penstock.runtime.seen_versions import versions_of_batch
from penstock.spark.checked_scan import CheckedScan
from penstock.spark.core_frame import core_frame
from penstock.spark.offset_log import check_checkpoint, latest_batch
from penstock.spark.spark_types import sql_type_of
from penstock.stores.views import ViewSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.clock import Clock
    from penstock.runtime.batches import BatchDone
    from penstock.runtime.functions import Functions
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.targets import Target
    from penstock.spark.dimension_frames import DimensionFrames
    from penstock.stores.views import ViewStore
    from penstock.types import SqlType

# How long a question for new rows may wait for some, where no other scan waits behind it.
_WAIT_MS: Final = 30
# How long an idle job waits before it asks sources outside again: a question to a broker costs it and Spark 3 ms each.
_OUTSIDE_POLL: Final = {"spark.sql.streaming.pollingDelay": "50"}
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_STATE: Final = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS: Final = {
    "rocksdb": f"{_STATE}.RocksDBStateStoreProvider",
    "memory": f"{_STATE}.HDFSBackedStateStoreProvider",
}


def make_run(
    spec: JobSpec,
    *,
    spark: SparkSession,
    store: ViewStore,
    checkpoint: Path,
    state_path: Path,
    run_number: int,
    first: dict[str, dict[int, int]],
    target: Callable[[Mapping[str, SqlType]], Target],
    clock: Clock,
    functions: Functions,
    dimensions: Sequence[DimensionFrames],
    on_done: Callable[[BatchDone], None],
    on_end: Callable[[Run], None],
    roots: tuple[str, ...] | None = None,
) -> Run:
    """A run that is ready to start. `first` are the pinned start positions, by scan; `roots` where files may lie."""
    check_checkpoint(checkpoint)
    if any(dimension.method == "lookup" for dimension in dimensions):
        spec = replace(spec, plan=spec.plan.with_lookups())
    own = spark.newSession()
    own.conf.set(_PROVIDER, _PROVIDERS[spec.options.state_backend])
    if any(isinstance(source_of(each.options.connector), OutsideSource) for each in spec.sources):
        for name, value in _OUTSIDE_POLL.items():
            own.conf.set(name, value)
    if spec.options.parallelism is not None:
        own.conf.set("spark.sql.shuffle.partitions", str(spec.options.parallelism))
    functions.make_ready(own, spec.plan.functions, spec.sources)
    nudges = Nudges(checkpoint)
    nudges.begin()
    scans = scans_of(
        spec,
        state_path=state_path,
        run_number=run_number,
        first=first,
        nudges=nudges,
        keep=checkpoint.parent,
        roots=roots,
    )
    begin_anew(spec, scans, checkpoint, store)
    types = _found_types(spec, own, scans, dimensions)
    if spec.plan.merge is not None:
        functions.make_ready_to_merge(store, spec.plan.functions)
    if spec.view is not None:
        next_batch = latest_batch(checkpoint)
        seen = versions_of_batch(dimensions, 0 if next_batch is None else next_batch + 1)
        store.create_view(view_spec_of(spec, types), seen)
        if spec.plan.views:
            store.follow(spec.view)  # it reads views, too, and may have been held
    kind: type[Run] = Run
    if is_realtime(spec):
        check_slots(spec, scans, spark.sparkContext.defaultParallelism)
        kind = RealtimeRun
    return kind(
        spec=spec,
        spark=own,
        scans=scans,
        dimensions=dimensions,
        target=target(types),
        tracker=_tracker(spec, scans, store, clock),
        types=types,
        store=store,
        checkpoint=checkpoint,
        clock=clock,
        nudges=nudges,
        on_done=on_done,
        on_end=on_end,
    )


def check_fingerprint(spec: JobSpec, kept: str | None) -> None:
    """Refuses state that another query has made; `kept` is what was stored with it."""
    if kept is None or kept == spec.plan.state:
        return
    raise RuntimeFailure(
        "STATE_INCOMPATIBLE",
        f"the state of job {spec.name} was made by another query: {describe_difference(kept, spec.plan.state)}",
        hint=f"drop {spec.name} and create it again, which reads its input from the start",
    )


def scans_of(
    spec: JobSpec,
    *,
    state_path: Path,
    run_number: int,
    first: dict[str, dict[int, int]],
    nudges: Nudges | None = None,
    keep: Path | None = None,
    roots: tuple[str, ...] | None = None,
) -> list[CheckedScan]:
    """The scans of a job, for one of its runs; without `keep` to look at only, as EXPLAIN does."""
    found: list[CheckedScan] = []
    kept = KeptReadings()
    for place, (scan, definition) in enumerate(zip(spec.plan.scans, spec.sources, strict=True)):
        request = ScanRequest(
            id=scan.id,
            definition=definition,
            columns=columns_to_read(definition, scan),
            state_path=state_path,
            run=run_number,
            job=spec.name,
            max_rows_per_batch=spec.options.max_rows_per_batch,
            first=first.get(scan.id),
            nudges=nudges if place == 0 else None,
            wait_ms=_WAIT_MS if len(spec.plan.scans) == 1 else 0,
            keep=keep,
            roots=roots,
            realtime=is_realtime(spec),
        )
        found.append(
            CheckedScan(
                scan=scan,
                definition=definition,
                session=spec.session,
                request=request,
                partitions=source_of(definition.options.connector).partitions(request),
                uses_event_time=spec.plan.uses_event_time,
                kept=kept,
            )
        )
    return found


def _tracker(spec: JobSpec, scans: Sequence[CheckedScan], store: ViewStore, clock: Clock) -> EventTimeTracker:
    partitions = {scan.scan.id: scan.partitions for scan in scans}
    kept = kept_tracker(spec, store, clock, partitions)
    return kept if kept is not None else EventTimeTracker(_times(spec, partitions), clock.now_us())


def kept_tracker(
    spec: JobSpec, store: ViewStore, clock: Clock, partitions: Mapping[str, int] | None = None
) -> EventTimeTracker | None:
    """The event time of a job as its last batch left it; None before the first. `partitions`: those of each scan now,
    where they are known."""
    kept = store.tracker(spec.name)
    return None if kept is None else EventTimeTracker.from_json(kept[0], _times(spec, partitions or {}), clock.now_us())


def advance_kept(spec: JobSpec, store: ViewStore, clock: Clock, scans: Collection[str], timestamp_us: int) -> None:
    """Move the event time of a job that does not run: its next run begins with it."""
    tracker = kept_tracker(spec, store, clock) or EventTimeTracker(_times(spec, {}), clock.now_us())
    reached = tracker.advance(scans, timestamp_us)
    store.save_tracker(spec.name, tracker.to_json(), reached)


def _times(spec: JobSpec, partitions: Mapping[str, int]) -> list[ScanTime]:
    if spec.plan.processing is not None:
        return [ScanTime(CLOCK)]
    return [
        ScanTime(scan.id, scan.event_time.delay_us, idle_timeout_us(definition), partitions.get(scan.id, 0))
        for scan, definition in zip(spec.plan.scans, spec.sources, strict=True)
        if scan.event_time is not None
    ]


def _found_types(
    spec: JobSpec, spark: SparkSession, scans: Sequence[CheckedScan], dimensions: Sequence[DimensionFrames]
) -> dict[str, SqlType]:
    """The types that Spark's analyzer finds for the columns of a job: those of its batches, for a merging one."""
    plan = spec.plan
    try:
        for scan in scans:
            scan.stream(spark).createOrReplaceTempView(scan.scan.view)
        for dimension in dimensions:
            dimension.make_ready(spark)
        frame = core_frame(spark, plan, dimensions)
        if plan.batch is None:
            return _types(frame.schema)
        frame.createOrReplaceTempView(BATCH_VIEW)
        found = _types(spark.sql(plan.batch).schema)
        spark.catalog.dropTempView(BATCH_VIEW)
        return found
    except PenstockError:
        raise
    except Exception as error:
        raise as_failure(f"job {spec.name}", error) from error


def view_spec_of(spec: JobSpec, found: dict[str, SqlType]) -> ViewSpec:
    """The view that the store keeps, with the types that Spark finds where the planner cannot tell."""
    assert spec.view is not None
    plan = spec.plan
    retention = spec.options.values.get("changelog_retention")
    merge = plan.merge.with_types(found) if plan.merge is not None else None
    if merge is not None:
        computed = {entry.name: entry.type for entry in merge.columns if entry.type is not None}
        found = {**found, **computed}
    columns = tuple((column.name, column.type or found[column.name]) for column in plan.columns)
    shown = {name for name, _ in columns}
    hidden = tuple((name, found[name]) for name in plan.key if name not in shown and plan.kind == "update")
    return ViewSpec(
        name=spec.view,
        columns=columns,
        kind=plan.kind,
        key=plan.key,
        merge=merge,
        retention_us=_microseconds(retention),
        hidden=hidden,
        panes=plan.panes,
        joined=plan.joined,
        windows=plan.windows,
        finish=plan.finish.with_types(found) if plan.finish is not None else None,
        ttl_us=plan.ttl_us,
    )


def _types(schema: StructType) -> dict[str, SqlType]:
    return {part.name: sql_type_of(part.dataType) for part in schema.fields if part.name != KEEP_COLUMN}


def _microseconds(length: object) -> int | None:
    from datetime import timedelta

    return length // timedelta(microseconds=1) if isinstance(length, timedelta) else None
