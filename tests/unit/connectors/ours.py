"""Our own sources in the clothes of `Connector`, so that the conformance tests run against them too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.model import SourceDefinition
from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.connectors.file_reader import FileDataSource
from penstock.connectors.file_source import FileSource
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, fitted
from penstock.connectors.registry import source_of
from penstock.stores.arrow_types import arrow_type
from tests.unit.connectors.declared import request


def as_connector(definition: SourceDefinition, state_path: Path) -> type[Connector]:
    """A class that reads the relation; its offsets hold what Spark's would of one partition."""
    source: Any = source_of(definition.options.connector)
    columns = pa.schema([(entry.name, arrow_type(entry.type)) for entry in definition.columns if entry.type])
    if not source.typed(definition):
        columns = pa.schema([("__value", pa.binary())])  # a format decodes it later
    asked = request(definition, state_path, keep=state_path / "kept")
    count: int = source.partitions(asked)
    data_source = FileDataSource if isinstance(source, FileSource) else source.data_source()
    scan = source._scan(asked)
    is_bounded = definition.bounded

    class Ours(Connector):
        bounded = is_bounded
        schema = columns

        def initialize(self, config: ConnectorConfig) -> None:
            self.partition = config.partition
            self.rows: NumberedRows = data_source.rows(scan, columns)
            self.at = Offset(1, {self.partition: self.rows.oldest().get(self.partition, 0)})

        def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
            there = self.rows.reachable(self.at)
            first = self.at.position(self.partition)
            end = min(there.position(self.partition), first + max_rows)
            if end <= first:
                return None
            self.at = Offset(1, {self.partition: end}, there.started_us)
            read = self.rows.read(Range(self.partition, first, end), self.at, max_rows)
            batches = [fitted(batch, columns) for batch in read]
            return pa.Table.from_batches(batches, columns).combine_chunks().to_batches()[0]

        def get_current_offset(self) -> list[int | None]:
            return [self.at.position(self.partition), self.at.started_us]

        def seek_to_offset(self, offset: list[int | None]) -> None:
            self.at = Offset(1, {self.partition: offset[0] or 0}, offset[1])

        def has_more(self) -> bool:
            return self.rows.reachable(self.at).position(self.partition) > self.at.position(self.partition)

        def get_partition_count(self) -> int:
            return count

    return Ours
