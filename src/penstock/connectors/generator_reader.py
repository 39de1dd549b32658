"""The Spark data source of generators. Only Spark's own processes load this module, and what registers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up

from penstock.clock import now_us
from penstock.connectors.generated_values import Rows, rows_of, values_of
from penstock.connectors.generator_plan import GeneratorPlan, read_plan, resumed
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, RangeDataSource

if TYPE_CHECKING:
    from penstock.connectors.reading import Scan

GENERATOR_FORMAT: Final = "penstock_generator"


class GeneratedRows:
    """Rows that are made when they are read."""

    def __init__(self, plan: GeneratorPlan, schema: pa.Schema, run: int, max_rows: int) -> None:
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
        assert end.started_us is not None, "an offset with rows says when the source was started"
        for first in range(rows.first, rows.end, batch_size):
            upto = min(first + batch_size, rows.end)
            made = rows_of(self._plan, rows.partition, first, upto, end.started_us)
            columns = [self._column(field, made) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, field: pa.Field, made: Rows) -> pa.Array:
        if field.name == "__partition":
            return pa.repeat(pa.scalar(made.partition, field.type), len(made.offset))
        if field.name == "__offset":
            return made.offset
        return values_of(self._plan.fields[field.name], field.type, made)


class GeneratorDataSource(RangeDataSource):
    """The format `penstock_generator`; the place of a scan is the plan of what to make."""

    @classmethod
    def name(cls) -> str:
        return GENERATOR_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        return GeneratedRows(read_plan(scan.place), schema, scan.reading.run, scan.reading.max_rows)
