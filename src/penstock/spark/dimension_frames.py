"""From a dimension to the temporary view that a job's query joins with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.connectors.scan_frames import ddl, register_source
from penstock.frozen import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_dimensions import DimensionPlan
    from penstock.types import SqlType

# How a dimension reaches the rows of a stream: sent whole to every task, or both sides sorted by key into shuffle
# partitions.
JoinMethod = Literal["broadcast", "shuffle"]


@frozen
class DimensionFrames:
    """A dimension of one job, ready to be turned into frames.

    pins: the job's list of versions; without it the version `number` is read.
    """

    plan: DimensionPlan
    types: tuple[tuple[str, SqlType], ...]  # of the columns that are needed, in order
    directory: Path
    pins: Path | None
    number: int
    method: JoinMethod
    readers: int

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows, with a hint for Spark's planner where they are to be broadcast."""
        from pyspark.sql import functions

        frame = version_frame(
            spark, self.plan.relation, self.types, self.directory, pins=self.pins, number=self.number,
            readers=self.readers,
        )  # fmt: skip
        return functions.broadcast(frame) if self.method == "broadcast" else frame


def version_frame(
    spark: SparkSession,
    name: str,
    types: tuple[tuple[str, SqlType], ...],
    directory: Path,
    *,
    pins: Path | None,
    number: int | None,
    readers: int = 1,
) -> DataFrame:
    """The rows of a dimension: of the version that a batch sees, or of the version `number`."""
    from penstock.connectors.dimension_reader import DIMENSION_FORMAT, DimensionDataSource, DimensionReading

    register_source(spark, DimensionDataSource)
    reading = DimensionReading(name, str(directory), str(pins) if pins is not None else None, number, readers)
    columns = [(column, sql_type.spark()) for column, sql_type in types]
    return spark.read.format(DIMENSION_FORMAT).schema(ddl(columns)).option("reading", reading.text()).load()
