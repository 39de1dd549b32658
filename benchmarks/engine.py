"""How fast jobs run, beside PySpark written by hand.

    python -m benchmarks.engine [--rows 3000000] [--rounds 3] [--only tumble] [--latency]

JSON bids lie in an embedded topic of four partitions. Each query runs as a Penstock job into a view, as a Penstock job
into blackhole, and as PySpark a careful person would write: the same source, `from_json` with the whole schema, Spark's
own watermark, RocksDB state with changelog checkpoints, a checkpoint directory, `noop`. The runs are interleaved, round
by round; what is printed is the median of the rounds and the ratio to PySpark. A run is timed from the statement that
starts it to the commit of the last row that was there.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock

PARTITIONS = 4
SCHEMA = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP, extra STRING"
DDL = f"""
CREATE STREAM bids ({SCHEMA}, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH (connector = 'topic', format = 'json', partitions = {PARTITIONS}, fsync = 'never')
"""
QUERIES = {
    "filter": "SELECT auction, price FROM bids WHERE price > 9000",
    "tumble": (
        "SELECT auction, TUMBLE_START(ts, INTERVAL '10' SECOND) AS start, COUNT(*) AS n, MAX(price) AS top "
        "FROM bids GROUP BY auction, TUMBLE(ts, INTERVAL '10' SECOND)"
    ),
    "hop": (
        "SELECT auction, HOP_START(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND) AS start, COUNT(*) AS n "
        "FROM bids GROUP BY auction, HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
    ),
    "keyed sum": "SELECT auction, COUNT(*) AS n, SUM(price) AS total FROM bids GROUP BY auction",
}


def fill(db: penstock.Database, rows: int, auctions: int = 2_000) -> None:
    """Bids over five minutes, a second or two out of order."""
    import pyarrow as pa

    chance = random.Random(7)  # noqa: S311 - the same bids each time
    start, chunk = 1_700_000_000_000, 50_000
    for first in range(0, rows, chunk):
        values = []
        for number in range(first, min(rows, first + chunk)):
            at = start + number * 300_000 // rows + chance.randrange(2000)
            values.append(
                f'{{"auction":{chance.randrange(auctions)},"bidder":{chance.randrange(100_000)},'
                f'"price":{chance.randrange(10_000)},"channel":"web","url":"u/{number % 997}","ts":{at},'
                f'"extra":"{"x" * 60}"}}'.encode()
            )
        for partition in range(PARTITIONS):
            part = pa.array(values[partition::PARTITIONS], pa.binary()).to_pylist()
            db.append("bids", part, partition=partition)


def ours(db: penstock.Database, name: str, target: str) -> float:
    """Seconds for one Penstock job."""
    statement = (
        f"CREATE MATERIALIZED VIEW measured AS {QUERIES[name]}"
        if target == "view"
        else f"CREATE SINK measured WITH (connector = 'blackhole') AS {QUERIES[name]}"
    )
    begun = time.perf_counter()
    db.execute(statement)
    db.settle(timeout=3600)
    taken = time.perf_counter() - begun
    db.execute("DROP MATERIALIZED VIEW measured" if target == "view" else "DROP SINK measured")
    return taken


def by_hand(db: penstock.Database, name: str, rows: int) -> float:
    """Seconds for the query as PySpark."""
    from pyspark.sql import functions as f

    from penstock.connectors.reading import Reading, Scan
    from penstock.connectors.scan_frames import stream_frame
    from penstock.connectors.topic_reader import TopicDataSource
    from penstock.spark.session import SparkSettings, shared_session
    from penstock.stores.topics import topic_directory

    spark = shared_session(SparkSettings(log_directory=db.path / "logs")).newSession()
    place = {"directory": str(topic_directory(db.path / "topics", "bids").absolute())}
    source = stream_frame(
        spark, TopicDataSource, [("__value", "BINARY")], Scan(place, Reading(run=1)), f"plain{time.monotonic_ns()}"
    )
    schema = SCHEMA.replace("ts TIMESTAMP", "ts BIGINT")
    bids = source.select(f.from_json(f.col("__value").cast("string"), schema).alias("r")).select("r.*")
    bids = bids.withColumn("ts", f.timestamp_millis("ts")).withWatermark("ts", "4 seconds")
    mode = "append"
    if name == "filter":
        result = bids.where("price > 9000").select("auction", "price")
    elif name == "tumble":
        result = bids.groupBy("auction", f.window("ts", "10 seconds")).agg(f.count("*"), f.max("price"))
    elif name == "hop":
        result = bids.groupBy("auction", f.window("ts", "10 seconds", "2 seconds")).agg(f.count("*"))
    else:
        result, mode = bids.groupBy("auction").agg(f.count("*"), f.sum("price")), "update"
    with tempfile.TemporaryDirectory() as checkpoint:
        begun = time.perf_counter()
        query = result.writeStream.format("noop").outputMode(mode).option("checkpointLocation", checkpoint).start()
        # Not `availableNow`: with a source in Python Spark takes one batch then, and leaves the rest.
        query.processAllAvailable()
        taken = time.perf_counter() - begun
        read = sum(progress["numInputRows"] for progress in query.recentProgress)
        query.stop()
        assert read == rows, f"PySpark read {read} rows of {rows}"
        return taken


def latency(db: penstock.Database, rounds: int) -> list[float]:
    """Seconds from an append of 20 rows to their being visible in a view."""
    db.execute("CREATE STREAM ticks (symbol STRING, price DOUBLE, ts TIMESTAMP) WITH (connector = 'topic')")
    db.execute("CREATE MATERIALIZED VIEW seen AS SELECT symbol, COUNT(*) AS n FROM ticks GROUP BY symbol")
    taken = []
    changes = db.subscribe("seen")
    for number in range(1, rounds + 1):
        begun = time.perf_counter()
        db.append("ticks", [{"symbol": "A", "price": 1.0, "ts": number * 1000} for _ in range(20)])
        while True:
            change = next(changes)
            if change.row is not None and change.row["n"] == number * 20:
                break
        taken.append(time.perf_counter() - begun)
        time.sleep(0.05)  # the next rows find the job waiting, as rows do that come now and then
    return taken


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(QUERIES))
    parser.add_argument("--latency", action="store_true", help="measure only from append to visible")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, penstock.connect(Path(home) / "state") as db:
        db.execute(DDL)
        if not arguments.latency:
            throughput(db, arguments)
        taken = sorted(latency(db, 60)[10:])
        print(
            f"append to visible, 20 rows: p50 {taken[len(taken) // 2] * 1000:.0f} ms, "
            f"p90 {taken[len(taken) * 9 // 10] * 1000:.0f} ms, of {len(taken)}"
        )


def throughput(db: penstock.Database, arguments: Any) -> None:
    """The table of queries and targets."""
    fill(db, arguments.rows)
    ours(db, "filter", "blackhole")  # the first batch of a session pays for its start
    print(f"{arguments.rows:,} rows, medians of {arguments.rounds} interleaved rounds, thousand rows a second")
    print(f"{'query':10} {'PySpark':>9} {'blackhole':>10} {'ratio':>6} {'view':>8} {'ratio':>6}")
    for name in [arguments.only] if arguments.only else QUERIES:
        runs: dict[str, Callable[[], float]] = {
            "hand": lambda name=name: by_hand(db, name, arguments.rows),  # type: ignore[misc]
            "blackhole": lambda name=name: ours(db, name, "blackhole"),  # type: ignore[misc]
            "view": lambda name=name: ours(db, name, "view"),  # type: ignore[misc]
        }
        times: dict[str, list[float]] = {key: [] for key in runs}
        for _ in range(arguments.rounds):
            for key, run in runs.items():
                times[key].append(run())
        speed = {key: arguments.rows / statistics.median(found) / 1000 for key, found in times.items()}
        print(
            f"{name:10} {speed['hand']:9.0f} {speed['blackhole']:10.0f} {speed['blackhole'] / speed['hand']:6.2f} "
            f"{speed['view']:8.0f} {speed['view'] / speed['hand']:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
