"""Expressions that the view store asks Spark for: computed here over the rows that it sends.

Each is compiled once and then called with rows; one that calls a function in Python runs as a query of its own.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from penstock.spark.row_function import RowFunction
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.plan.finish_plan import Asked


class AskedRows:
    """Computes in a session of its own. `session` gives Spark's, `make_ready` tells one of functions of the user's."""

    def __init__(
        self, session: Callable[[], SparkSession], make_ready: Callable[[SparkSession, tuple[str, ...]], None]
    ) -> None:
        self._shared = session
        self._make_ready = make_ready
        self._lock = Lock()
        self._own: SparkSession | None = None
        self._functions: dict[str, RowFunction | None] = {}

    def __call__(self, asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
        """The value of the expression for each row."""
        found = self._value(asked, rows)
        # A type that is not what was planned must not lose a digit on its way into the store.
        return found.cast(arrow_type(asked.type))

    def _value(self, asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
        spark = self._session()
        if asked.functions:
            self._make_ready(spark, asked.functions)
        else:
            function = self._function(spark, asked)
            if function is not None:
                return function(rows)
        return spark.createDataFrame(rows).selectExpr(f"{asked.text} AS value").toArrow().column(0)

    def _function(self, spark: SparkSession, asked: Asked) -> RowFunction | None:
        """The compiled expression; None where Spark cannot give it to us."""
        with self._lock:
            if asked.name not in self._functions:
                columns = ", ".join(f"a{place} {kind.spark()}" for place, kind in enumerate(asked.arguments))
                self._functions[asked.name] = RowFunction.of(spark, asked.text, columns)
            return self._functions[asked.name]

    def _session(self) -> SparkSession:
        with self._lock:
            if self._own is None:
                self._own = self._shared().newSession()
            return self._own
