"""Rows of a batch that are in no result of it: late ones, and those that cannot be read.

Whether there are any is known from counts; which they are is found by reading the batch a second time, only then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from penstock.errors import RuntimeFailure
from penstock.plan.pane_plan import PANE
from penstock.runtime.rereads import LateRows, OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.rereads import Rereads
    from penstock.spark.checked_scan import CheckedScan
    from penstock.spark.offset_log import BatchOffsets
    from penstock.stores.views import ViewStore

_ALTERED: Final = {"view": "MATERIALIZED VIEW", "sink": "SINK"}


class StrayRows:
    """What finds the stray rows of the batches of one run."""

    def __init__(self, spec: JobSpec, scans: Sequence[CheckedScan], store: ViewStore, rereads: Rereads) -> None:
        self._spec = spec
        self._scans = scans
        self._store = store
        self._rereads = rereads

    def late(
        self,
        ranges: Sequence[OffsetRange],
        logged: BatchOffsets,
        before: BatchOffsets | None,
        rows: pa.Table | None,
        dropped: Callable[[], int],
    ) -> tuple[pa.Table | None, int]:
        """The rows of a batch whose windows were closed when it began, and how many missed some of theirs.

        `rows` is what follows from the batch, `dropped` asks Spark how many rows or groups it has left out.
        """
        # Spark's watermark begins at 1970, and a join takes no row of that moment.
        watermark_ms = before.watermark_ms if before is not None else 0
        if not self._some_missed(rows, watermark_ms * 1000, dropped):
            return None, 0
        found = self._not_told(self._rereads.late(ranges, watermark_ms, logged.timestamp_ms))
        if found.rows.num_rows and self._spec.late == "fail":
            first = found.rows.slice(0, 1).to_pylist()[0]
            raise RuntimeFailure(
                "LATE_ROW",
                f'a row of stream "{first["stream"]}" (partition {first["partition"]}, offset {first["offset"]}) came '
                "after its window had closed",
                hint=_late_hint(self._spec),
            )
        return _with_watermark(found.rows, watermark_ms), found.partly

    def _some_missed(self, rows: pa.Table | None, watermark_us: int, dropped: Callable[[], int]) -> bool:
        """Whether a row of the batch missed a window: Spark has dropped it there, or the store has closed it."""
        plan = self._spec.plan
        if not plan.rests and dropped() > 0:
            return True
        if plan.panes is not None:
            first = _smallest(rows, PANE)
            panes = [plan.panes] if plan.joined is None else [side.panes for side in plan.joined.sides]
            return first is not None and any(each.first_end(first) <= watermark_us for each in panes)
        if plan.windows is not None:
            first = _smallest(rows, plan.windows.column)
            return first is not None and first + plan.windows.gap_us <= watermark_us
        if plan.finish is not None and plan.finish.closing is not None:
            closing = plan.finish.closing
            firsts = [first for first in (_smallest(rows, name) for name in closing.times) if first is not None]
            return any(closing.panes.first_end(first) <= watermark_us for first in firsts)
        return False

    def _not_told(self, found: LateRows) -> LateRows:
        """The late rows without those that were told of before: two scans of a stream may read a row in two batches."""
        relations = [scan.scan.relation for scan in self._scans]
        if not found.rows.num_rows or len(set(relations)) == len(relations):
            return found
        places = [tuple(row.values()) for row in found.rows.select(["stream", "partition", "offset"]).to_pylist()]
        told = self._store.late_places(self._spec.name, min(offset for _, _, offset in places))
        return LateRows(found.rows.filter([place not in told for place in places]), found.partly)

    def dead(self, ranges: Sequence[OffsetRange], bad: Sequence[int | None], logged: BatchOffsets) -> pa.Table | None:
        """The records of a batch that cannot be read; `bad` is how many there are of each scan, None: nobody knows."""
        if all(count == 0 for count in bad):
            return None
        found = self._rereads.dead(ranges, bad, logged.timestamp_ms)
        for scan, count in zip(self._scans, bad, strict=True):
            if count != 0 and scan.policy == "fail" and found is not None:
                first = next((row for row in found.to_pylist() if row["stream"] == scan.scan.relation), None)
                if first is None:
                    continue
                raise RuntimeFailure(
                    "BAD_RECORD",
                    f'a record of stream "{first["stream"]}" (partition {first["partition"]}, offset '
                    f"{first['offset']}) cannot be read: {first['error']}",
                    hint="mend the producer, or set bad_data = 'dead_letter' to go on without such records",
                )
        return found


def _with_watermark(rows: pa.Table, watermark_ms: int) -> pa.Table:
    """Late rows with the watermark they came behind, and by how much."""
    import pyarrow as pa
    import pyarrow.compute as pc

    utc = pa.timestamp("us", tz="UTC")
    times = rows.column("event_time").cast(utc)
    watermark = pa.array([watermark_ms * 1000] * rows.num_rows, pa.int64()).cast(utc)
    lateness = pc.subtract(watermark, times)
    place = rows.column_names.index("event_time")
    rows = rows.set_column(place, "event_time", times)
    rows = rows.add_column(place + 1, "watermark", watermark)
    return rows.add_column(place + 2, "lateness", lateness)


def _smallest(rows: pa.Table | None, name: str) -> int | None:
    """The smallest number of a column; a time counts in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return None if rows is None else pc.min(rows.column(name).cast(pa.int64())).as_py()


def _late_hint(spec: JobSpec) -> str:
    """What helps a job that a late row has failed; starting it again, it would meet the row again."""
    longer = "create it again over a stream with a longer delay in its WATERMARK clause"
    if spec.kind not in _ALTERED:
        return f"RESUME meets the row again: create the job again with late = 'keep', or {longer}"
    altered = f"ALTER {_ALTERED[spec.kind]} {spec.name} SET (late = 'keep')"
    return f"{altered} and then RESUME JOB {spec.name}, which alone meets the row again; or {longer}"
