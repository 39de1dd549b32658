"""The Spark data source over the versions of a dimension. Only Spark's own processes load it, and what registers it.

Spark plans a query once and reads a bounded side of it again in every batch. Which version is read is decided there, by
the number of the batch and the list that the job keeps; so all tasks of a batch see the same one, and so does the batch
when it runs again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa  # noqa: TID253  loaded by Spark's processes, never at start-up
from pyspark import TaskContext  # noqa: TID253
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition  # noqa: TID253
from pyspark.sql.pandas.types import to_arrow_schema  # noqa: TID253

from penstock.connectors.range_reader import fitted
from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.stores.dimension_pins import pinned, read_pins
from penstock.stores.dimensions import missing, version_file

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

DIMENSION_FORMAT: Final = "penstock_dimension"
_BATCH: Final = "streaming.sql.batchId"  # what Spark calls the number of a batch in its tasks


@frozen
class DimensionReading:
    """What a reader is told.

    directory: where the versions are. pins: the list of a job, by which a batch finds its version.
    number: the version to read where no batch asks. readers: how many tasks share the rows out.
    """

    name: str
    directory: str
    pins: str | None
    number: int | None
    readers: int = 1

    def text(self) -> str:
        """As the option `reading` of the data source."""
        return json.dumps([self.name, self.directory, self.pins, self.number, self.readers])

    def version(self) -> int:
        """The version that this task reads."""
        context = TaskContext.get()
        batch = context.getLocalProperty(_BATCH) if context is not None else None
        if self.pins is not None and batch is not None:
            found = pinned(read_pins(Path(self.pins)), self.name, int(batch))
            if found is None:
                raise InternalError(f"batch {batch} has no version of dimension {self.name}")
            return found
        if self.number is None:
            raise InternalError(f"dimension {self.name} is read outside a batch")
        return self.number


def read_reading(text: str) -> DimensionReading:
    """What `DimensionReading.text` wrote."""
    return DimensionReading(*json.loads(text))


class DimensionReader(DataSourceReader):
    """Reads one version; each task takes its share of the record batches."""

    def __init__(self, reading: DimensionReading, schema: pa.Schema) -> None:
        self.reading = reading
        self.arrow_schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(place) for place in range(self.reading.readers)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number = self.reading.version()
        path = version_file(Path(self.reading.directory), number)
        if not path.exists():
            raise missing(self.reading.name, number)
        with pa.memory_map(str(path)) as source:
            file = pa.ipc.open_file(source)
            for place in range(partition.value, file.num_record_batches, self.reading.readers):
                yield fitted(file.get_batch(place), self.arrow_schema)


class DimensionDataSource(DataSource):
    """The format `penstock_dimension`."""

    @classmethod
    def name(cls) -> str:
        return DIMENSION_FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        return DimensionReader(read_reading(self.options["reading"]), to_arrow_schema(schema, timezone="UTC"))
