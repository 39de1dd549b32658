"""Joins as of PROCTIME() behind rows that change: each row meets what is there when it comes, and takes what it gave
along when it goes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.plan.job_plan import JobPlan, plan_job
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.chaining import Core, counted, spec_of
from tests.unit.stores.views.changing import Changing
from tests.unit.stores.views.finishing import STREAMS, VIEW, Row, row_text

SUMS = "SELECT k, COUNT(*) AS n FROM l GROUP BY k"
DECLARED = (
    f"{STREAMS} CREATE VIEW latest AS SELECT k, MAX(id) AS id FROM r GROUP BY k; CREATE MATERIALIZED VIEW a AS {SUMS};"
)
MEETS = "JOIN latest FOR SYSTEM_TIME AS OF PROCTIME() AS m ON f.k = m.k"
# In front: a subquery whose rows change, or a materialized view; behind the join: nothing, a filter, an aggregate.
QUERIES: dict[str, tuple[str, Callable[[dict[int, tuple[int, int | None]]], list[Row]]]] = {
    "a subquery": (
        f"SELECT f.k, f.n, m.id FROM ({SUMS}) AS f LEFT {MEETS}",
        lambda met: [(k, n, there) for k, (n, there) in met.items()],
    ),
    "a view": (
        f"SELECT f.k, f.n, m.id FROM a AS f {MEETS}",
        lambda met: [(k, n, there) for k, (n, there) in met.items() if there is not None],
    ),
    "a filter behind it": (
        f"SELECT f.k, m.id FROM ({SUMS}) AS f {MEETS} WHERE f.n > 1 AND m.id > 3",
        lambda met: [(k, there) for k, (n, there) in met.items() if n > 1 and there is not None and there > 3],
    ),
    "an aggregate above": (
        f"SELECT m.id, COUNT(*) AS n FROM a AS f LEFT {MEETS} GROUP BY m.id",
        lambda met: [tuple(each) for each in Counter(there for _, there in met.values()).items()],
    ),
}


def job_of(query: str) -> JobPlan:
    return plan_job(planned(f"{DECLARED} CREATE MATERIALIZED VIEW v AS {query};"))


@pytest.mark.parametrize("name", QUERIES)
def test_rows_meet_what_is_there_when_they_come(name: str, tmp_path: Path) -> None:
    query, answer = QUERIES[name]
    job, below = job_of(query), plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW a AS {SUMS};"))
    assert job.finish is not None
    assert [stage.meets for stage in job.finish.stages].count(True) == 1
    core, core_below = Core(job), Core(below)
    store = ViewStore.open(tmp_path / "views.duckdb")
    store.create_view(spec_of("a", below))
    store.create_view(spec_of("v", job))
    rnd = random.Random(11)  # noqa: S311 - test data
    counts: Counter[int] = Counter()
    latest: dict[int, int] = {}
    met: dict[int, tuple[int, int | None]] = {}
    for number in range(40):
        left: list[Row] = [(rnd.randrange(4), number, 0, "x") for _ in range(rnd.randrange(3))]
        right: list[Row] = [(rnd.randrange(4), number, 0, "x") for _ in range(rnd.randrange(2))]
        batch = {"l": left, "r": right}
        # The view in front commits by itself, ahead of what comes for the join.
        store.commit(BatchCommit("a", number, f"hash {number}", view="a", rows=core_below.rows(batch)))
        if "FROM a" in query:
            meet(counts, left, latest, met)
            latest.update({row[0]: row[1] for row in right})
        else:
            latest.update({row[0]: row[1] for row in right})
            meet(counts, left, latest, met)
        store.commit(BatchCommit("v", number, f"hash {number}", view="v", rows=core.rows(batch)))
        expected = Counter(row_text(row) for row in answer(met))
        assert counted(store.read("SELECT * FROM v").table) == expected, f"batch {number}"
        if number == 20:
            store.close()
            store = ViewStore.open(tmp_path / "views.duckdb")
    fold: Counter[str] = Counter()
    for change in store.changes("v", 0):
        if change.before is not None:
            fold[row_text(change.before.values())] -= 1
        if change.row is not None:
            fold[row_text(change.row.values())] += 1
    assert +fold == counted(store.read("SELECT * FROM v").table)
    assert len(met) == 4
    store.close()


def meet(counts: Counter[int], rows: list[Row], latest: dict[int, int], met: dict[int, tuple[int, int | None]]) -> None:
    """The groups of these rows are other ones now, and meet what is there."""
    counts.update(row[0] for row in rows)
    for k in {row[0] for row in rows}:
        met[k] = (counts[k], latest.get(k))


@pytest.mark.parametrize("versioned", [False, True])
def test_upserts_meet_what_is_there_when_they_come(versioned: bool, tmp_path: Path) -> None:
    """With deletions, several records of a key in a batch, and versions that come late; the query need not read the
    key."""
    query = "SELECT l.v, u.x FROM l LEFT JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON l.k = u.k WHERE l.v > 0"
    found = Changing(query, tmp_path / "views.duckdb", versioned=versioned)
    rnd = random.Random(f"met {versioned}")  # noqa: S311 - test data
    met: dict[Row, list[Row]] = {}
    for number in range(40):
        before = {row[1]: row for row in found.latest["l"]}
        batch = found.batch(rnd)
        if number % 3 == 1:
            batch["l"] = []  # only what is met changes
        found.add(number, batch)
        right = [(row[0], row[1]) for row in found.latest["u"]]
        after = {row[1]: row for row in found.latest["l"]}
        came = {row[1] for row in batch["l"]}
        for key in {*before, *after}:
            if before.get(key) == after.get(key) and (versioned or key not in came):
                continue  # without versions a record that says the same has come again all the same
            met.pop((key,), None)
            if key in after:
                k, _, v = after[key][:3]
                there = [(v, x) for other, x in right if k is not None and other == k]
                met[(key,)] = there or [(v, None)]
        expected = Counter(row_text(row) for rows in met.values() for row in rows if row[0] is not None and row[0] > 0)
        assert counted(found.store.read(f"SELECT * FROM {VIEW}").table) == expected, f"batch {number}"
    assert met
    found.store.close()


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_joined_rows_meet_what_is_there_when_they_come(kind: str, tmp_path: Path) -> None:
    """A join in front, beside the join that is met once: the pairs are rows like any other, told apart by both keys."""
    query = f"""SELECT l.v, r.w, u.x FROM l {kind} r ON l.k = r.k AND r.w > 0
    LEFT JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON l.v = u.k"""
    found = Changing(query, tmp_path / "views.duckdb", versioned=False)
    assert found.job.finish is not None
    assert [stage.meets for stage in found.job.finish.stages].count(True) == 1
    rnd = random.Random(f"pairs {kind}")  # noqa: S311 - test data
    pairs: dict[Row, Row] = {}
    met: dict[Row, list[Row]] = {}
    for number in range(40):
        batch = found.batch(rnd)
        if number % 3 == 1:
            batch["l"] = batch["r"] = []  # only what is met changes
        found.add(number, batch)
        right = [(row[0], row[1]) for row in found.latest["u"]]
        before, pairs = pairs, {}
        for k, id_, v, *_ in found.latest["l"]:
            there = [(row[1], row[2]) for row in found.latest["r"] if row[0] == k is not None and (row[2] or 0) > 0]
            for other, w in there or ([(None, None)] if kind == "LEFT JOIN" else []):
                pairs[id_, other] = (v, w)
        for gone in {*before} - {*pairs}:
            del met[gone]
        for pair, (v, w) in pairs.items():
            if before.get(pair) != (v, w):
                met[pair] = [(v, w, x) for key, x in right if key == v] or [(v, w, None)]
        expected = Counter(row_text(row) for rows in met.values() for row in rows)
        assert counted(found.store.read(f"SELECT * FROM {VIEW}").table) == expected, f"batch {number}"
    assert met
    found.store.close()
