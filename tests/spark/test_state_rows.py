"""Live window state, read while the job runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.spark.state_rows import pending_windows, state_frame
from tests.spark.streams import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MINUTE = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)


def test_the_row_of_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    """H1, H2, E20: key, window_start, count, sum, min, max of an open window, with buffers of the same name."""
    from pyspark.sql import functions as f

    def build(rows: DataFrame) -> DataFrame:
        called = [f.avg("v"), f.sum("v"), f.count(f.lit(1)), f.min("v"), f.max("v")]
        return rows.groupBy(f.window("ts", "60 seconds"), "k").agg(*called)

    stream = Stream(spark, tmp_path, build)
    assert state_frame(spark, stream.checkpoint, ["count"]).num_rows == 0
    stream.start()
    stream.put([("AAPL", 60_000 + place, 145 if place % 2 else 155) for place in range(150)])
    stream.put([("MSFT", 125_000, 7)])
    stream.settle()
    table = state_frame(spark, stream.checkpoint, ["avg", "sum", "count", "min", "max"])
    assert table.column_names == ["key", "window_start", "count", "sum", "min", "max"]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("AAPL", MINUTE, 150, 22500.0, 145.0, 155.0),
        ("MSFT", datetime(1970, 1, 1, 0, 2, tzinfo=UTC), 1, 7.0, 7.0, 7.0),
    ]
    assert pending_windows(spark, stream.checkpoint) == (60_000_000, 120_000_000)
    stream.stop()


def test_sessions_and_windows_without_a_key(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    def sessions(rows: DataFrame) -> DataFrame:
        return rows.groupBy(f.session_window("ts", "5 seconds"), "k", (f.col("v") % 2).alias("odd")).agg(
            f.count(f.lit(1)), f.max("v")
        )

    def whole(rows: DataFrame) -> DataFrame:
        return rows.groupBy(f.window("ts", "60 seconds")).agg(f.sum(f.col("v").cast("decimal(10, 2)")), f.max("v"))

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = Stream(spark, tmp_path / "a", sessions), Stream(spark, tmp_path / "b", whole)
    for stream in (first, second):
        stream.start()
        stream.put([("a", 60_000, 3), ("a", 62_000, 5), ("a", 80_000, 1)])
        stream.settle()
    rows = state_frame(spark, first.checkpoint, ["count", "max"]).to_pylist()
    assert [(row["key"], row["window_start"], row["count"], row["sum"], row["max"]) for row in rows] == [
        ("a,1", MINUTE, 2, None, 5.0),
        ("a,1", MINUTE.replace(second=20), 1, None, 1.0),
    ]
    rows = state_frame(spark, second.checkpoint, ["sum", "max"]).to_pylist()
    assert [(row["key"], row["window_start"], row["count"], row["sum"], row["max"]) for row in rows] == [
        (None, MINUTE, None, 9.0, 5.0)
    ]
    first.stop()
    second.stop()
