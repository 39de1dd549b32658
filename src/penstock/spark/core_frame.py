"""The frame of a job's query over the views of its scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.plan.job_plan import JobPlan


def core_frame(spark: SparkSession, plan: JobPlan) -> DataFrame:
    """What a job runs; the session has the views of its scans."""
    for step in plan.steps:
        spark.sql(step.sql).dropDuplicates().createOrReplaceTempView(step.view)
    return spark.sql(plan.core)
