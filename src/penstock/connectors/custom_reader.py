"""The Spark data source over connectors of somebody else. Only Spark's own processes load this module, and what
registers it.

The process beside the driver owns the connectors of a scan, one for each partition. When Spark asks how far there is
to read, it reads: a source that is pulled cannot tell otherwise. The rows go to the task with the answer to
`partitions`. A batch that is run again, after a restart, is read again from its offsets, each partition by a worker.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition  # noqa: TID253
from pyspark.sql.pandas.types import to_arrow_schema  # noqa: TID253

from penstock.clock import now_us
from penstock.connectors.cursors import Cursor
from penstock.connectors.custom_offsets import CustomOffset, read_custom
from penstock.connectors.exchange import Exchange, Look, Setup
from penstock.connectors.range_reader import PREFETCHES, StreamReaderBase
from penstock.connectors.reading import MOST_OWN_ROWS, Reading, Scan, read_scan
from penstock.errors import PenstockError, RuntimeFailure
from penstock.failpoints import hit
from penstock.frozen import frozen

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

CUSTOM_FORMAT: Final = "penstock_connector"
# What a batch holds at most where nobody says: all of it is in the memory of one process for a moment.
# And how long it is read at most.
_READ_S: Final = 0.5
# More rows than any partition has: a batch read up to here goes on to the end.
WITHOUT_END: Final = 2**62


@frozen
class Stretch:
    """Rows of one partition: from a number and the own offset there, so many of them, or all there are."""

    partition: int
    number: int
    at: Any
    rows: int | None


class CustomStreamReader(StreamReaderBase):
    """Reads a connector as a stream."""

    def __init__(self, exchange: Exchange, schema: pa.Schema, reading: Reading) -> None:
        self.simple_reader = None
        self.exchange = exchange
        self.arrow_schema = schema
        self.reading = reading
        self._setup: Setup | None = None
        self._cursors: dict[int, Cursor] = {}
        self._ahead: tuple[str, str, list[pa.RecordBatch]] | None = None
        self._handed_over: list[pa.RecordBatch] | None = None
        self._committed: object = None
        self._empty_at = 0.0
        self._looked_us = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_setup": None, "_cursors": {}, "_ahead": None, "_handed_over": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        begins = {partition: self._cursor(partition).at for partition in range(self._set_up().partitions)}
        return CustomOffset(0, dict.fromkeys(begins, 0), begins, begins).json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        hit("source.latest_offset")
        begin = read_custom(start)
        if self.exchange.asked_to_leave():
            self.stop()
            self.exchange.leave()
            return self._reached(begin, begin).json()
        self._acknowledge()
        rests = self._empty_at + self._set_up().connector.poll_seconds - time.monotonic()
        if rests > 0:
            time.sleep(min(rests, self.reading.wait_ms / 1_000))
            return self._reached(begin, begin).json()
        end, batches, caught_up = self._read_ahead(begin)
        self._empty_at = 0.0 if batches else time.monotonic()
        found = self._reached(begin, end).json()
        self._ahead = (json.dumps(start), json.dumps(found), batches) if batches else None
        self._tell(end, caught_up=caught_up)
        return found

    def _reached(self, begin: CustomOffset, end: CustomOffset) -> CustomOffset:
        return CustomOffset(
            self.reading.run_now(),
            end.positions,
            end.at,
            end.first or begin.first,
            end.watermark_ms,
            end.ended,
        )

    def _read_ahead(self, begin: CustomOffset) -> tuple[CustomOffset, list[pa.RecordBatch], bool]:
        """Read what is there, up to the limit of a batch; as much of each partition as of any other."""
        self._looked_us = now_us()
        partitions = range(self._set_up().partitions)
        for partition in partitions:
            cursor = self._cursor(partition)
            # A partition that is new to the job begins where its connector does.
            known = partition in begin.positions
            cursor.seek(*(begin.place(partition, begin) if known else (0, cursor.first)))
        found: list[pa.RecordBatch] = []
        marks = dict(begin.watermark_ms)
        waiting = list(partitions)
        left = self.reading.max_rows
        # A source from which rows trickle is never read to its end: what is there by then is a batch.
        until = time.monotonic() + _READ_S
        while waiting and left > 0 and time.monotonic() < until:
            share = max(1, left // len(waiting))
            for partition in tuple(waiting):
                cursor = self._cursor(partition)
                first = cursor.number
                batch = cursor.next(min(share, left)) if left > 0 else None
                if batch is None:
                    if left > 0:
                        waiting.remove(partition)
                    continue
                left -= batch.num_rows
                found.append(placed(batch, self.arrow_schema, partition, first))
                mark = cursor.watermark_ms(batch)
                if mark is not None:
                    marks[partition] = max(mark, marks.get(partition, mark))
        cursors = [self._cursor(partition) for partition in partitions]
        # A partition that is no longer there keeps its place.
        numbers = {**begin.positions, **{cursor.partition: cursor.number for cursor in cursors}}
        at = {**begin.at, **{cursor.partition: cursor.at for cursor in cursors}}
        first_at = {**{cursor.partition: cursor.first for cursor in cursors}, **begin.first}
        bounded = self._set_up().connector.bounded
        ended = bounded and not any(cursor.has_more() for cursor in cursors)
        return CustomOffset(begin.run, numbers, at, first_at, marks, ended), found, not waiting or ended

    def _tell(self, end: CustomOffset, *, caught_up: bool) -> None:
        self.exchange.write_look(Look(self._looked_us, caught_up, end.ended, end.positions))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        stretches = stretches_between(read_custom(start), read_custom(end))
        self._handed_over = None
        ahead, self._ahead = self._ahead, None
        if PREFETCHES and (not stretches or (ahead is not None and ahead[:2] == (json.dumps(start), json.dumps(end)))):
            self._handed_over = ahead[2] if ahead is not None and stretches else []
            # Should Spark lose the block, a worker reads the same rows.
            return [InputPartition(stretches)]
        return [InputPartition((stretch,)) for stretch in stretches]

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[pa.RecordBatch] | None:  # noqa: N802
        """The rows that go back with the answer to `partitions`, None where workers read them."""
        handed_over, self._handed_over = self._handed_over, None
        return None if handed_over is None else iter(handed_over)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_stretches(self.exchange, partition.value, self.arrow_schema)

    def commit(self, end: dict[str, Any]) -> None:
        self._commit(end)

    def _acknowledge(self) -> None:
        """Pass on what the engine has committed since."""
        committed = self.exchange.committed()
        if committed is not None:
            self._commit(committed)

    def _commit(self, end: Mapping[str, Any]) -> None:
        found = read_custom(end)
        if found.at == self._committed:
            return
        for partition in range(self._set_up().partitions):
            if partition in found.at:
                self._cursor(partition).commit(found.at[partition])
        self._committed = found.at

    def stop(self) -> None:
        if self._cursors:
            with contextlib.suppress(PenstockError, OSError):
                self._acknowledge()
        for cursor in self._cursors.values():
            with contextlib.suppress(PenstockError):
                cursor.close()
        self._cursors = {}

    def _set_up(self) -> Setup:
        if self._setup is None:
            self._setup = self.exchange.setup()
        return self._setup

    def _cursor(self, partition: int) -> Cursor:
        found = self._cursors.get(partition)
        if found is None:
            self._cursors[partition] = found = open_cursor(self._set_up(), partition)
        return found


class CustomBatchReader(DataSourceReader):
    """Reads the rows of a connector between two offsets as a batch."""

    def __init__(self, exchange: Exchange, schema: pa.Schema, scan: Scan) -> None:
        self.exchange = exchange
        self.arrow_schema = schema
        self.scan = scan

    def partitions(self) -> list[InputPartition]:
        assert self.scan.end is not None, "a batch read has an end"
        end = read_custom(self.scan.end)
        start = read_custom(self.scan.start) if self.scan.start is not None else CustomOffset(0, {}, {}, {})
        found = stretches_between(start, end)
        return [InputPartition((stretch,)) for stretch in found] or [InputPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_stretches(self.exchange, partition.value, self.arrow_schema)


class CustomDataSource(DataSource):
    """The format `penstock_connector`; the place of a scan is where its exchange is."""

    @classmethod
    def name(cls) -> str:
        return CUSTOM_FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        scan, arrow = self._asked(schema)
        return CustomStreamReader(Exchange(scan.place["exchange"]), arrow, scan.reading)

    def reader(self, schema: StructType) -> DataSourceReader:
        scan, arrow = self._asked(schema)
        return CustomBatchReader(Exchange(scan.place["exchange"]), arrow, scan)

    def _asked(self, schema: StructType) -> tuple[Scan, pa.Schema]:
        return read_scan(self.options["scan"]), to_arrow_schema(schema, timezone="UTC")


def stretches_between(start: CustomOffset, end: CustomOffset) -> tuple[Stretch, ...]:
    """What lies between two offsets, by partition; partitions without rows are left out."""
    found = []
    for partition, upto in sorted(end.positions.items()):
        number, at = start.place(partition, end)
        if upto > number:
            found.append(Stretch(partition, number, at, None if upto == WITHOUT_END else upto - number))
    return tuple(found)


def read_stretches(exchange: Exchange, stretches: Sequence[Stretch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a task, by connectors of its own."""
    for stretch in stretches:
        cursor = open_cursor(exchange.setup(), stretch.partition)
        try:
            number = stretch.number
            batches = _to_the_end(cursor) if stretch.rows is None else cursor.exactly(number, stretch.at, stretch.rows)
            for batch in batches:
                yield placed(batch, schema, stretch.partition, number)
                number += batch.num_rows
        finally:
            cursor.close()


