"""What the texts that Penstock answers claim in numbers, measured here.

    python -m benchmarks.claims [--keys 1000000] [--rows 1000000] [--rounds 3]

state: how long Spark takes to make the state of so many keys durable at the end of a batch, of which every key was
touched, as changes and written whole.
windows: a tumbling window over batches of 10,000 rows: rows a second, and what a batch costs to coordinate, which is
writing its offsets down before it and its end behind it.
readers: rows a second of a filter over JSON in four partitions, by how many tasks read them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import penstock

BATCH = 10_000
PARTITIONS = 4
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def commits(home: Path, keys: int, *, changelog: bool, batches: int = 4) -> tuple[list[int], int]:
    """Milliseconds that the tasks of each batch took to commit, together, and how many keys there were."""
    from pyspark.sql import functions as f

    from penstock.spark.session import SparkSettings, shared_session

    spark = shared_session(SparkSettings(log_directory=home / "logs")).newSession()
    spark.conf.set(CHANGELOG, str(changelog).lower())
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", keys).load()
    counted = rows.groupBy((f.col("value") % keys).alias("k")).agg(f.count("*"), f.sum("value"))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
        query = writer.start()
        while query.lastProgress is None or query.lastProgress.batchId < batches:
            failure = query.exception()
            if failure is not None:
                raise failure
            time.sleep(0.2)
        found = [progress.stateOperators[0] for progress in query.recentProgress if progress.batchId > 0]
        query.stop()
    return [operator.commitTimeMs for operator in found], found[-1].numRowsTotal


def windows(home: Path, rows: int) -> dict[str, float]:
    """A tumbling window over batches of 10,000 rows."""
    import pyarrow as pa

    with penstock.connect(home) as db:
        db.execute(f"""
            CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts)
            WITH (connector = 'topic', fsync = 'never', max_rows_per_batch = {BATCH})
        """)
        for first in range(0, rows, BATCH):
            numbers = range(first, first + BATCH)
            table = {
                "symbol": [f"s{n % 500}" for n in numbers],
                "price": [float(n % 997) for n in numbers],
                "ts": [1_700_000_000_000 + n for n in numbers],
            }
            db.append("trades", pa.table(table))
        db.execute("""
            CREATE MATERIALIZED VIEW measured AS
            SELECT symbol, TUMBLE_START(ts, INTERVAL '10' SECOND) AS start, COUNT(*) AS n, SUM(price) AS total,
                   AVG(price) AS mean, MIN(price) AS low, MAX(price) AS high
            FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '10' SECOND)
        """)
        db.settle(3600)
        query: Any = db._engine.jobs["measured"].run._query  # type: ignore[union-attr]  # noqa: SLF001
        found = [progress for progress in query.recentProgress if progress.numInputRows == BATCH][2:]
    spent = [progress.batchDuration for progress in found]
    coordinated = [progress.durationMs["walCommit"] + progress.durationMs["commitOffsets"] for progress in found]
    return {
        "rows a second": 1000 * BATCH / statistics.median(spent),
        "batch, ms": statistics.median(spent),
        "coordination, ms": statistics.median(coordinated),
        "coordination, 90 %, ms": sorted(coordinated)[int(0.9 * len(coordinated))],
    }


def readers(home: Path, rows: int, rounds: int) -> dict[int, float]:
    """Rows a second by the number of tasks that read."""
    with penstock.connect(home) as db:
        for most in (1, 2, PARTITIONS):
            db.execute(f"""
                CREATE STREAM bids{most} (auction BIGINT, price BIGINT, url STRING)
                WITH (connector = 'topic', topic = 'bids', format = 'json', partitions = {PARTITIONS}, fsync = 'never',
                      max_parallelism = {most})
            """)
        step = 50_000
        for first in range(0, rows, step):
            lines = [
                b'{"auction":%d,"price":%d,"url":"u/%d"}' % (n, n % 10_000, n % 997) for n in range(first, first + step)
            ]
            for partition in range(PARTITIONS):
                db.append("bids1", lines[partition::PARTITIONS], partition=partition)
        taken: dict[int, list[float]] = {1: [], 2: [], PARTITIONS: []}
        for _ in range(rounds + 1):
            for most, found in taken.items():
                begun = time.perf_counter()
                db.execute(
                    f"CREATE SINK k WITH (connector = 'blackhole') AS SELECT auction FROM bids{most} WHERE price > 9000"
                )
                db.settle(3600)
                found.append(time.perf_counter() - begun)
                db.execute("DROP SINK k")
    # The first round pays for what is warm afterwards.
    return {most: rows / statistics.median(found[1:]) for most, found in taken.items()}


def main() -> None:
    """Measure, and print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for changelog in (True, False):
            spent, keys = commits(home / "state", asked.keys, changelog=changelog)
            name = "as changes" if changelog else "written whole"
            print(f"state of {keys:,} keys, {name}: commit {statistics.median(spent):.0f} ms, longest {max(spent)} ms")
        for name, value in windows(home / "windows", min(asked.rows, 50 * BATCH)).items():
            print(f"windows, batches of {BATCH:,}: {name} {value:,.0f}")
        for most, value in readers(home / "readers", asked.rows, asked.rounds).items():
            print(f"readers {most}: {value:,.0f} rows/s")


if __name__ == "__main__":
    main()
