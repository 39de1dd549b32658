"""The functions that a session of Spark knows besides its own: those of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.merge_plan import PARTIAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from penstock.spark.function_call import FunctionCall
    from penstock.types import SqlType


def register_functions(spark: SparkSession, calls: Iterable[tuple[FunctionCall, SqlType]]) -> None:
    """Make functions known to one session, each with the type it returns."""
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    for call, returns in calls:
        # By its constructor: the decorator wants annotations, and `__call__` takes any number of arrays.
        name = call.name if call.step == "whole" else PARTIAL + call.name
        made = UserDefinedFunction(call, returns.spark(), name, PythonEvalType.SQL_SCALAR_ARROW_UDF)
        spark.udf.register(name, made)
