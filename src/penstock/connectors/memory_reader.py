"""The Spark data source over memory streams. Only Spark's own processes load this module, and what registers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows
from penstock.connectors.topic_reader import TopicDataSource, TopicRows
from penstock.errors import RuntimeFailure
from penstock.stores.topics.layout import read_topic_file

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.reading import Scan

MEMORY_FORMAT: Final = "penstock_memory"
_LIFE_DIGITS: Final = 12


class MemoryRows(TopicRows):
    """The rows of a memory stream.

    An offset names the life of the stream that it counts in, in the place of a generator's start: numbers begin at 0
    again when the database is opened again, and must not be taken for those of rows that are gone.
    """

    def reachable(self, start: Offset) -> Offset:
        if start.started_us is not None and any(start.positions.values()):
            self._check(start)
            return replace(super().reachable(start), started_us=start.started_us)
        return replace(super().reachable(replace(start, positions={})), started_us=self._life())

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        self._check(end)
        return super().read(rows, end, batch_size)

    def _life(self) -> int:
        return int(read_topic_file(Path(self._directory)).id.replace("-", "")[:_LIFE_DIGITS], 16)

    def _check(self, offset: Offset) -> None:
        if offset.started_us is not None and offset.started_us != self._life():
            raise RuntimeFailure(
                "SOURCE_DATA_LOST",
                f"the rows of memory stream {self._directory.name} that the job has read are gone: "
                "they last as long as the database is open",
                hint="create the job again, or keep the rows in a topic: connector = 'topic'",
            )


class MemoryDataSource(TopicDataSource):
    """The format `penstock_memory`; the place of a scan is the topic's directory."""

    @classmethod
    def name(cls) -> str:
        return MEMORY_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        return MemoryRows(scan.place["directory"], schema.names)
