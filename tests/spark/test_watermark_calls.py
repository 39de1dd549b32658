"""The engine owns Spark's watermark: every call into the JVM, on the Spark that is installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import RuntimeFailure
from penstock.spark.offset_log import committed, drop_commit, latest_batch, read_offsets, roll_back
from penstock.spark.watermark_calls import OperatorState, check_calls
from tests.spark.streams import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def tumble(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    seen = rows.observe(
        "seen", f.max("ts").alias("latest"), f.count(f.lit(1)).alias("rows"), f.max("k").isNull().alias("none")
    )
    windows = seen.groupBy(f.window("ts", "10 seconds"), "k").agg(f.count(f.lit(1)), f.sum("v"))
    return windows.select(f.unix_millis("window.start"), "k", "count(1)", "sum(v)")


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    made = Stream(spark, tmp_path, tumble)
    made.start()
    yield made
    made.handle.query.stop()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)


def test_the_installed_spark_has_every_call(spark: SparkSession) -> None:
    check_calls(spark)
    missing = (("org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker", "setTime", ("long",)),)
    with pytest.raises(RuntimeFailure, match=r"WatermarkTracker\.setTime") as raised:
        check_calls(spark, missing)
    assert raised.value.condition == "SPARK_FAILED"
    assert spark.version in raised.value.message


def test_time_does_not_move_by_itself_and_set_between_closes_windows(stream: Stream) -> None:
    assert not stream.handle.has_run()
    with pytest.raises(RuntimeFailure):
        stream.handle.set_between(1)
    stream.put([("a", 1_000, 5), ("a", 2_000, 7), ("b", 900_000, 1)])
    stream.settle()
    assert stream.handle.has_run()
    assert stream.results == []  # though a row came that is 900 s ahead
    assert stream.handle.operators() == (OperatorState("stateStoreSave", 2, 2, 0, 0),)
    assert stream.handle.observed() == {"seen": {"latest": 900_000_000, "rows": 3, "none": False}}

    stream.handle.set_between(60_000)
    until(lambda: bool(stream.results))
    assert stream.results == [(1, (0, "a", 2, 12))]
    stream.settle()
    assert stream.handle.state_rows() == 1
    assert stream.handle.watermark_ms() == 60_000

    stream.handle.set_between(32_472_144_000_000)
    until(lambda: len(stream.results) == 2)
    stream.settle()
    assert stream.handle.state_rows() == 0, "closed state is deleted"


def test_set_inside_moves_the_next_batch_and_late_rows_are_seen_in_the_callback(stream: Stream) -> None:
    dropped: dict[int, int] = {}
    seen: dict[int, object] = {}

    def inside(batch_id: int) -> None:
        assert stream.handle.batch_id() == batch_id
        dropped[batch_id] = stream.handle.dropped_rows()
        seen[batch_id] = stream.handle.observed()["seen"]["rows"]
        stream.handle.set_inside(60_000)

    stream.inside.append(inside)
    stream.put([("a", 1_000, 5)])
    until(lambda: bool(stream.results))
    stream.settle()
    assert stream.results == [(1, (0, "a", 1, 5))]
    stream.put([("a", 2_000, 7), ("a", 61_000, 7)])
    stream.settle()
    assert dropped == {0: 0, 1: 0, 2: 1}
    assert seen == {0: 1, 1: 0, 2: 2}


def test_the_watermark_survives_a_restart(spark: SparkSession, stream: Stream, tmp_path: Path) -> None:
    stream.put([("a", 1_000, 5), ("b", 70_000, 1)])
    stream.settle()
    stream.handle.set_between(60_000)
    until(lambda: bool(stream.results))
    stream.stop()

    last = committed(stream.checkpoint)
    assert last == latest_batch(stream.checkpoint) == 1
    assert read_offsets(stream.checkpoint, 1).watermark_ms == 60_000
    # Spark runs the batch again whose commit is missing, and from then on the watermark can be moved.
    drop_commit(stream.checkpoint, 1)
    again = Stream(spark, tmp_path, tumble)
    again.start()
    until(lambda: committed(again.checkpoint) == 1)
    assert again.results == [(1, (0, "a", 1, 5))]
    assert again.handle.watermark_ms() == 60_000
    again.handle.set_between(80_000)
    until(lambda: len(again.results) == 2)
    assert again.results[1] == (2, (70_000, "b", 1, 1))
    again.stop()


def test_roll_back(spark: SparkSession, stream: Stream, tmp_path: Path) -> None:
    """K7: batches after a checkpoint are forgotten; state of later versions does no harm."""
    for place in range(5):
        stream.put([("a", 1_000 + place, 10**place)])
        stream.settle()
    stream.stop()
    hashes = [read_offsets(stream.checkpoint, batch).hash for batch in range(5)]
    assert len(set(hashes)) == 5
    assert roll_back(stream.checkpoint, 1) == (4, 3, 2)
    with pytest.raises(RuntimeFailure) as raised:
        roll_back(stream.checkpoint, 4)
    assert raised.value.condition == "UNKNOWN_CHECKPOINT"

    again = Stream(spark, tmp_path, tumble)
    again.start()
    again.settle()
    assert again.handle.state_rows() == 1
    again.handle.set_between(20_000)
    until(lambda: bool(again.results))
    assert [row for _, row in again.results] == [(0, "a", 5, 11111)]
    again.stop()
