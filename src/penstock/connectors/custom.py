"""Connectors of somebody else as sources of jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.connectors.cursors import Cursor
from penstock.connectors.custom_offsets import CustomOffset, read_custom
from penstock.connectors.exchange import Exchange
from penstock.connectors.offsets import read_offset
from penstock.connectors.reading import MOST_OWN_ROWS, Scan, reading_of
from penstock.connectors.scan_frames import batch_frame, stream_frame
from penstock.connectors.secret_values import revealed
from penstock.errors import CatalogError, RuntimeFailure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.scan_frames import Columns
    from penstock.connectors.source import ScanRequest
    from penstock.stores.topics.store import TopicStore

_LOOK_AGAIN_S: Final = 0.01
_PLACE: Final = (("__partition", "INT"), ("__offset", "BIGINT"))


class CustomSource:
    """Reads the relations of one registered connector. `own` are the keys of the options that it declares."""

    def __init__(self, name: str, connector: type[Connector], own: frozenset[str]) -> None:
        self.name = name
        self.connector = connector
        self._own = own

    def typed(self, definition: SourceDefinition) -> bool:
        return True

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        from penstock.connectors.custom_reader import CustomDataSource

        columns = _columns(request.definition, request.columns)
        return stream_frame(spark, CustomDataSource, columns, self._scan(request), request.id)

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        from penstock.connectors.custom_reader import CustomDataSource

        return batch_frame(spark, CustomDataSource, _columns(request.definition, None), self._scan(request, start, end))

    def partitions(self, request: ScanRequest) -> int:
        cursor = Cursor(self.name, self.connector, self._config(request.definition, request.state_path))
        try:
            return cursor.partitions()
        finally:
            cursor.close()

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        """As far as the reader has looked: nobody else knows."""
        look = Exchange.of(request).look()
        return {} if look is None else look.positions

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        look = Exchange.of(request).look()
        return look.positions if look is not None and look.ended else None

    def end_offset(self, request: ScanRequest) -> str:
        from penstock.connectors.custom_reader import WITHOUT_END

        if not self.connector.bounded:
            raise RuntimeFailure(
                "UNBOUNDED_QUERY",
                f"{request.definition.name} has rows without end",
                hint="read it from a materialized view",
            )
        everything = dict.fromkeys(range(self.partitions(request)), WITHOUT_END)
        return json.dumps(CustomOffset(0, everything, {}, {}).json())

    def positions(self, offset: str) -> Mapping[int, int]:
        return read_offset(offset).positions

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing is kept for it."""

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing was kept."""

    # what only such sources have

    def check(self, definition: SourceDefinition, state_path: Path) -> None:
        """Set the connector up once, so that what cannot work is refused before there is a stream."""
        cursor = Cursor(self.name, self.connector, self._config(definition, state_path))
        try:
            cursor.partitions()
            there = {name.casefold() for name in cursor.schema().names}
        finally:
            cursor.close()
        missing = [entry.name for entry in definition.columns if entry.physical and entry.name.casefold() not in there]
        if missing:
            raise CatalogError(
                "INVALID_DEFINITION",
                f"connector '{self.name}' has no column {missing[0]}",
                hint=f"its columns are: {', '.join(cursor.schema().names)}",
            )

    def watermark_us(self, offset: str) -> int | None:
        """The time that every partition has passed, by what the connector said."""
        found = read_custom(offset)
        marks = [found.watermark_ms.get(partition) for partition in found.positions]
        known = [mark for mark in marks if mark is not None]
        return min(known) * 1_000 if marks and len(known) == len(marks) else None

    def committed(self, request: ScanRequest, offset: str) -> None:
        """A batch that ends at this offset is committed."""
        Exchange.of(request).write_committed(offset)

    def leave(self, request: ScanRequest, *, wait_s: float) -> None:
        """Have the connectors of a run shut down, and wait for it as long as one may."""
        exchange = Exchange.of(request)
        exchange.ask_to_leave()
        until = time.monotonic() + wait_s
        while not exchange.has_left() and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)

    def looked(self, request: ScanRequest, since_us: int) -> bool:
        """Whether the reader has found the end of what there is, and began to look for it after a moment."""
        look = Exchange.of(request).look()
        return look is not None and look.caught_up and look.looked_us >= since_us

    def _scan(self, request: ScanRequest, start: str | None = None, end: str | None = None) -> Scan:
        exchange = Exchange.of(request)
        config = self._config(request.definition, request.state_path)
        exchange.set_up(self.name, self.connector, config, self.partitions(request))
        return Scan({"exchange": exchange.stem}, reading_of(request, MOST_OWN_ROWS), start, end)

    def _config(self, definition: SourceDefinition, state_path: Path) -> ConnectorConfig:
        given = {item.name: item.value for item in definition.secrets if item.value is not None}
        options = {
            key: revealed(value, state_path, given)
            for key, value in definition.options.values.items()
            if key in self._own
        }
        return ConnectorConfig(options, stream=definition.name.text)


def _columns(definition: SourceDefinition, names: tuple[str, ...] | None) -> Columns:
    physical = [column for column in definition.columns if column.physical and (names is None or column.name in names)]
    return [*((column.name, column.type.spark()) for column in physical if column.type is not None), *_PLACE]
