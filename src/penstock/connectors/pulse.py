"""A source of Spark without rows, but with a new offset each time a job starts or wants one more batch.

Spark's own sources have an offset for rows only, so Spark would run no batch without new ones. A source written in
Python costs a process for each query, and a second until that answers. So this is Spark's stream in memory, to which no
row is ever added: only its offset is moved, from here. Its offset is all that Spark asks it for, before a restart and
after it.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.connectors.reading import Reading
    from penstock.connectors.scan_frames import Columns

_RUNTIME: Final = "org.apache.spark.sql.execution.streaming.runtime"
_STREAM: Final = f"{_RUNTIME}.MemoryStream"
_OFFSET: Final = f"{_RUNTIME}.LongOffset"
_SET: Final = "currentOffset_$eq"  # as Scala names what sets a variable
# Class, method, and the types of its arguments: none of it is public API, so every session looks whether it is there.
PULSE_CALLS: Final = (
    (_STREAM, "apply", ("org.apache.spark.sql.SparkSession", "org.apache.spark.sql.Encoder")),
    (_STREAM, "toDF", ()),
    (_STREAM, _SET, (_OFFSET,)),
)


class Pulse:
    """The pulse of one run of a job."""

    def __init__(self, spark: SparkSession, reading: Reading) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - there is no public way to the JVM
        sql = jvm.org.apache.spark.sql
        runtime = sql.execution.streaming.runtime
        self._spark = spark
        self._reading = reading
        self._lock = Lock()
        self._offset = runtime.LongOffset
        self._stream = runtime.MemoryStream.apply(spark._jsparkSession, sql.Encoders.LONG())  # noqa: SLF001
        self.beat()

    def beat(self) -> None:
        """Move the offset to where the run is by now."""
        with self._lock:  # two of them must not set the older number last: an offset never goes back
            getattr(self._stream, _SET)(self._offset(self._reading.run_now()))

    def frame(self, columns: Columns) -> DataFrame:
        """No rows, with these columns."""
        from pyspark.sql import DataFrame

        nothing = [f"CAST(NULL AS {type_}) AS `{name}`" for name, type_ in columns]
        return DataFrame(self._stream.toDF(), self._spark).selectExpr(*nothing)
