"""A source without rows: one batch for each start, and one for each ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.connectors.nudges import Nudges
from penstock.connectors.pulse import Pulse
from penstock.connectors.reading import Reading
from penstock.spark.offset_log import planned_batches, read_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark


class Beating:
    """A query over a pulse alone, and its batches."""

    def __init__(self, spark: SparkSession, checkpoint: Path, run: int) -> None:
        self.batches: list[tuple[int, int, list[str]]] = []
        self.nudges = Nudges(checkpoint)
        self.nudges.begin()
        pulse = Pulse(spark, Reading(run=run, nudges=str(self.nudges.file)))
        self.nudges.call(pulse.beat)
        frame = pulse.frame([("n", "BIGINT"), ("unit price", "STRING")])
        self.query: StreamingQuery = (
            frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint)).start()
        )
        self.query.processAllAvailable()

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        self.batches.append((batch_id, frame.count(), frame.columns))

    def ask(self) -> None:
        self.nudges.add()
        self.query.processAllAvailable()


def test_each_start_and_each_ask_is_a_batch_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shape = (0, ["n", "unit price"])
    first = Beating(spark, checkpoint, run=1)
    first.ask()
    first.ask()
    first.query.stop()
    assert first.batches == [(number, *shape) for number in range(3)]
    second = Beating(spark, checkpoint, run=1 + 1 + first.nudges.count())
    second.ask()
    second.query.stop()
    assert second.batches == [(3, *shape), (4, *shape)]
    assert [read_offsets(checkpoint, number).sources for number in range(5)] == [(str(n),) for n in range(1, 6)]


def test_a_batch_that_was_not_done_is_run_again(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    first = Beating(spark, checkpoint, run=1)
    first.ask()
    first.query.stop()
    for file in ("1", ".1.crc"):
        (checkpoint / "commits" / file).unlink()
    second = Beating(spark, checkpoint, run=3)
    second.query.stop()
    assert [batch for batch, _, _ in second.batches] == [1, 2]
    assert planned_batches(checkpoint) == (0, 1, 2)
