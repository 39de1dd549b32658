"""What is found of the rows of a scan in passing, and that every row passes once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.spark.watch import Watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Whether it is bad, whether its time counts, its partition, its time.
ROWS = [
    (False, True, 0, 5),
    (False, True, 0, 3),
    (True, True, 1, 9),
    (True, False, 2, 70),
    (False, True, 4, -8),
    (False, False, 3, 100),
    (False, None, 0, 100),
    (None, False, None, None),
    (False, False, 0, None),
]


def watched(spark: SparkSession, watch: Watch, slices: int) -> DataFrame:
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(ROWS, slices), "bad BOOLEAN, counts BOOLEAN, partition INT, micros BIGINT"
    )
    return watch.over(frame, frame.bad, frame.counts, frame.partition, frame.micros)


def test_what_is_found(spark: SparkSession) -> None:
    """E1: the largest time of each partition, over all tasks; a row whose time does not count is a row all the same."""
    watch = Watch()
    assert watch.taken() == {}, "nothing is watched yet"
    frame = watched(spark, watch, 3)
    assert frame.count() == len(ROWS) - 2
    assert watch.taken() == {"bad": 2, "max0": 5, "max1": 9, "max4": -8}
    assert watch.taken() == {"bad": 0}, "it begins anew with each batch"
    assert frame.filter("partition = 0").count() == 4
    assert watch.taken()["bad"] == 2, "what is asked of the rows later is asked behind the watch"


def test_a_task_that_fails_is_not_counted(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    watch = Watch()
    frame = watched(spark, watch, 1)
    with pytest.raises(PySparkException, match="no such row"):
        frame.select(f.when(f.col("partition").isNull(), f.raise_error(f.lit("no such row")))).collect()
    assert watch.taken() == {"bad": 0}
