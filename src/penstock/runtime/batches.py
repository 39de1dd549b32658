"""One batch of a job, from Spark's frame to the ledger.

Spark calls `BatchCallback` with each batch. All that follows from the batch (rows, changes, late rows, dead letters,
event time, offsets) is one transaction of the view store, with the number of the batch and a hash of its offsets. A
batch that is already there is not taken a second time, so whatever is killed, a batch counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, RLock
from typing import TYPE_CHECKING

from penstock.clock import Clock
from penstock.connectors.registry import source_of
from penstock.connectors.source import FollowedSource, OutsideSource
from penstock.errors import RuntimeFailure
from penstock.failpoints import hit
from penstock.frozen import frozen
from penstock.plan.processing_plan import CLOCK
from penstock.runtime.event_time import Seen
from penstock.runtime.job_spec import WATERMARK_US
from penstock.runtime.processing_time import stamped
from penstock.runtime.rereads import OffsetRange
from penstock.runtime.seen_versions import versions_of_batch
from penstock.runtime.stray_rows import StrayRows
from penstock.spark.offset_log import BatchOffsets, read_offsets
from penstock.spark.output_count import counted
from penstock.stores.views import BatchCommit, PartitionOffset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.connectors.nudges import Nudges
    from penstock.runtime.event_time import EventTimeTracker
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.rereads import Rereads
    from penstock.runtime.retries import Retry
    from penstock.runtime.targets import Target
    from penstock.spark.checked_scan import CheckedScan
    from penstock.spark.dimension_frames import DimensionFrames
    from penstock.spark.watermark_calls import QueryHandle
    from penstock.stores.views import ViewStore

_START_SECONDS = 60.0
_SHOWN_BYTES = 200


class StopRequested(Exception):
    """The job is to stop: the batch that was about to begin is left to the next start."""


@frozen
class BatchDone:
    """What a batch left behind."""

    batch_id: int
    watermark_ms: int  # under which Spark closed windows in this batch
    positions: Mapping[str, Mapping[int, int]]  # by scan and partition, the next offset
    input_rows: int
    skipped: bool
    ended: bool  # bounded input is read to its end, and all that follows from it is in the ledger


class BatchCallback:
    """What Spark calls with each batch of one run of a job."""

    def __init__(
        self,
        *,
        spec: JobSpec,
        checkpoint: Path,
        store: ViewStore,
        tracker: EventTimeTracker,
        scans: Sequence[CheckedScan],
        target: Target,
        rereads: Rereads,
        clock: Clock,
        nudges: Nudges,
        on_done: Callable[[BatchDone], None],
        dimensions: Sequence[DimensionFrames] = (),
    ) -> None:
        self._spec = spec
        self._checkpoint = checkpoint
        self._store = store
        self._tracker = tracker
        self._scans = scans
        self._target = target
        self._rereads = rereads
        self._stray = StrayRows(spec, scans, store, rereads)
        self._clock = clock
        self._nudges = nudges
        self._on_done = on_done
        self._dimensions = dimensions
        self._handle: QueryHandle | None = None
        self._ready = Event()
        self.closing = Event()
        self.busy = RLock()  # held while a batch is worked on, and by whoever moves time between batches
        self.error: BaseException | None = None
        self.retry: Retry | None = None  # dead letters that the next batch reads again
        self._first = True  # no batch of this run has been taken yet

    def use(self, handle: QueryHandle) -> None:
        """The query has been started."""
        self._handle = handle
        self._ready.set()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Take one batch."""
        with self.busy:
            if self.closing.is_set():
                raise StopRequested
            try:
                self._take(frame, batch_id)
            except BaseException as error:
                self.error = error
                raise

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        hit("batch.entry")
        started_us = self._clock.now_us()
        if not self._ready.wait(_START_SECONDS) or self._handle is None:
            raise RuntimeFailure("SPARK_FAILED", f"the query of job {self._spec.name} did not start")
        logged = self._read(batch_id)
        before = self._read(batch_id - 1) if batch_id > 0 else None
        entry = self._store.ledger(self._spec.name)
        if entry is not None and entry.batch_id == batch_id:
            self._take_again(frame, logged, entry.offsets_hash)
        else:
            self._take_first(frame, batch_id, logged, before, started_us)
        self._set_watermark(logged)
        hit("batch.exit")

    def _read(self, batch_id: int) -> BatchOffsets:
        """What the offset log says of a batch, with one offset for each scan."""
        logged = read_offsets(self._checkpoint, batch_id)
        rest = list(logged.sources)
        found: list[str | None] = []
        for scan in self._scans:
            source = source_of(scan.definition.options.connector)
            if isinstance(source, OutsideSource):
                found.append(source.folded(scan.request, rest[: source.width], scan.partitions))
                del rest[: source.width]
            else:
                offset = rest.pop(0)
                self._check_partitions(scan, offset)
                found.append(offset)
        return replace(logged, sources=tuple(found))

    def _check_partitions(self, scan: CheckedScan, offset: str | None) -> None:
        """The running query finds the event time of the partitions that were there when it began, and of no others."""
        new = [] if offset is None else [each for each in self._positions(scan, offset) if each >= scan.partitions]
        if new:
            raise RuntimeFailure(
                "PARTITIONS_CHANGED",
                f"stream {scan.scan.relation} has a new partition {min(new)}",
                hint="the job starts again by itself to read it",
            )

    def _take_again(self, frame: DataFrame, logged: BatchOffsets, known_hash: str) -> None:
        """The batch is in the ledger; Spark only has to bring its own state to where it was."""
        if known_hash != logged.hash:
            raise RuntimeFailure(
                "CHECKPOINT_DAMAGED",
                f"batch {logged.batch_id} of job {self._spec.name} has other offsets than the batch of this number "
                "that its view holds",
                hint="restore the checkpoint directory and views.duckdb from the same moment, or drop the view and "
                "create it again",
            )
        frame.write.format("noop").mode("overwrite").save()
        for scan in self._scans:
            scan.watch.taken()  # the tracker knows it from the ledger
        self._acknowledge(logged)
        self._on_done(self._done(logged, 0, skipped=True))

    def _take_first(
        self, frame: DataFrame, batch_id: int, logged: BatchOffsets, before: BatchOffsets | None, started_us: int
    ) -> None:
        assert self._handle is not None
        ranges = [
            OffsetRange(before.sources[place] if before is not None else None, logged.sources[place])
            for place in range(len(self._scans))
        ]
        counts = [self._row_counts(scan, span) for scan, span in zip(self._scans, ranges, strict=True)]
        input_rows = sum(sum(each.values()) for each in counts)
        asked = self.retry
        mended: tuple[tuple[str, int, int], ...] = ()
        joined = 0
        places = self._retried(batch_id)
        if places and before is not None and before.sources[0] is not None:
            found = self._rereads.mended(places, before.sources[0], logged.timestamp_ms)
            frame, mended, joined = found.joined(frame), found.places, found.count
        rows = self._target.take(frame, input_rows + len(mended), batch_id)
        if self._spec.plan.processing is not None and rows is not None:
            rows = stamped(rows, self._spec.plan.processing, logged.clock_ms * 1000)
        hit("batch.after_action")
        observed = [scan.watch.taken() for scan in self._scans]
        self._observe(counts, observed, logged)
        if self._spec.bounded and self._all_read(self._all_positions(logged)):
            self._tracker.drain(self._spec.plan.spread_us, whole_us=WATERMARK_US)
        dead = self._stray.dead(ranges, [seen.get("bad", 0) for seen in observed], logged)
        late, partly = None, 0
        if self._spec.plan.uses_event_time and self._spec.plan.late is not None and any(observed):
            late, partly = self._stray.late(ranges, logged, before, rows, self._handle.dropped_rows)
        seen = versions_of_batch(self._dimensions, batch_id)
        written = self._target.write(rows, batch_id, logged.watermark_ms * 1000, logged.timestamp_ms * 1000, seen)
        if self._target.counted:
            written = counted(self._handle.observed()) + joined
        counters = {"input_rows": float(input_rows)}
        if lost := self._lost(ranges):
            counters["lost_offsets"] = float(lost)
        if self._spec.measured:
            counters |= _counted(written, dead, late, partly)
        result = self._store.commit(
            BatchCommit(
                job=self._spec.name,
                batch_id=batch_id,
                offsets_hash=logged.hash,
                watermark_us=self._tracker.watermark_us,
                tracker=self._tracker.to_json(),
                view=self._target.view,
                rows=rows if self._target.keeps_rows and self._target.view is not None else None,
                late=late if self._spec.late == "keep" else None,
                dead=dead,
                retried=mended,
                offsets=self._partition_offsets(logged),
                counters=counters,
                input_rows=input_rows,
                started_at_us=started_us,
                closing_us=logged.watermark_ms * 1000,
                clock_us=logged.timestamp_ms * 1000,
                versions=seen,
            ),
            at=hit,
        )
        self._acknowledge(logged)
        if asked is not None:
            self.retry = None
            asked.done.set()
        self._target.deliver(rows, result)
        self._on_done(self._done(logged, input_rows, skipped=False))

    def _retried(self, batch_id: int) -> Sequence[tuple[str, int, int]]:
        """The dead letters that the batch takes along. They are written down before it does: a batch that breaks
        behind its sink and is run again takes the same."""
        first, self._first = self._first, False
        if self.retry is not None:
            self._store.save_job(self._spec.name, retry={"batch": batch_id, "places": self.retry.places})
            return self.retry.places
        kept = self._store.job_facts(self._spec.name).get("retry") if first else None
        if kept is None or kept["batch"] != batch_id:
            return ()
        return [(str(stream), int(partition), int(offset)) for stream, partition, offset in kept["places"]]

    def _acknowledge(self, logged: BatchOffsets) -> None:
        """Tell sources that want to know: the batch is in the ledger."""
        for scan, end in zip(self._scans, logged.sources, strict=True):
            source = source_of(scan.definition.options.connector)
            if end is not None and isinstance(source, FollowedSource):
                source.committed(scan.request, end)

    def _set_watermark(self, logged: BatchOffsets) -> None:
        hit("watermark.before_set")
        reached = self._tracker.watermark_us
        if self._spec.plan.follows_time and reached is not None and reached // 1000 > logged.watermark_ms:
            assert self._handle is not None
            self._handle.set_inside(reached // 1000)
            if self._spec.plan.closed_by_store:
                self._nudges.add()  # Spark keeps nothing that the watermark closes, and runs no batch for it

    # event time

    def _row_counts(self, scan: CheckedScan, span: OffsetRange) -> dict[int, int]:
        """How many rows of each partition the batch reads."""
        since = self._positions(scan, span.start) if span.start is not None else scan.request.first or {}
        upto = self._positions(scan, span.end) if span.end is not None else {}
        # A topic that was made anew ends below where it was.
        return {partition: max(0, end - since.get(partition, 0)) for partition, end in upto.items()}

    def _lost(self, ranges: Sequence[OffsetRange]) -> int:
        """How many offsets are gone unread, where a relation asks to skip those."""
        found = 0
        for scan, span in zip(self._scans, ranges, strict=True):
            source = source_of(scan.definition.options.connector)
            if isinstance(source, OutsideSource) and span.end is not None:
                found += source.lost(scan.request, span.start, span.end)
        return found

    def _observe(
        self, counts: Sequence[Mapping[int, int]], observed: Sequence[Mapping[str, int]], logged: BatchOffsets
    ) -> None:
        """Feed the tracker with what the batch held."""
        seen: dict[str, Seen] = {}
        if self._spec.plan.processing is not None and any(sum(rows.values()) for rows in counts):
            seen[CLOCK] = Seen({0: logged.clock_ms * 1000})
        ended: list[str] = []
        for scan, rows, end, found in zip(self._scans, counts, logged.sources, observed, strict=True):
            if not scan.tracked or end is None:
                continue
            upto = self._positions(scan, end)
            latest = source_of(scan.definition.options.connector).latest(scan.request, end)
            waiting = [partition for partition, last in latest.items() if last > upto.get(partition, 0)]
            maxima = {partition: found.get(f"max{partition}") for partition in range(scan.partitions)}
            seen[scan.scan.id] = Seen(maxima, rows, waiting)
            if self._read_to_its_end(scan, upto):
                ended.append(scan.scan.id)
        self._tracker.observe_batch(seen, logged.timestamp_ms * 1000)
        for scan, end in zip(self._scans, logged.sources, strict=True):
            source = source_of(scan.definition.options.connector)
            told = source.watermark_us(end) if isinstance(source, FollowedSource) and end is not None else None
            if told is not None and scan.tracked:
                self._tracker.advance([scan.scan.id], told)
        for scan_id in ended:
            self._tracker.end(scan_id)

    def _read_to_its_end(self, scan: CheckedScan, positions: Mapping[int, int]) -> bool:
        final = source_of(scan.definition.options.connector).end(scan.request)
        return final is not None and all(positions.get(partition, 0) >= end for partition, end in final.items())

    def _all_read(self, positions: Mapping[str, Mapping[int, int]]) -> bool:
        return all(self._read_to_its_end(scan, positions.get(scan.scan.id, {})) for scan in self._scans)

    # what is recorded

    def _partition_offsets(self, logged: BatchOffsets) -> tuple[PartitionOffset, ...]:
        found: list[PartitionOffset] = []
        for scan, end in zip(self._scans, logged.sources, strict=True):
            if end is None:
                continue
            for partition, following in sorted(self._positions(scan, end).items()):
                found.append(PartitionOffset(scan.scan.id, partition, following - 1, logged.timestamp_ms * 1000))
        return tuple(found)

    def _positions(self, scan: CheckedScan, offset: str) -> Mapping[int, int]:
        return source_of(scan.definition.options.connector).positions(offset)

    def _all_positions(self, logged: BatchOffsets) -> dict[str, Mapping[int, int]]:
        return {
            scan.scan.id: self._positions(scan, end)
            for scan, end in zip(self._scans, logged.sources, strict=True)
            if end is not None
        }

    def _done(self, logged: BatchOffsets, input_rows: int, *, skipped: bool) -> BatchDone:
        positions = self._all_positions(logged)
        reached = self._tracker.watermark_us
        closed = not self._spec.plan.follows_time or reached is None or reached // 1000 <= logged.watermark_ms
        ended = closed and self._spec.bounded and self._all_read(positions)
        if self._spec.follows_views and self._spec.view is not None:
            positions[self._spec.view] = {0: self._store.handed(self._spec.view) + 1}
            ended = False  # the views that it reads go on
        return BatchDone(logged.batch_id, logged.watermark_ms, positions, input_rows, skipped, ended)


def _counted(written: int | None, dead: pa.Table | None, late: pa.Table | None, partly: int) -> dict[str, float]:
    """What a batch adds to the counters of its job."""
    found = {
        "output_rows": written,
        "dead_letters": None if dead is None else dead.num_rows,
        "late_rows": None if late is None else late.num_rows,
        "partly_late_rows": partly or None,
    }
    return {name: float(value) for name, value in found.items() if value is not None}
