"""The frame of a job's query over the views of its scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_plan import JobPlan
    from penstock.spark.dimension_frames import DimensionFrames

# How Spark tells columns of sessions and of other windows.
_SESSION: Final = "spark.sessionWindow"
_WINDOW: Final = "spark.timeWindow"


def core_frame(spark: SparkSession, plan: JobPlan, dimensions: Sequence[DimensionFrames] = ()) -> DataFrame:
    """What a job runs; the session has the views of its scans and dimensions."""
    from pyspark.sql import functions

    shuffled = {dimension.plan.id for dimension in dimensions if dimension.method == "shuffle"}
    for query in plan.static:
        rows = spark.sql(query.sql)
        if shuffled.isdisjoint(query.dimensions):
            rows = functions.broadcast(rows)
        rows.createOrReplaceTempView(query.view)
    for step in plan.steps:
        rows = spark.sql(step.sql)
        made = rows.dropDuplicates(list(step.keys) or None) if step.sessions is None else _closed(rows, step.sessions)
        made.createOrReplaceTempView(step.view)
    return spark.sql(plan.core)


def _closed(rows: DataFrame, sessions: str) -> DataFrame:
    """The rows with a column of sessions as windows that have closed: Spark must not find sessions by it anew."""
    from pyspark.sql import functions

    known = {name: value for name, value in rows.schema[sessions].metadata.items() if name != _SESSION}
    window = functions.col(sessions).alias(sessions, metadata=known | {_WINDOW: True})
    return rows.select(*(window if name == sessions else functions.col(f"`{name}`") for name in rows.columns))
