"""What is found out of the rows of a scan on their way: bad ones, and the largest event time of each partition.

Spark's `observe` would find the same, but plans and runs an aggregation of its own for it, which a small batch waits
for and every row of a large one. `spark/java/Watch.java` is shown each row in passing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.formats.java_calls import java_call

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Watch:
    """The watch over one scan of a job. It is set up with the scan's stream."""

    def __init__(self) -> None:
        self._java: Any = None

    def over(self, frame: DataFrame, bad: Column, counts: Column, partition: Column, micros: Column) -> DataFrame:
        """The good rows of a frame. The time of a row is looked at where it `counts`, which it must not without one."""
        from pyspark.sql import functions as f

        spark = frame.sparkSession
        jvm: Any = spark._jvm  # noqa: SLF001 - there is no public way to the JVM
        self._java = jvm.penstock.Watch()
        spark.sparkContext._jsc.sc().register(self._java)  # noqa: SLF001
        boolean = getattr(getattr(jvm.org.apache.spark.sql.types, "BooleanType$"), "MODULE$")
        # Spark calls no method with NULL for a number: such a row would be lost.
        shown = [f.coalesce(bad, f.lit(False)), f.coalesce(counts, f.lit(False))]
        shown += [f.coalesce(partition, f.lit(-1)), f.coalesce(micros, f.lit(0).cast("BIGINT"))]
        passes = java_call(spark, self._java, "pass", boolean, *shown, deterministic=False)
        return frame.filter(passes)

    def taken(self) -> dict[str, int]:
        """What the batch that has just run held: `bad`, and `max0`, `max1` … where a partition had a time."""
        if self._java is None:
            return {}
        bad, *maxima = self._java.take().split(",")
        return {"bad": int(bad)} | {f"max{place}": int(text) for place, text in enumerate(maxima) if text}
