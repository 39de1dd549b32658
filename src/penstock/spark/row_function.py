"""An expression that Spark has compiled once, called with rows as often as there are some.

To ask for a projection of a DataFrame takes Spark some twenty milliseconds each time: it is read, resolved, optimized,
planned and run as a job. Here the optimizer's projection is kept, and rows go through it in the thread that asks, from
Arrow and back. The calls into the JVM are not public API: where the installed Spark does not have them, or the
expression calls Python, there is no such function, and the DataFrame is asked.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_ZONE: Final = "UTC"
_ANY: Final = 1 << 40  # rows of a piece
# Bytes of a piece of an answer. What is longer than 8 kB of text the JVM sends in two parts, and the second waits 40 ms
# for the other side to have noticed the first.
_PIECE: Final = 5_000


class RowFunction:
    """A compiled expression. It keeps the row that it writes, so that one thread calls it at a time."""

    def __init__(self, spark: SparkSession, projection: Any, given: Any, made: Any) -> None:
        self._spark = spark
        self._projection = projection
        self._given = given
        self._made = made
        self._lock = Lock()

    @classmethod
    def of(cls, spark: SparkSession, text: str, columns: str) -> Self | None:
        """The function of Spark SQL over columns, which are told in Spark's DDL; None where there is none."""
        import pyarrow as pa
        from py4j.protocol import Py4JError

        # Rows of an RDD, about which the optimizer knows nothing: those of a local relation it would compute with.
        base = spark.createDataFrame(spark.sparkContext.emptyRDD(), columns)
        frame = base.selectExpr(f"{text} AS value")
        plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - there is no public way to the JVM
        if plan.getClass().getSimpleName() != "Project" or plan.child().getClass().getSimpleName() != "LogicalRDD":
            return None  # a function in Python is a step of its own
        inputs = base._jdf.queryExecution().analyzed().output()  # noqa: SLF001
        try:
            projection = _classes(spark).catalyst.expressions.UnsafeProjection.create(plan.projectList(), inputs)
            made = cls(spark, projection, base._jdf.schema(), frame._jdf.schema())  # noqa: SLF001
            made(pa.table({}))  # makes every call once
        except (Py4JError, TypeError):
            return None
        return made

    def __call__(self, rows: pa.Table) -> pa.ChunkedArray:
        """The value for each row."""
        import pyarrow as pa

        jvm: Any = self._spark._jvm  # noqa: SLF001
        arrow = _classes(self._spark).execution.arrow
        batches = jvm.java.util.ArrayList()
        for batch in rows.combine_chunks().to_batches():
            batches.add(batch.serialize().to_pybytes())
        given = jvm.scala.jdk.javaapi.CollectionConverters.asScala(batches.iterator())
        with self._lock:
            # What an expression wants to know of the session it asks the thread.
            jvm.org.apache.spark.sql.SparkSession.setActiveSession(self._spark._jsparkSession)  # noqa: SLF001
            module = getattr(getattr(arrow, "ArrowConverters$"), "MODULE$")
            read = module.fromBatchIterator(given, self._given, _ZONE, True, False, None)
            writer = getattr(arrow, "ArrowConverters$ArrowBatchWithSchemaIterator")
            written = writer(read.map(self._projection), self._made, _ANY, _PIECE, _ZONE, True, False, None)
            pieces: list[pa.Table] = []
            try:
                while written.hasNext():
                    pieces.append(pa.ipc.open_stream(bytes(written.next())).read_all())
            except BaseException:
                read.size()  # what is read to its end lets go of its memory
                raise
            finally:
                written.close()
        return pa.concat_tables(pieces).column(0) if pieces else pa.chunked_array([], pa.null())


def _classes(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm  # noqa: SLF001
    return jvm.org.apache.spark.sql
