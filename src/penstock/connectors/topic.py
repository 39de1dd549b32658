"""The embedded topic as a source: a log that we keep ourselves, with the row shape of a Kafka topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final

from penstock.connectors.metadata_columns import hidden_columns, topic_name
from penstock.connectors.offsets import Offset, read_offset
from penstock.connectors.option_values import integer, microseconds, text
from penstock.connectors.reading import Scan, reading_of
from penstock.connectors.scan_frames import batch_frame, stream_frame
from penstock.errors import CatalogError, RuntimeFailure
from penstock.stores.topics.layout import TopicLayout, topic_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SinkDefinition, SourceDefinition
    from penstock.connectors.range_reader import RangeDataSource
    from penstock.connectors.source import ScanRequest
    from penstock.stores.topics.reader import TopicReader
    from penstock.stores.topics.store import TopicStore
    from penstock.types import SqlType

HIDDEN_TYPES: Final = {
    "__partition": "INT",
    "__offset": "BIGINT",
    "__timestamp": "TIMESTAMP",
    "__key": "BINARY",
    "__headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "__value": "BINARY",
}
_EVERYTHING: Final = ("__partition", "__offset", "__timestamp", "__key", "__headers")


class TopicSource:
    """Reads embedded topics: those in the folder of a state directory that the engine keeps open."""

    folder: ClassVar[str] = "topics"

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: dict[Path, TopicReader] = {}

    def data_source(self) -> type[RangeDataSource]:
        """What Spark reads it with."""
        from penstock.connectors.topic_reader import TopicDataSource

        return TopicDataSource

    def typed(self, definition: SourceDefinition) -> bool:
        return definition.options.format is None

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        columns = self._columns(request.definition, request.columns, hidden_columns(request.definition))
        return stream_frame(spark, self.data_source(), columns, self._scan(request), request.id)

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        names = tuple(column.name for column in request.definition.columns if column.physical)
        columns = self._columns(request.definition, names, _EVERYTHING)
        return batch_frame(spark, self.data_source(), columns, self._scan(request, start, end))

    def partitions(self, request: ScanRequest) -> int:
        return len(self._ends(request))

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        return self._ends(request)

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        return None

    def end_offset(self, request: ScanRequest) -> str:
        return json.dumps(Offset(0, self._ends(request)).json())

    def positions(self, offset: str) -> Mapping[int, int]:
        return read_offset(offset).positions

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        topics.create(topic_name(definition), topic_layout(definition))

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        with self._lock:
            opened = self._opened.pop(topic_directory(state_path / self.folder, topic_name(definition)), None)
            if opened is not None:
                opened.close()
        topics.drop(topic_name(definition))

    def _columns(
        self, definition: SourceDefinition, names: tuple[str, ...], hidden: tuple[str, ...]
    ) -> list[tuple[str, str]]:
        own = [(name, HIDDEN_TYPES[name]) for name in hidden]
        if not self.typed(definition):
            return [("__value", HIDDEN_TYPES["__value"]), *own]
        wanted = [column for column in definition.columns if column.physical and column.name in names]
        return [*((column.name, column.type.spark()) for column in wanted if column.type is not None), *own]

    def _scan(self, request: ScanRequest, start: str | None = None, end: str | None = None) -> Scan:
        place = {"directory": str(self._directory(request).absolute())}
        return Scan(place, reading_of(request), start, end)

    def _directory(self, request: ScanRequest) -> Path:
        return topic_directory(request.state_path / self.folder, topic_name(request.definition))

    def _ends(self, request: ScanRequest) -> Mapping[int, int]:
        """The ends of a topic; asked for with every batch, so the topic is kept open."""
        from penstock.stores.topics.reader import TopicReader

        directory = self._directory(request)
        with self._lock:
            opened = self._opened.get(directory)
            if opened is not None:
                try:
                    return opened.ends()
                except RuntimeFailure:
                    opened.close()  # dropped; there may be another one of its name
            self._opened[directory] = reader = TopicReader(directory)
            return reader.ends()


def topic_layout(definition: SourceDefinition | SinkDefinition) -> TopicLayout:
    """How the topic of a relation is kept; with a format it holds bytes, like Kafka's."""
    options = definition.options
    columns: list[tuple[str, SqlType]] = []
    for column in definition.columns:
        if column.physical and options.format is None:
            if column.type is None:
                raise _untyped(definition, f"the type of column {column.name} is not known")
            columns.append((column.name, column.type))
    if not columns and options.format is None:
        raise _untyped(definition, "it has no columns")
    return TopicLayout(
        columns=tuple(columns) if options.format is None else None,
        partitions=integer(options.values, "partitions") or 1,
        retention_us=microseconds(options.values, "retention"),
        retention_bytes=integer(options.values, "retention_bytes"),
        fsync=text(options.values, "fsync") or "always",
    )


def _untyped(definition: SourceDefinition | SinkDefinition, reason: str) -> CatalogError:
    return CatalogError(
        "INVALID_DEFINITION",
        f"the topic of {definition.name} keeps typed columns, but {reason}",
        hint="declare the columns with their types, or give a format",
    )
