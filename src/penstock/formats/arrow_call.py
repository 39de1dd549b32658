"""A call from Spark into Python, over Arrow: a column in, a column out, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


def arrow_call(call: Callable[[pa.Array], pa.Array], returns: str, column: Column) -> Column:
    """What a call makes of a column, as a type of Spark's. The call is sent to Spark's workers."""
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    # By its constructor: the decorator wants a function with annotations of Arrow's types.
    made = UserDefinedFunction(call, returns, type(call).__name__, PythonEvalType.SQL_SCALAR_ARROW_UDF)
    return made(column)
