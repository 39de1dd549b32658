"""The Spark data source over embedded topics. Only Spark's own processes load this module, and what registers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, RangeDataSource
from penstock.errors import RuntimeFailure
from penstock.stores.topics.reader import TopicReader

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.connectors.reading import Scan

TOPIC_FORMAT: Final = "penstock_topic"


class TopicRows:
    """The rows of a topic. The topic is opened where it is read: an open one cannot be sent to a worker."""

    def __init__(self, directory: str, columns: Sequence[str]) -> None:
        self._directory = Path(directory)
        self._columns = list(columns)
        self._topic: TopicReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_topic": None}

    def oldest(self) -> Mapping[int, int]:
        return self._open().starts()

    def reachable(self, start: Offset) -> Offset:
        ends = self._open().ends()
        for partition, position in start.positions.items():
            if ends.get(partition, 0) < position:
                raise RuntimeFailure(
                    "SOURCE_DATA_LOST",
                    f"topic {self._directory.name}, partition {partition} ends at {ends.get(partition, 0)}, "
                    f"but the job has read up to {position}",
                    hint="create the job again to read what is there",
                )
        return Offset(start.run, ends)

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        return self._open().read(rows.partition, rows.first, rows.end, self._columns, max_rows=batch_size)

    def _open(self) -> TopicReader:
        if self._topic is None:
            self._topic = TopicReader(self._directory)
        return self._topic


class TopicDataSource(RangeDataSource):
    """The format `penstock_topic`; the place of a scan is the topic's directory."""

    @classmethod
    def name(cls) -> str:
        return TOPIC_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        return TopicRows(scan.place["directory"], schema.names)