def _to_the_end(cursor: Cursor) -> Iterator[pa.RecordBatch]:
    while (batch := cursor.next(MOST_OWN_ROWS)) is not None:
        yield batch


def open_cursor(setup: Setup, partition: int) -> Cursor:
    """A connector that is ready to read a partition."""
    return Cursor(setup.name, setup.connector, setup.config(partition))


def placed(batch: pa.RecordBatch, schema: pa.Schema, partition: int, first: int) -> pa.RecordBatch:
    """The columns that Spark was told of, in its types; those that the connector has not are an error."""
    by_name = {name.casefold(): place for place, name in enumerate(batch.schema.names)}
    columns = []
    for wanted in schema:
        if wanted.name == "__partition":
            columns.append(pa.repeat(pa.scalar(partition, wanted.type), batch.num_rows))
        elif wanted.name == "__offset":
            columns.append(pa.arange(first, first + batch.num_rows).cast(wanted.type))
        elif wanted.name.casefold() in by_name:
            columns.append(_cast(batch.column(by_name[wanted.name.casefold()]), wanted))
        else:
            raise RuntimeFailure("CONNECTOR_FAILED", f"a batch of the connector has no column {wanted.name}")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, wanted: pa.Field) -> pa.Array:
    if column.type.equals(wanted.type):
        return column
    try:
        if pa.types.is_timestamp(wanted.type) and pa.types.is_integer(column.type):
            column = column.cast(pa.timestamp("ms"))  # an integer is epoch milliseconds
        if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(wanted.type) and column.type.tz is None:
            column = column.cast(pa.timestamp(column.type.unit, tz="UTC"))
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RuntimeFailure(
            "CONNECTOR_FAILED",
            f"column {wanted.name} of the connector is {column.type} and does not fit {wanted.type}: {error}",
            hint="declare the column with the type that the connector has",
        ) from None
