"""The Spark data source of pulses: no rows, but a new offset each time a job starts or wants one more batch.

Spark's own sources have an offset for rows only, so Spark would run no batch without new ones. Only Spark's own
processes load this module, and what registers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, RangeDataSource

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.reading import Scan

PULSE_FORMAT: Final = "penstock_pulse"


class NoRows:
    """A source without partitions."""

    def oldest(self) -> Mapping[int, int]:
        return {}

    def reachable(self, start: Offset) -> Offset:
        return Offset(start.run, {})

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        return iter(())


class PulseDataSource(RangeDataSource):
    """The format `penstock_pulse`."""

    @classmethod
    def name(cls) -> str:
        return PULSE_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:  # noqa: ARG003 - what every source is told
        return NoRows()
