"""The Spark data source of Nexmark. Only Spark's own processes load this module, and what registers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up

from penstock.clock import now_us
from penstock.connectors.generator_plan import resumed
from penstock.connectors.nexmark_plan import NexmarkPlan, read_nexmark
from penstock.connectors.nexmark_values import nexmark_batch
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, RangeDataSource

if TYPE_CHECKING:
    from penstock.connectors.reading import Scan

NEXMARK_FORMAT: Final = "penstock_nexmark"


class NexmarkRows:
    """Events that are made when they are read."""

    def __init__(self, plan: NexmarkPlan, schema: pa.Schema, run: int, max_rows: int) -> None:
        self._plan = plan
        self._schema = schema
        self._run = run
        self._max_rows = max_rows

    def oldest(self) -> Mapping[int, int]:
        return dict.fromkeys(range(self._plan.partitions), 0)

    def reachable(self, start: Offset) -> Offset:
        now = now_us()
        started = resumed(self._plan, start, self._run, now)
        due = self._plan.due(started, now)
        if due is None:
            due = {partition: start.position(partition) + self._max_rows for partition in range(self._plan.partitions)}
        return Offset(self._run, due, started)

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        size = min(batch_size, self._plan.chunk or batch_size)
        for first in range(rows.first, rows.end, size):
            yield nexmark_batch(self._plan, self._schema, rows.partition, first, min(first + size, rows.end))


class NexmarkDataSource(RangeDataSource):
    """The format `penstock_nexmark`; the place of a scan is the plan of what to make."""

    @classmethod
    def name(cls) -> str:
        return NEXMARK_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        return NexmarkRows(read_nexmark(scan.place), schema, scan.reading.run, scan.reading.max_rows)
