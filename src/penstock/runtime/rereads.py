"""Rows of a batch that went nowhere, found by reading its offset range again: dead letters and late rows.

Nothing is read twice unless a counter of the batch says that there is something to find. What is found depends only on
the logged offsets, times and watermarks of the batch, so a batch that runs again finds the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.plan.late_plan import late_sql
from penstock.spark.core_frame import core_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_plan import JobPlan
    from penstock.spark.checked_scan import CheckedScan
    from penstock.spark.dimension_frames import DimensionFrames


@frozen
class OffsetRange:
    """What one batch read of one scan, as texts of Spark's offset log."""

    start: str | None
    end: str | None


@frozen
class LateRows:
    """Late rows of a batch, and how many rows missed only some of their windows."""

    rows: pa.Table
    partly: int


@frozen
class MendedRows:
    """Dead letters that can be read by now, and what follows from them; None where there are none."""

    places: tuple[tuple[str, int, int], ...]
    rows: pa.Table | None

    @property
    def count(self) -> int:
        """How many rows follow from them."""
        return 0 if self.rows is None else int(self.rows.num_rows)

    def joined(self, frame: DataFrame) -> DataFrame:
        """The frame of a batch, and these rows behind it."""
        if self.rows is None:
            return frame
        return frame.union(frame.sparkSession.createDataFrame(self.rows, frame.schema))


class Rereads:
    """Reads offset ranges of a job again, in a Spark session of its own: views there have the names of the stream's."""

    def __init__(
        self,
        spark: SparkSession,
        plan: JobPlan,
        scans: Sequence[CheckedScan],
        dimensions: Sequence[DimensionFrames] = (),
    ) -> None:
        self._spark = spark.newSession()
        self._plan = plan
        self._scans = scans
        self._dimensions = dimensions

    def dead(self, ranges: Sequence[OffsetRange], bad: Sequence[int | None], batch_time_ms: int) -> pa.Table | None:
        """The bad rows of a batch: stream, partition, offset, raw, reason, error, recorded_at.

        `bad` is how many of each scan the batch has left out, None where nobody has counted. Fewer than that may not
        be found: a row that was left out and is good by now would be nowhere.
        """
        import pyarrow as pa

        found: list[pa.Table] = []
        for place, (scan, span, count) in enumerate(zip(self._scans, ranges, bad, strict=True)):
            if count == 0 or span.end is None or any(other.judges(scan) for other in self._scans[:place]):
                continue
            rows = scan.bad_again(self._spark, span.start, span.end, batch_time_ms).toArrow()
            if count is not None and rows.num_rows < count:
                raise _good_by_now(scan, count - rows.num_rows)
            stream = pa.array([scan.scan.relation] * rows.num_rows, pa.string())
            at = pa.array([batch_time_ms * 1000] * rows.num_rows, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
            found.append(rows.add_column(0, "stream", stream).append_column("recorded_at", at))
        return _once(pa.concat_tables(found)) if found else None

    def mended(self, places: Sequence[tuple[str, int, int]], end: str, batch_time_ms: int) -> MendedRows:
        """The dead letters among these that can be read by now. The job has one scan, and keeps nothing in Spark."""
        (scan,) = self._scans
        asked = [(partition, offset) for stream, partition, offset in places if stream == scan.scan.relation]
        good = scan.good_places(self._spark, asked, end, batch_time_ms) if asked else []
        if not good:
            return MendedRows((), None)
        scan.rows_at(self._spark, good, end).createOrReplaceTempView(scan.scan.view)
        for dimension in self._dimensions:
            dimension.make_ready(self._spark)
        rows = core_frame(self._spark, self._plan, self._dimensions).toArrow()
        return MendedRows(tuple((scan.scan.relation, *place) for place in good), rows)

    def late(self, ranges: Sequence[OffsetRange], watermark_ms: int, batch_time_ms: int) -> LateRows:
        """The rows whose windows had all closed under a watermark: stream, partition, offset, event_time, row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for scan, span in zip(self._scans, ranges, strict=True):
            end = span.end if span.end is not None else span.start
            if end is None:
                continue
            frame = scan.good_again(self._spark, span.start, end, batch_time_ms)
            frame.createOrReplaceTempView(scan.scan.view)
        for dimension in self._dimensions:
            dimension.make_ready(self._spark)
        rows = self._spark.sql(late_sql(self._plan, watermark_ms * 1000)).toArrow()
        source = rows.column("__source").combine_chunks()
        missed, windows = rows.column("missed"), rows.column("windows")
        whole = pc.and_(pc.greater(windows, 0), pc.equal(missed, windows))
        partly = pc.sum(pc.and_(pc.greater(missed, 0), pc.less(missed, windows)).cast(pa.int64())).as_py() or 0
        relations = {scan.scan.id: scan.scan.relation for scan in self._scans}
        ids = source.field("scan").to_pylist()
        table = pa.table(
            {
                "stream": pa.array([relations[name] for name in ids], pa.string()),
                "partition": source.field("partition"),
                "offset": source.field("offset"),
                "event_time": rows.column("event_time"),
                "row": source.field("row"),
            }
        )
        return LateRows(_once(table.filter(whole)), partly)


def _good_by_now(scan: CheckedScan, fewer: int) -> RuntimeFailure:
    """What ends a run whose batch has left out rows that turn out to be good, so that the batch is run again."""
    stream = f'stream "{scan.scan.relation}"'
    if scan.schemas_come:
        return RuntimeFailure(
            "SCHEMA_CHANGED",
            f"records of {stream} have a schema that came after the job had started",
            hint="the job starts again by itself and knows the schema then",
        )
    return RuntimeFailure(
        "ROWS_CHANGED",
        f"{fewer} rows of {stream} that a batch could not use were not found, or were good, when it was read again",
        hint="the job starts again by itself and runs the batch anew",
    )


def _once(rows: pa.Table) -> pa.Table:
    """The rows without those of a stream that an earlier scan of it has told of already."""
    import pyarrow as pa

    seen: dict[tuple[object, ...], int] = {}
    places = zip(*(rows.column(name).to_pylist() for name in ("stream", "partition", "offset")), strict=True)
    for number, place in enumerate(places):
        seen.setdefault(place, number)
    return rows.take(pa.array(seen.values(), pa.int64())) if len(seen) < rows.num_rows else rows
