"""What a function of the user costs beside the same expression of Spark's own.

    python -m benchmarks.functions [--rows 1000000] [--rounds 3]

Two measurements, interleaved round by round; printed is the median and the ratio to the built-in expression. `alone`:
Spark makes the rows itself, computes the column and throws it away. `in a job`: a job reads the rows from an embedded
topic and writes to blackhole, timed from the statement that starts it to the commit of the last row. Behind them a loop
for each value, as plain Python and, where it is installed, compiled with Numba.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock
from penstock.runtime.engine import Engine

CALLS = {
    "built-in": "v * 1.19",
    "over Arrow": "arrow_tax(v)",
    "over pandas": "pandas_tax(v)",
    "over values": "value_tax(v)",
    "PySpark's udf": "plain_tax(v)",  # rows are pickled one by one; for comparison, in the first measurement only
}


def arrow_tax(values: pa.Array) -> pa.Array:
    """The function over arrays."""
    return pc.multiply(values, 1.19)


def value_tax(value: float) -> float:
    """The function over single values."""
    return value * 1.19


def fill(db: penstock.Database, rows: int) -> None:
    """A topic of two partitions, half of the rows in each."""
    db.execute("CREATE STREAM prices (v DOUBLE) WITH (partitions = 2, fsync = 'never')")
    values = pa.array(range(rows), pa.float64())
    for partition in range(2):
        half = values.slice(partition * (rows // 2), rows // 2)
        for start in range(0, len(half), 50_000):
            db.append("prices", pa.table({"v": half.slice(start, 50_000)}), partition=partition)


def alone(engine: Engine, rows: int) -> Callable[[str], float]:
    """Seconds for one call over rows that Spark makes."""
    from pyspark.sql.functions import udf

    spark = engine.home.spark().newSession()
    engine.functions.make_ready(spark, ["arrow_tax", "pandas_tax", "value_tax"])
    spark.udf.register("plain_tax", udf(value_tax, "double", useArrow=False))
    frame = spark.range(rows, numPartitions=2).selectExpr("CAST(id AS DOUBLE) AS v")

    def run(call: str) -> float:
        started = time.perf_counter()
        frame.selectExpr(f"{call} AS x").write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    return run


def in_a_job(db: penstock.Database) -> Callable[[str], float]:
    """Seconds for a job over the topic."""

    def run(call: str) -> float:
        started = time.perf_counter()
        db.execute(f"CREATE SINK measured WITH (connector = 'blackhole') AS SELECT {call} AS x FROM prices")
        db.settle(600)
        took = time.perf_counter() - started
        db.execute("DROP SINK measured")
        return took

    return run


def collatz(values: np.ndarray) -> np.ndarray:
    """A loop for each value, as no array function has it."""
    steps = values.copy()
    for place in range(len(values)):
        value, steps[place] = values[place], 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps[place] += 1
    return steps


def loops(db: penstock.Database) -> dict[str, str]:
    """The loop as plain Python and, where it is installed, compiled with Numba."""

    def plain_steps(value: float) -> int:
        return int(collatz(np.array([int(value)]))[0])

    db.register_function("plain_steps", plain_steps)
    calls = {"built-in": "v * 1.19", "a loop": "plain_steps(v)"}
    if importlib.util.find_spec("numba") is not None:
        compiled = importlib.import_module("numba").njit(collatz)

        def numba_steps(values: pa.Array) -> pa.Array:
            return pa.array(compiled(values.to_numpy().astype("int64")))

        db.register_function("numba_steps", numba_steps, ["DOUBLE"], "BIGINT")
        calls["with Numba"] = "numba_steps(v)"
    return calls


def measured(run: Callable[[str], float], calls: dict[str, str], rounds: int) -> dict[str, float]:
    """The median of each call; a round before the first warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            took = run(call)
            if number:
                times[name].append(took)
    return {name: statistics.median(found) for name, found in times.items()}


def show(title: str, found: dict[str, float], rows: int) -> None:
    """Print one measurement."""
    print(title)
    for name, seconds in found.items():
        ratio = seconds / found["built-in"]
        print(f"  {name:14} {seconds:7.2f} s   {rows / seconds / 1000:8.0f} k rows/s   {ratio:5.1f}")


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        engine = Engine(Path(directory) / "state", {})
        db = penstock.Database(engine)
        fill(db, asked.rows)
        db.register_function("arrow_tax", arrow_tax, ["DOUBLE"], "DOUBLE")
        db.register_function("pandas_tax", lambda v: v * 1.19, ["DOUBLE"], "DOUBLE", takes="pandas")
        db.register_function("value_tax", value_tax)
        show(f"alone, {asked.rows} rows", measured(alone(engine, asked.rows), CALLS, asked.rounds), asked.rows)
        own = {name: call for name, call in CALLS.items() if name != "PySpark's udf"}
        show(f"in a job, {asked.rows} rows", measured(in_a_job(db), own, asked.rounds), asked.rows)
        show(f"a loop in a job, {asked.rows} rows", measured(in_a_job(db), loops(db), asked.rounds), asked.rows)
        db.close()


if __name__ == "__main__":
    main()
