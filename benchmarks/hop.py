"""Hopping windows: kept as panes by the view store, in Spark's state, and by PySpark written by hand.

    python -m benchmarks.hop [--rows 1000000] [--keys 2000] [--rounds 3] [--only "hop 60 s / 1 s"]

The bids of benchmarks/engine.py, over five minutes. Each query runs as PySpark by hand into `noop`, as a view with
`state = 'spark'`, and as a view as it is planned; interleaved, round by round. What is printed is the median of the
rounds in thousand rows a second, and how many times as fast as the other two the view is.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import penstock
from benchmarks.engine import DDL, SCHEMA, fill

# size and slide in seconds
WINDOWS = {
    "tumble 10 s": (10, 10),
    "hop 10 s / 5 s": (10, 5),
    "hop 10 s / 2 s": (10, 2),
    "hop 60 s / 1 s": (60, 1),
}


def query(name: str) -> str:
    """The query of a name, in SQL."""
    size, slide = WINDOWS[name]
    window = f"HOP(ts, INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND)"
    if size == slide:
        window = f"TUMBLE(ts, INTERVAL '{size}' SECOND)"
    start = window.replace("(", "_START(", 1)
    return f"SELECT auction, {start} AS start, COUNT(*) AS n, MAX(price) AS top FROM bids GROUP BY auction, {window}"


def view(db: penstock.Database, name: str, options: str) -> tuple[float, int]:
    """Seconds for a view, and how many rows it has."""
    begun = time.perf_counter()
    db.execute(f"CREATE MATERIALIZED VIEW measured {options} AS {query(name)}")
    db.settle(timeout=3600)
    taken = time.perf_counter() - begun
    rows = db.sql("SELECT COUNT(*) FROM measured").rows()[0][0]
    db.execute("DROP MATERIALIZED VIEW measured")
    return taken, rows


def by_hand(db: penstock.Database, name: str) -> float:
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
    rows = source.select(f.from_json(f.col("__value").cast("string"), schema).alias("r")).select("r.*")
    rows = rows.withColumn("ts", f.timestamp_millis("ts")).withWatermark("ts", "4 seconds")
    size, slide = WINDOWS[name]
    window = f.window("ts", f"{size} seconds", f"{slide} seconds")
    result = rows.groupBy("auction", window).agg(f.count("*"), f.max("price"))
    with tempfile.TemporaryDirectory() as checkpoint:
        begun = time.perf_counter()
        started = (
            result.writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        started.awaitTermination()
        return time.perf_counter() - begun


def measure(db: penstock.Database, name: str, rows: int, rounds: int) -> str:
    """A line of the table."""
    counts: set[int] = set()

    def ours(options: str) -> float:
        taken, found = view(db, name, options)
        counts.add(found)
        return taken

    runs: dict[str, Callable[[], float]] = {
        "hand": lambda: by_hand(db, name),
        "spark": lambda: ours("WITH (state = 'spark')"),
        "view": lambda: ours(""),
    }
    times: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            times[key].append(run())
    if len(counts) != 1:
        raise SystemExit(f"{name}: the views have different numbers of rows: {counts}")
    speed = {key: rows / statistics.median(found) / 1000 for key, found in times.items()}
    return (
        f"{name:16} {speed['hand']:9.0f} {speed['spark']:12.0f} {speed['view']:9.0f} "
        f"{speed['view'] / speed['spark']:10.2f} {speed['view'] / speed['hand']:10.2f}   {counts.pop():,} rows out"
    )


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(WINDOWS), nargs="+", default=list(WINDOWS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, penstock.connect(Path(home) / "state") as db:
        db.execute(DDL)
        fill(db, arguments.rows, arguments.keys)
        view(db, "tumble 10 s", "")  # the first batch of a session pays for its start
        print(
            f"{arguments.rows:,} rows, {arguments.keys:,} keys, medians of {arguments.rounds}, thousand rows a second"
        )
        print(f"{'window':16} {'PySpark':>9} {'Spark state':>12} {'view':>9} {'to state':>10} {'to PySpark':>10}")
        for name in arguments.only:
            print(measure(db, name, arguments.rows, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
