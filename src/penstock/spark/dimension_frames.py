"""From a dimension to the temporary view that a job's query joins with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.connectors.scan_frames import ddl, register_source
from penstock.frozen import frozen
from penstock.types import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_dimensions import DimensionPlan
    from penstock.plan.lookups import Lookup
    from penstock.types import SqlType

# How a dimension reaches the rows of a stream: sent whole to every task; asked for by key in Python workers; or both
# sides sorted by key into shuffle partitions. Or not at all: the view store keeps its rows.
JoinMethod = Literal["broadcast", "lookup", "shuffle", "kept"]


@frozen
class DimensionFrames:
    """A dimension of one job, ready for a session of Spark.

    pins: the job's list of versions; without it the version `number` is read.
    lookup: the call that is in the place of the join, for the method of that name.
    """

    plan: DimensionPlan
    types: tuple[tuple[str, SqlType], ...]  # of the columns that are needed, in order
    directory: Path
    pins: Path | None
    number: int
    method: JoinMethod
    readers: int
    lookup: Lookup | None = None

    def make_ready(self, spark: SparkSession) -> None:
        """Make the dimension known to a session: as a view, or as the function that finds its rows."""
        if self.method == "lookup":
            self._register(spark)
        elif self.method != "kept":
            self._frame(spark).createOrReplaceTempView(self.plan.view)

    def _frame(self, spark: SparkSession) -> DataFrame:
        """The rows, with a hint for Spark's planner where they are to be broadcast."""
        from pyspark.sql import functions

        frame = version_frame(
            spark, self.plan.relation, self.types, self.directory, pins=self.pins, number=self.number,
            readers=self.readers,
        )  # fmt: skip
        return functions.broadcast(frame) if self.method == "broadcast" else frame

    def _register(self, spark: SparkSession) -> None:
        from pyspark.sql.udf import UserDefinedFunction
        from pyspark.util import PythonEvalType

        from penstock.connectors.dimension_reader import DimensionReading
        from penstock.spark.dimension_lookup import DimensionLookup

        assert self.lookup is not None
        reading = DimensionReading(
            self.plan.relation, str(self.directory), str(self.pins) if self.pins is not None else None, self.number
        )
        find = DimensionLookup(reading, self.lookup.key, tuple(name for name, _ in self.types))
        fields = ", ".join(f"{quote_name(name)}: {sql_type.spark()}" for name, sql_type in self.types)
        # By its constructor: the decorator wants annotations.
        made = UserDefinedFunction(find, f"STRUCT<{fields}>", self.lookup.function, PythonEvalType.SQL_SCALAR_ARROW_UDF)
        spark.udf.register(self.lookup.function, made)


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
