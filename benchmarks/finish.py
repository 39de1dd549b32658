"""What it costs the view store to bring a view up to date whose answer changes: no Spark, one batch after the other.

    python -m benchmarks.finish [--keys 1000000] [--touched 1000] [--batches 20] [--only "top 10"] [--asked]

A view over `keys` keys is filled in one batch. Then batches come that touch some of the keys: random ones, and ones
among the newest 2 %. Printed are medians, the least and the worst in milliseconds, of the whole transaction, and for
how many milliseconds cores were busy with it at the least: that tells more where other things run too. The last lines
are of queries without a key, which are answered anew over everything after each batch: at a tenth of the keys, and at
all. With --asked there are only queries with expressions that the store asks Spark for, which is started for them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.plan.finish_plan import SIDE
from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from penstock.spark.asked_rows import AskedRows
from penstock.spark.session import SparkSettings, shared_session
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit, ViewSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.job_plan import JobPlan

STREAMS = """
CREATE STREAM l (k BIGINT, g BIGINT, id BIGINT, v BIGINT);
CREATE STREAM r (k BIGINT, w BIGINT);
"""
MEAN = "SELECT g, AVG(m) AS mean FROM (SELECT g, k, MAX(v) AS m FROM l GROUP BY g, k) GROUP BY g"
BY_KEY = {
    "mean of max, 5 groups": MEAN,
    "mean of max, 50,000 groups": MEAN,
    "mean of max of all": "SELECT AVG(m) AS mean FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k)",
    "top 10": "SELECT k, id, v FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 10",
    "LEFT JOIN": "SELECT l.k, l.id, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k",
    "COUNT(DISTINCT)": "SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k",
}
ASKED = {
    "LEFT JOIN, HEX of both": "SELECT l.k, l.id, l.v, HEX(l.v + r.w) AS h FROM l LEFT JOIN r ON l.k = r.k",
    "LEFT JOIN, two asked": "SELECT l.k, HEX(l.v + r.w) AS h, SQRT(l.v * r.w) AS s FROM l LEFT JOIN r ON l.k = r.k",
}
AS_A_WHOLE = {
    "ORDER BY LIMIT": "SELECT k, id, v FROM l ORDER BY v DESC LIMIT 100",
    "DENSE_RANK over all": "SELECT k, v, DENSE_RANK() OVER (ORDER BY v) AS n FROM l",
}
VIEW = "answer"


class Bench:
    """A view in a store of its own, and batches of rows as Spark would hand them over."""

    def __init__(self, query: str, groups: int, directory: Path, spark: AskedRows | None) -> None:
        analysis = analyze_script(f"{STREAMS} CREATE MATERIALIZED VIEW {VIEW} AS {query};")[-1].analysis
        assert analysis is not None
        assert analysis.plan is not None
        self.job: JobPlan = plan_job(analysis.plan)
        assert self.job.finish is not None
        self.finish = self.job.finish
        self.groups = groups
        self.chance = np.random.default_rng(1)
        self.store = ViewStore.open(directory)
        if spark is not None:
            self.store.ask_with(spark)
        columns = tuple((column.name, column.type) for column in self.job.columns if column.type is not None)
        self.store.create_view(ViewSpec(VIEW, columns, "finish", self.job.key, finish=self.finish))
        self.batch = 0

    def rows(self, keys: np.ndarray) -> pa.Table:
        """One row of each relation for each key."""
        parts = []
        for side, kept in enumerate(self.finish.rows):
            found = {SIDE: pa.array(np.full(len(keys), side, np.int32))}
            values = {"k": keys, "g": keys % self.groups}
            for other in self.finish.rows:
                for column, shown in zip(other.columns, other.shown, strict=True):
                    if other is not kept:
                        found[column.name] = pa.nulls(len(keys), pa.int64())
                    else:
                        given = values.get(shown)
                        made = self.chance.integers(0, 1_000_000, len(keys)) if given is None else given
                        found[column.name] = pa.array(made)
            parts.append(pa.table(found))
        return pa.concat_tables(parts)

    def commit(self, rows: pa.Table) -> tuple[float, float]:
        """How many milliseconds a batch took, and how many of them cores were busy."""
        start, busy = time.perf_counter(), time.process_time()
        self.store.commit(BatchCommit("job", self.batch, f"hash {self.batch}", view=VIEW, rows=rows))
        self.batch += 1
        return (time.perf_counter() - start) * 1000, (time.process_time() - busy) * 1000

    def fill(self, keys: int) -> None:
        self.commit(self.rows(np.arange(keys)))
        self.store.maintain()

    def timed(self, batches: int, keys: Callable[[], np.ndarray]) -> list[tuple[float, float]]:
        found = []
        for _ in range(batches):
            found.append(self.commit(self.rows(keys())))
            self.store.maintain()
        return found


def measured(query: str, keys: int, touched: int, batches: int, groups: int, spark: AskedRows | None = None) -> str:
    """A line of the table: a view of its own for each query."""
    with tempfile.TemporaryDirectory(prefix="finish-") as directory:
        bench = Bench(query, groups, Path(directory), spark)
        bench.fill(keys)
        newest = max(keys // 50, touched)
        random = bench.timed(batches, lambda: bench.chance.choice(keys, touched, replace=False))
        recent = bench.timed(batches, lambda: keys - 1 - bench.chance.choice(newest, touched, replace=False))
        bench.store.close()
    return f"{_ms(random)}   {_ms(recent)}   {len(bench.finish.stages)} stages"


def _ms(found: list[tuple[float, float]]) -> str:
    taken, busy = zip(*found, strict=True)
    return f"{statistics.median(taken):7.1f} {min(taken):7.1f} {max(taken):7.1f} {min(busy):7.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--touched", type=int, default=1_000)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--asked", action="store_true")
    given = parser.parse_args()
    print(
        f"{given.touched:,} touched of {given.keys:,} keys, ms: median, least, worst, busy; random keys and newest 2 %"
    )
    if given.asked:
        settings = SparkSettings(Path(tempfile.mkdtemp(prefix="finish-")))
        spark = AskedRows(lambda: shared_session(settings), lambda *_: None)
        for name, query in {"LEFT JOIN": BY_KEY["LEFT JOIN"], **ASKED}.items():
            print(f"{name:28} {measured(query, given.keys, given.touched, given.batches, 5, spark)}", flush=True)
        return
    for name, query in BY_KEY.items():
        if given.only in (None, name):
            groups = 50_000 if "50,000" in name else 5
            print(f"{name:28} {measured(query, given.keys, given.touched, given.batches, groups)}", flush=True)
    for name, query in AS_A_WHOLE.items():
        if given.only in (None, name):
            for keys in (given.keys // 10, given.keys):
                few = min(given.touched, keys)
                print(
                    f"{name + f', {keys:,} rows':28} {measured(query, keys, few, max(3, given.batches // 4), 5)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
