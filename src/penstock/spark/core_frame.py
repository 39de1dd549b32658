"""The frame of a job's query over the views of its scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_plan import JobPlan
    from penstock.spark.dimension_frames import DimensionFrames


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
        spark.sql(step.sql).dropDuplicates(list(step.keys) or None).createOrReplaceTempView(step.view)
    return spark.sql(plan.core)
