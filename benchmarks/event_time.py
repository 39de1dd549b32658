"""What owning the watermark costs, beside Spark's own.

    python -m benchmarks.event_time [--tiny 60] [--rows 1000000] [--rounds 5]

Two Spark queries, each over an embedded topic of its own, count rows in tumbling windows, each with a callback that
runs the batch into `noop`. One has Spark's `withWatermark`. The other has ours: the largest time of each partition is
found, read from the JVM after the batch, and the watermark set from there. Tiny batches of 20 rows run through one
while the other waits; then both read all rows in one go, in turn. What is printed are medians: milliseconds a tiny
batch and how far the two of a pair are apart, rows a second and how many times as fast ours is in a pair.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = 4
DELAY_MS = 4_000
START_US = 1_700_000_000_000_000
TOPICS = {False: "spark_ticks", True: "own_ticks"}  # by whether the watermark is ours
DDL = """
CREATE STREAM {name} (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH (partitions = {partitions}, fsync = 'never')
"""


class Query:
    """One of the two queries, running."""

    def __init__(self, db: penstock.Database, *, own: bool, checkpoint: str) -> None:
        from pyspark.sql import functions as f

        from penstock.connectors.reading import Reading, Scan
        from penstock.connectors.scan_frames import stream_frame
        from penstock.connectors.topic_reader import TopicDataSource
        from penstock.spark.session import SparkSettings, shared_session
        from penstock.spark.watch import Watch
        from penstock.spark.watermark_calls import QueryHandle, delayed, own_watermark
        from penstock.stores.topics import topic_directory

        self._watch = Watch()
        spark = shared_session(SparkSettings(log_directory=db.path / "logs")).newSession()
        place = {"directory": str(topic_directory(db.path / "topics", TOPICS[own]).absolute())}
        columns = [("k", "BIGINT"), ("ts", "TIMESTAMP"), ("__partition", "INT")]
        rows = stream_frame(spark, TopicDataSource, columns, Scan(place, Reading(run=1)), f"own{own}")
        if own:
            usable = f.col("ts").isNotNull() & f.col("__partition").isNotNull()
            shown = (f.lit(False), usable, f.col("__partition"), f.unix_micros("ts"))
            rows = self._watch.over(own_watermark(rows, "ts"), *shown)
            rows = rows.select("k", delayed("ts", DELAY_MS))
        else:
            rows = rows.drop("__partition").withWatermark("ts", f"{DELAY_MS} milliseconds")
        counted = rows.groupBy("k", f.window("ts", "10 seconds")).count()
        self._own = own
        self.batches = 0
        self._handle: QueryHandle | None = None
        self.query: StreamingQuery = (
            counted.writeStream.outputMode("append")
            .foreachBatch(self._take)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        if own:
            self._handle = QueryHandle(self.query)

    def _take(self, frame: DataFrame, _: int) -> None:
        self.batches += 1
        frame.write.format("noop").mode("overwrite").save()
        if self._handle is not None:
            maxima = [value for name, value in self._watch.taken().items() if name.startswith("max")]
            if maxima:
                reached = min(maxima) // 1000 - DELAY_MS
                if reached > self._handle.watermark_ms():
                    self._handle.set_inside(reached)

    def timed(self) -> float:
        """Seconds until all that is there has been read."""
        begun = time.perf_counter()
        self.query.processAllAvailable()
        return time.perf_counter() - begun


def rows_of(first: int, count: int, chance: random.Random) -> Any:
    """Rows of a tenth of a millisecond each, up to a second out of order."""
    import pyarrow as pa

    times = [START_US + (first + n) * 100 + chance.randrange(1_000_000) for n in range(count)]
    ts = pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table({"k": [chance.randrange(100) for _ in range(count)], "ts": ts})


def tiny(db: penstock.Database, batches: int, chance: random.Random) -> None:
    """Batches of 20 rows, through both queries in turn; time that moves on adds a batch without rows now and then."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        queries = {"Spark": Query(db, own=False, checkpoint=one), "ours": Query(db, own=True, checkpoint=two)}
        taken: dict[str, list[float]] = {name: [] for name in queries}
        for number in range(batches + 10):
            rows = rows_of(number * 20, 20, chance)
            for name in list(queries) if number % 2 else reversed(queries):
                db.append(TOPICS[name == "ours"], rows, partition=number % PARTITIONS)
                before = queries[name].batches
                spent = queries[name].timed()
                if number >= 10:
                    taken[name].append(spent * 1000 / (queries[name].batches - before))
        for query in queries.values():
            query.query.stop()
    medians = {name: statistics.median(found) for name, found in taken.items()}
    apart = statistics.median(ours - spark for ours, spark in zip(taken["ours"], taken["Spark"], strict=True))
    print(f"tiny batches: Spark {medians['Spark']:.0f} ms, ours {medians['ours']:.0f} ms, of pairs {apart:+.1f} ms")


def large(db: penstock.Database, rows: int, rounds: int, chance: random.Random) -> None:
    """All rows from the start, by one query after the other."""
    for partition in range(PARTITIONS):
        for first in range(0, rows // PARTITIONS, 50_000):
            table = rows_of(first * PARTITIONS, 50_000, chance)
            for topic in TOPICS.values():
                db.append(topic, table, partition=partition)
    taken: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 1):
        for own in (False, True) if number % 2 else (True, False):
            with tempfile.TemporaryDirectory() as checkpoint:
                begun = time.perf_counter()
                running = Query(db, own=own, checkpoint=checkpoint)
                running.timed()
                if number:
                    taken[own].append(time.perf_counter() - begun)
                running.query.stop()
    spark, ours = (rows / statistics.median(taken[own]) / 1000 for own in (False, True))
    ratio = statistics.median(theirs / own for theirs, own in zip(taken[False], taken[True], strict=True))
    print(f"{rows:,} rows: Spark {spark:.0f} k/s, ours {ours:.0f} k/s, of pairs {ratio:.2f}")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tiny", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    chance = random.Random(7)  # noqa: S311 - the same rows each time
    with tempfile.TemporaryDirectory() as home, penstock.connect(Path(home) / "state") as db:
        for topic in TOPICS.values():
            db.execute(DDL.format(name=topic, partitions=PARTITIONS))
        tiny(db, arguments.tiny, chance)
        large(db, arguments.rows, arguments.rounds, chance)


if __name__ == "__main__":
    main()
