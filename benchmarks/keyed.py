"""A keyed count into a view: merged by the view store, and in Spark's update mode into the same view.

    python -m benchmarks.keyed [--rows 4000000] [--keys 1000000] [--rounds 3]

The bids of benchmarks/engine.py. The view counts them by key, once as it is planned, where Spark aggregates each batch
and the store merges it, and once `WITH (state = 'spark')`, where Spark keeps every key in RocksDB and the store
replaces its row; interleaved, round by round. What is printed is the median of the rounds in thousand rows a second,
and the ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import penstock
from benchmarks.engine import DDL, fill

OPTIONS = {"store": "", "spark": "WITH (state = 'spark', state_backend = 'rocksdb')"}
QUERY = "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction"


def measured(db: penstock.Database, state: str) -> tuple[float, list[tuple[object, ...]]]:
    """Seconds from the statement to the last row, and what the view holds in all."""
    begun = time.perf_counter()
    db.execute(f"CREATE MATERIALIZED VIEW measured {OPTIONS[state]} AS {QUERY}")
    db.settle(timeout=3600)
    taken = time.perf_counter() - begun
    whole = db.sql("SELECT COUNT(*), SUM(n), SUM(n * auction) FROM measured").rows()
    db.execute("DROP MATERIALIZED VIEW measured")
    return taken, whole


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {state: [] for state in OPTIONS}
    with tempfile.TemporaryDirectory() as home, penstock.connect(Path(home) / "state") as db:
        db.execute(DDL)
        fill(db, arguments.rows, arguments.keys)
        for state in OPTIONS:
            measured(db, state)  # the first batches of a session pay for its start, and for code that is not yet warm
        for _ in range(arguments.rounds):
            answers = set()
            for state, found in times.items():
                taken, whole = measured(db, state)
                found.append(taken)
                answers.add(tuple(whole))
            if len(answers) != 1:
                raise SystemExit(f"the views differ: {answers}")
    speed = {state: arguments.rows / statistics.median(found) / 1000 for state, found in times.items()}
    print(f"{arguments.rows:,} rows, {arguments.keys:,} keys, medians of {arguments.rounds}")
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    print(f"store {speed['store']:.0f} k rows/s, Spark's update mode {speed['spark']:.0f} k rows/s")
    print(f"ratio {speed['store'] / speed['spark']:.2f}")


if __name__ == "__main__":
    main()
