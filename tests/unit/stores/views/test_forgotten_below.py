"""`state_ttl` of views over views: a row of a view below counts for so long from when it came there (G3)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.chaining import Batch, Core, counted, jobs_of, spec_of
from tests.unit.stores.views.finishing import STREAMS, Row, add_rows

SECOND = 1_000_000
TTL = 5
SUMS = "SELECT k, COUNT(*) AS n FROM l GROUP BY k"
ROWS = "SELECT k, v FROM l WHERE v >= 0"
QUERIES = {
    "groups": "SELECT n, COUNT(*) AS keys FROM a GROUP BY n",
    "distinct": "SELECT DISTINCT k FROM b",
    "joined": "SELECT a.k, a.n, b.v FROM a JOIN b ON a.k = b.k",
    "as a whole": "SELECT COUNT(*) AS n, SUM(v) AS t FROM b",
}


def answer(query: str, a: list[Row], b: list[Row]) -> Counter[str]:
    """DuckDB's answer over the rows of both views that count."""
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE a (k BIGINT, n BIGINT); CREATE TABLE b (k BIGINT, v BIGINT)")
        add_rows(oracle, "a", a)
        add_rows(oracle, "b", b)
        return counted(oracle.sql(query).to_arrow_table())


def job_of(query: str) -> JobPlan:
    text = f"{STREAMS} CREATE MATERIALIZED VIEW a AS {SUMS}; CREATE MATERIALIZED VIEW b AS {ROWS};"
    return plan_job(planned(f"{text} CREATE MATERIALIZED VIEW v WITH (state_ttl = '{TTL} seconds') AS {query};"))


@pytest.mark.parametrize("name", QUERIES)
def test_what_follows_from_a_row_is_forgotten_with_it(name: str, tmp_path: Path) -> None:
    query = QUERIES[name]
    job = job_of(query)
    assert (job.ttl_us, job.of_views) == (TTL * SECOND, True)
    below = jobs_of({"a": SUMS, "b": ROWS})
    cores = {each: Core(below[each]) for each in below}
    path = tmp_path / "views.duckdb"
    store = ViewStore.open(path, clock=lambda: 0)
    for each in below:
        store.create_view(spec_of(each, below[each]))
    store.create_view(replace(spec_of("v", job), ttl_us=job.ttl_us))
    rnd = random.Random(7)  # noqa: S311 - test data
    counts: Counter[int] = Counter()
    came: list[tuple[str, Row, int]] = []  # of each view below, its rows and since when they are there
    now, shown = 100, 0
    for number in range(40):
        now += rnd.choice([0, 1, 1, 2, 7])
        batch: Batch = {"l": [(rnd.randrange(4), number, rnd.randrange(3), "x") for _ in range(rnd.randrange(3))]}
        for each in below:
            rows = cores[each].rows(batch)
            store.commit(BatchCommit(each, number, f"hash {number}", view=each, rows=rows, clock_us=now * SECOND))
        for k in {row[0] for row in batch["l"]}:
            before = (k, counts[k])
            counts[k] += sum(1 for row in batch["l"] if row[0] == k)
            came = [entry for entry in came if entry[:2] != ("a", before)] + [("a", (k, counts[k]), now)]
        came += [("b", (row[0], row[2]), now) for row in batch["l"]]
        store.move_clock("v", now * SECOND)
        a, b = ([row for view, row, at in came if view == each and at + TTL > now] for each in ("a", "b"))
        expected = answer(query, a, b)
        assert counted(store.read("SELECT * FROM v").table) == expected, f"batch {number}"
        shown += sum(expected.values())
        if number == 20:
            store.close()
            store = ViewStore.open(path, clock=lambda: 0)
    assert shown > 20
    store.move_clock("v", (now + TTL) * SECOND)
    assert store.read("SELECT COUNT(*) AS n FROM v").table.to_pylist() == [{"n": 1 if name == "as a whole" else 0}]
    assert len(store.changes("v", 0)) > 20
    store.close()


def test_where_a_view_only_adds_rows_there_is_nothing_to_forget() -> None:
    plan = planned(
        f"{STREAMS} CREATE MATERIALIZED VIEW b AS {ROWS}; "
        "CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 hour') AS SELECT k, v + 1 AS w FROM b;"
    )
    assert plan_job(plan).ttl_us is None
    assert any("state_ttl has no effect here" in text for text in plan.warnings)
