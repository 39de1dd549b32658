"""How fast Spark reads embedded topics: rows a second from backlog, and milliseconds from append to the job.

    python -m benchmarks.topic_read [--rows 3000000] [--batches 60]

The rows are typed bids (seven columns) in four partitions, read into Spark's noop sink. Latency is measured with 20
rows at a time, from before the append until the batch's callback has the rows, once with rows handed over by the reader
and once with Python workers in Spark's tasks. Figures of a loaded machine are of no use; run it alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.reading import Reading, Scan
from penstock.connectors.scan_frames import stream_frame
from penstock.connectors.topic_reader import TopicDataSource
from penstock.spark.session import SparkSettings, jvm_pid, shared_session, stop_session
from penstock.stores.topics import Topic, TopicLayout, TopicStore, topic_directory
from penstock.types import BIGINT, DOUBLE, STRING, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    ("auction", BIGINT),
    ("bidder", BIGINT),
    ("price", DOUBLE),
    ("channel", STRING),
    ("url", STRING),
    ("ts", TIMESTAMP),
    ("extra", STRING),
)
PARTITIONS = 4
CHUNK = 50_000


def bids(count: int) -> pa.Table:
    """Rows to append."""
    numbers = pa.arange(0, count)
    return pa.table(
        {
            "auction": numbers,
            "bidder": numbers,
            "price": numbers.cast(pa.float64()),
            "channel": pa.repeat("apple", count),
            "url": pa.repeat("https://www.nexmark.com/item.htm?query=1", count),
            "ts": numbers.cast(pa.timestamp("us", tz="UTC")),
            "extra": pa.repeat("abcdefghijklmnopqrstuvwxyz", count),
        }
    )


class Bench:
    """A session, a topic and a directory for checkpoints."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark = spark
        self._home = home
        self._store = TopicStore(home / "topics")
        self._checkpoints = 0

    def topic(self, name: str) -> Topic:
        return self._store.create(name, TopicLayout(COLUMNS, partitions=PARTITIONS, fsync="never"))

    def frame(self, topic: str, reading: Reading, names: tuple[str, ...] | None = None) -> DataFrame:
        columns = [(name, kind.spark()) for name, kind in COLUMNS if names is None or name in names]
        place = {"directory": str(topic_directory(self._home / "topics", topic).absolute())}
        columns += [("__partition", "INT"), ("__offset", "BIGINT")]
        return stream_frame(self._spark, TopicDataSource, columns, Scan(place, reading), topic)

    def start(self, frame: DataFrame, each: Callable[[DataFrame, int], None]) -> Any:
        self._checkpoints += 1
        checkpoint = self._home / f"checkpoint{self._checkpoints}"
        return frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint)).start()


def throughput(bench: Bench, rows: int, batch_rows: int, batch_size: int, names: tuple[str, ...] | None) -> float:
    """Rows a second from the second batch on: the first one pays for a cold session."""
    done: dict[int, float] = {}

    def each(frame: DataFrame, batch_id: int) -> None:
        frame.write.format("noop").mode("overwrite").save()
        done[batch_id] = time.perf_counter()

    batches = -(-rows // batch_rows)
    reading = Reading(run=1, max_rows=batch_rows, batch_size=batch_size)
    query = bench.start(bench.frame("backlog", reading, names), each)
    try:
        while len(done) < batches:
            if query.exception() is not None:
                raise query.exception()
            time.sleep(0.01)
    finally:
        query.stop()
    return (rows - batch_rows) / (done[batches - 1] - done[0])


def latency(bench: Bench, batches: int, prefetch_rows: int, wait_ms: int) -> tuple[list[float], float]:
    """Milliseconds from append to callback, sorted; and the share of a core that the idle job takes."""
    topic = bench.topic(f"live{time.monotonic_ns()}")
    seen: dict[int, float] = {}
    rows = 0

    def each(frame: DataFrame, batch_id: int) -> None:
        nonlocal rows
        rows += frame.toArrow().num_rows
        seen[batch_id] = time.perf_counter()

    reading = Reading(run=1, prefetch_rows=prefetch_rows, wait_ms=wait_ms)
    query = bench.start(bench.frame(topic.name, reading), each)
    taken: list[float] = []
    try:
        while not seen:
            time.sleep(0.01)
        for number in range(batches):
            time.sleep(0.06 + number % 7 * 0.005)
            before, appended = max(seen), time.perf_counter()
            topic.append(number % PARTITIONS, bids(20))
            while max(seen) == before:
                time.sleep(0.0005)
            taken.append((seen[max(seen)] - appended) * 1000)
        assert rows == 20 * batches
        time.sleep(0.5)
        used, begun = cpu_seconds(), time.perf_counter()
        time.sleep(4)
        idle = (cpu_seconds() - used) / (time.perf_counter() - begun)
    finally:
        query.stop()
    return sorted(taken[batches // 4 :]), idle


def cpu_seconds() -> float:
    """What Spark's JVM and its Python processes have used."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            ticks[int(entry.name)] = int(fields[11]) + int(fields[12])
    waiting, total = [jvm_pid() or 0], 0
    while waiting:
        process = waiting.pop()
        total += ticks.get(process, 0)
        waiting += children.get(process, [])
    return total / 100


def main() -> None:
    """Measure, and print one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2, help="how often latency is measured each way")
    parser.add_argument("--live-only", action="store_true", help="leave the backlog out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        spark = shared_session(SparkSettings(Path(home) / "log", parallelism=2))
        try:
            bench = Bench(spark, Path(home))
            if not given.live_only:
                measure_backlog(bench, given.rows)
            for _ in range(given.rounds):
                measure_live(bench, given.batches)
        finally:
            stop_session()


def measure_backlog(bench: Bench, rows: int) -> None:
    """How fast rows are read that have been waiting."""
    topic, chunk, begun = bench.topic("backlog"), bids(CHUNK), time.perf_counter()
    for number in range(rows // CHUNK):
        topic.append(number % PARTITIONS, chunk)
    print(f"append                              {rows / (time.perf_counter() - begun):12,.0f} rows/s", flush=True)
    for batch_rows, batch_size, names in (
        (1_000_000, 10_000, None),
        (1_000_000, 10_000, ("auction", "price", "ts")),
        (1_000_000, 50_000, None),
        (500_000, 10_000, None),
        (200_000, 10_000, None),
    ):
        found = throughput(bench, rows, batch_rows, batch_size, names)
        what = f"{batch_rows:,} a batch, {batch_size:,} fetched, {len(names or COLUMNS)} columns"
        print(f"read  {what:50}{found:12,.0f} rows/s", flush=True)


def measure_live(bench: Bench, batches: int) -> None:
    """How long rows take that come a few at a time, and what waiting for them costs."""
    for prefetch_rows, wait_ms in ((2_000, 0), (0, 0), (2_000, 40), (0, 40)):
        taken, idle = latency(bench, batches, prefetch_rows, wait_ms)
        how = "handed over" if prefetch_rows else "by workers"
        p50, p95 = statistics.median(taken), taken[int(len(taken) * 0.95)]
        what = f"{how}, waits {wait_ms} ms"
        print(f"live  {what:30}p50 {p50:5.0f} ms   p95 {p95:5.0f} ms   idle {idle:5.1%} of a core", flush=True)


if __name__ == "__main__":
    main()
