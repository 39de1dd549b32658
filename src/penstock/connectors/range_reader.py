"""The Spark side of every source that has numbered rows in partitions: topics and generators.

Only Spark's own processes and tests load this module. One Python process beside the driver answers for a scan
(`latestOffset`, `partitions`); rows are read by Python workers in Spark's tasks. A worker costs 30 ms and more a batch,
which is most of the time of a small batch, so a small range is not left to one: its rows go back with the answer to
`partitions`, and the task finds them in Spark's block store. Spark offers that way to its simple reader only, which in
turn reads everything in one process; a reader that is a `_SimpleStreamReaderWrapper` and overrides all of it gets both.
Where the installed Spark has no such class, every range is left to workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up
from pyspark.sql.datasource import (  # noqa: TID253
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema  # noqa: TID253

from penstock.connectors.offsets import Offset, Range, admit, ranges_between, read_offset, spread
from penstock.connectors.reading import Reading, Scan, read_scan
from penstock.failpoints import hit
from penstock.frozen import frozen

try:
    from pyspark.sql import datasource_internal as _internal
except ImportError:  # a Spark that keeps its simple reader elsewhere
    _internal = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    StreamReaderBase = DataSourceStreamReader
else:
    StreamReaderBase = getattr(_internal, "_SimpleStreamReaderWrapper", DataSourceStreamReader)

PREFETCHES: Final = StreamReaderBase is not DataSourceStreamReader and hasattr(StreamReaderBase, "getCache")

# How often a reader that waits for rows looks again.
_LOOK_AGAIN_S: Final = 0.004


class NumberedRows(Protocol):
    """What a source is to its reader: partitions of rows with offsets that count up."""

    def oldest(self) -> Mapping[int, int]:
        """The first offset that can be read, by partition."""

    def reachable(self, start: Offset) -> Offset:
        """Everything there is by now, as seen from `start`; the limit of a batch is not applied yet."""

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a range that a batch up to `end` reads."""


@runtime_checkable
class Divisible(Protocol):
    """Rows of which several readers can read one range, each a part of it."""

    def divide(self, rows: Range, tasks: int) -> Sequence[Range]:
        """The range in parts, in order: about as many as there are readers."""


@frozen
class Task:
    """What one reader of a batch reads. `end` is the offset the batch reads up to."""

    ranges: tuple[Range, ...]
    end: Offset


class RangeStreamReader(StreamReaderBase):
    """Reads numbered rows as a stream, with admission control."""

    def __init__(self, rows: NumberedRows, schema: pa.Schema, reading: Reading) -> None:
        # The wrapper's own constructor is for the simple reader that we have not.
        self.simple_reader = None
        self.rows = rows
        self.arrow_schema = schema
        self.reading = reading
        self._handed_over: list[pa.RecordBatch] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return first_offset(self.rows, self.reading).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        hit("source.latest_offset")
        begin = read_offset(start)
        reached = self._next(begin)
        if reached == begin and self.reading.wait_ms:
            until = time.monotonic() + self.reading.wait_ms / 1_000
            while reached == begin and time.monotonic() < until:
                time.sleep(_LOOK_AGAIN_S)
                reached = self._next(begin)
        return reached.json()

    def _next(self, begin: Offset) -> Offset:
        there = self.rows.reachable(begin)
        positions = admit(begin, there.positions, self.reading.max_rows)
        return Offset(self.reading.run_now(), positions, there.started_us)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        upto = read_offset(end)
        ranges = ranges_between(read_offset(start), upto)
        self._handed_over = None
        if PREFETCHES and sum(one.rows for one in ranges) <= self.reading.prefetch_rows:
            task = Task(ranges, upto)
            self._handed_over = list(self._batches(task))
            # Should Spark lose the block, a worker reads the same task.
            return [InputPartition(task)]
        return [InputPartition(Task(task, upto)) for task in dealt(self.rows, ranges, self.reading.max_tasks)]

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[pa.RecordBatch] | None:  # noqa: N802
        """The rows that go back with the answer to `partitions`, None where workers read them."""
        handed_over, self._handed_over = self._handed_over, None
        return None if handed_over is None else iter(handed_over)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._batches(partition.value)

    def _batches(self, task: Task) -> Iterator[pa.RecordBatch]:
        return batches_of(self.rows, task, self.reading.batch_size, self.arrow_schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: what is kept and for how long is the topic's own affair."""

    def stop(self) -> None:
        """Nothing is held open."""


class RangeBatchReader(DataSourceReader):
    """Reads the rows between two offsets as a batch."""

    def __init__(self, rows: NumberedRows, schema: pa.Schema, scan: Scan) -> None:
        self.rows = rows
        self.arrow_schema = schema
        self.scan = scan

    def partitions(self) -> list[InputPartition]:
        assert self.scan.end is not None, "a batch read has an end"
        end = read_offset(self.scan.end)
        start = (
            read_offset(self.scan.start) if self.scan.start is not None else first_offset(self.rows, self.scan.reading)
        )
        tasks = dealt(self.rows, ranges_between(start, end), self.scan.reading.max_tasks)
        return [InputPartition(Task(task, end)) for task in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches_of(self.rows, partition.value, self.scan.reading.batch_size, self.arrow_schema)


class RangeDataSource(DataSource):
    """A data source of Spark over numbered rows. A connector says what it is called and where its rows are."""

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        """The rows that a scan is about. They are sent to workers, so nothing is opened here."""
        raise NotImplementedError

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        scan, arrow = self._asked(schema)
        return RangeStreamReader(self.rows(scan, arrow), arrow, scan.reading)

    def reader(self, schema: StructType) -> DataSourceReader:
        scan, arrow = self._asked(schema)
        return RangeBatchReader(self.rows(scan, arrow), arrow, scan)

    def _asked(self, schema: StructType) -> tuple[Scan, pa.Schema]:
        return read_scan(self.options["scan"]), to_arrow_schema(schema, timezone="UTC")


def first_offset(rows: NumberedRows, reading: Reading) -> Offset:
    """Where a reader begins that has read nothing."""
    return Offset(0, rows.oldest() if reading.first is None else reading.first)


def dealt(rows: NumberedRows, ranges: Sequence[Range], tasks: int) -> list[tuple[Range, ...]]:
    """What each reader of a batch reads."""
    if isinstance(rows, Divisible):
        return [(part,) for one in ranges for part in rows.divide(one, tasks)]
    return spread(ranges, tasks)


def batches_of(rows: NumberedRows, task: Task, batch_size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a task, with exactly the columns and types that Spark was told: it checks them."""
    for one in task.ranges:
        for batch in rows.read(one, task.end, batch_size):
            yield fitted(batch, schema)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema out of a batch, cast where they are kept in another type."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for wanted in schema:
        column = batch.column(wanted.name)
        columns.append(column if column.type.equals(wanted.type) else column.cast(wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
