"""What a join with a dimension costs a batch, by the size of the dimension and the way it is joined.

    python -m benchmarks.dimensions [--rows 10000 1000000 10000000] [--methods none broadcast lookup shuffle]
                                    [--batches 20] [--driver-memory 4096]

Each line of the table is a program of its own: a stream of four partitions, a dimension of (id BIGINT, name STRING,
sector STRING), and a view of a LEFT JOIN of the two; `none` is the view without a join. Told are: the seconds until a
new version is on disk and announced to the job; the median time from an append of 20 rows, and of 100,000 rows, to the
commit of the view; how long cores were busy with such a batch, in the JVM and the Python processes below it, which
tells more on a machine that does other things as well; the resident memory of the JVM, and that of all Python workers,
where pages that several of them map count once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from penstock.interfaces.database import Database
from penstock.runtime.engine import Engine

QUERIES = {
    "none": "SELECT id, price FROM trades",
    "join": "SELECT t.id, d.name, t.price FROM trades AS t LEFT JOIN dimension AS d ON t.id = d.id",
}
SMALL, LARGE = 20, 100_000


def dimension(rows: int, version: int) -> Any:
    """So many rows in no order; a version has names of its own."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = np.random.default_rng(version).permutation(rows)
    numbers = pa.array(ids)
    names = pc.binary_join_element_wise(f"name {version} of ", numbers.cast(pa.string()), "")
    sectors = pa.array([f"sector {place}" for place in range(20)]).take(pa.array(ids % 20))
    return pa.table({"id": numbers, "name": names, "sector": sectors})


def trades(rows: int, most: int, seed: int) -> Any:
    """Rows of the stream, half of which find a partner."""
    import numpy as np
    import pyarrow as pa

    source = np.random.default_rng(seed)
    return pa.table({"id": source.integers(0, most, rows), "price": source.random(rows)})


def measure(rows: int, method: str, batches: int, driver_memory: int) -> dict[str, Any]:
    """One line of the table, in this process."""
    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Path(home), {"driver_memory": driver_memory * 1024**2})
        engine.dimensions.join_methods.lookup_rows = 0 if method == "lookup" else 10**12
        db = Database(engine)
        db.execute("SET broadcast_max_bytes = '8 GB'")
        db.execute("CREATE STREAM trades (id BIGINT, price DOUBLE) WITH (connector = 'topic', partitions = 4)")
        db.register_dimension("dimension", dimension(rows, 1), broadcast=method != "shuffle")
        db.execute(f"CREATE MATERIALIZED VIEW joined AS {QUERIES['none' if method == 'none' else 'join']}")
        times(db, [trades(SMALL, 2 * rows, seed) for seed in range(5)])
        small, small_work = worked(db, [trades(SMALL, 2 * rows, seed) for seed in range(batches)])
        begun = time.perf_counter()
        if method != "none":
            db.update_dimension("dimension", dimension(rows, 2))
        update = time.perf_counter() - begun
        times(db, [trades(LARGE, 2 * rows, 0)])
        large, large_work = worked(db, [trades(LARGE, 2 * rows, seed) for seed in range(1, 4)])
        jvm, workers = memory()
        found = db.sql("SELECT COUNT(*) AS n, COUNT(price) AS p FROM joined").rows()[0]
        assert found[0] == SMALL * (batches + 5) + LARGE * 4, found
        db.close()
        return {
            "rows": rows,
            "method": method,
            "update s": update,
            "small ms": statistics.median(small),
            "work ms": small_work,
            "large ms": statistics.median(large),
            "large work": large_work,
            "JVM MB": jvm,
            "workers MB": workers,
        }


def times(db: Database, tables: list[Any]) -> list[float]:
    """Milliseconds for each table, appended one after the other."""
    found: list[float] = []
    for table in tables:
        begun = time.perf_counter()
        db.append("trades", table, partition=len(found) % 4)
        db.settle(timeout=600)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def worked(db: Database, tables: list[Any]) -> tuple[list[float], float]:
    """As `times`, and for how many milliseconds cores were busy with one of them."""
    before = busy_ms()
    found = times(db, tables)
    return found, (busy_ms() - before) / len(tables)


def busy_ms() -> float:
    """How long cores have been busy with the JVM and the processes below it, ended ones included."""
    ticks = 0
    for pid in processes():
        try:
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def processes() -> list[int]:
    """The JVM, then the processes below it."""
    from penstock.spark.session import jvm_pid

    jvm = jvm_pid()
    assert jvm is not None
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent == jvm or parent in below} - below:
        below |= more
    return [jvm, *below]


def memory() -> tuple[float, float]:
    """Megabytes of the JVM, and of the Python processes below it."""
    jvm, *below = processes()
    return _kilobytes(jvm, "status", "VmRSS") / 1024, sum(
        _kilobytes(pid, "smaps_rollup", "Pss") for pid in below
    ) / 1024


def _kilobytes(pid: int, file: str, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--methods", nargs="+", default=["none", "broadcast", "lookup", "shuffle"])
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--driver-memory", type=int, default=4096, help="megabytes")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.rows[0], options.methods[0], options.batches, options.driver_memory)))
        return
    heads = (
        "rows", "method", "update s", "small ms", "work ms", "large ms", "large work", "JVM MB", "workers MB"
    )  # fmt: skip
    print(f"{heads[0]:>10}  {heads[1]:<9}" + "".join(f"  {head:>10}" for head in heads[2:]), flush=True)
    for rows in options.rows:
        for method in options.methods:
            call = [sys.executable, __file__, "--one", "--rows", str(rows), "--methods", method]
            call += ["--batches", str(options.batches), "--driver-memory", str(options.driver_memory)]
            done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                print(f"{rows:>10}  {method:<9}  failed", flush=True)
                continue
            line = json.loads(done.stdout.splitlines()[-1])
            print(f"{rows:>10}  {method:<9}" + "".join(f"  {line[head]:>10.1f}" for head in heads[2:]), flush=True)


if __name__ == "__main__":
    main()
