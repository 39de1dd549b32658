"""Sources that make their own rows: datagen and impulse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.clock import now_us
from penstock.connectors.generator_plan import plan_generator
from penstock.connectors.offsets import Offset, read_offset
from penstock.connectors.reading import Scan, reading_of
from penstock.connectors.scan_frames import batch_frame, stream_frame
from penstock.errors import RuntimeFailure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.generator_plan import Pace
    from penstock.connectors.range_reader import RangeDataSource
    from penstock.connectors.scan_frames import Columns
    from penstock.connectors.source import ScanRequest
    from penstock.stores.topics.store import TopicStore

_PLACE: Final = (("__partition", "INT"), ("__offset", "BIGINT"))


class GeneratorSource:
    """Reads datagen and impulse relations; a format is of no meaning to rows that were never bytes."""

    def plan(self, definition: SourceDefinition) -> Pace:
        """What is made, refused by name where the options and columns do not fit."""
        return plan_generator(definition)

    def data_source(self) -> type[RangeDataSource]:
        """What Spark reads it with."""
        from penstock.connectors.generator_reader import GeneratorDataSource

        return GeneratorDataSource

    def typed(self, definition: SourceDefinition) -> bool:
        return True

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        columns = _columns(request.definition, request.columns)
        return stream_frame(spark, self.data_source(), columns, self._scan(request), request.id)

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        columns = _columns(request.definition, None)
        return batch_frame(spark, self.data_source(), columns, self._scan(request, start, end))

    def partitions(self, request: ScanRequest) -> int:
        return self.plan(request.definition).partitions

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        plan = self.plan(request.definition)
        if plan.rate is None:
            return plan.end() or {}
        started = None if reached is None else read_offset(reached).started_us
        if started is None:
            return {}
        return plan.due(started, now_us()) or {}

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        return self.plan(request.definition).end()

    def end_offset(self, request: ScanRequest) -> str:
        end = self.end(request)
        if end is None:
            raise RuntimeFailure(
                "UNBOUNDED_QUERY",
                f"{request.definition.name} makes rows without end",
                hint="give it a number of rows, or read it from a materialized view",
            )
        return json.dumps(Offset(0, end, now_us()).json())

    def positions(self, offset: str) -> Mapping[int, int]:
        return read_offset(offset).positions

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        self.plan(definition)

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing was kept."""

    def _scan(self, request: ScanRequest, start: str | None = None, end: str | None = None) -> Scan:
        return Scan(self.plan(request.definition).json(), reading_of(request), start, end)


def _columns(definition: SourceDefinition, names: tuple[str, ...] | None) -> Columns:
    physical = [column for column in definition.columns if column.physical and (names is None or column.name in names)]
    return [*((column.name, column.type.spark()) for column in physical if column.type is not None), *_PLACE]
