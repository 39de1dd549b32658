"""`state_ttl`: keys and rows that are too old leave the view, by the clock of batches (G3)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.plan.explain import plan_text
from penstock.plan.job_plan import plan_job
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit, ViewSpec
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.chaining import Batch, Core, counted, jobs_of, spec_of
from tests.unit.stores.views.finishing import STREAMS, random_batch, row_text

SECOND = 1_000_000
TTL = 5
SUMS = "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM l GROUP BY k"
MANY = "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING COUNT(*) > 1"
BEST = "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id, s) AS rn FROM l) AS x WHERE rn = 1"
JOINED = "SELECT l.id, r.id AS other FROM l LEFT JOIN r ON l.k = r.k"


class Forgetting:
    """A view with a ttl of five seconds, beside plain Python that knows every row and when it came."""

    def __init__(self, query: str, path: Path | None = None) -> None:
        self.job = jobs_of({"v": query})["v"]
        self.core = Core(self.job)
        self.path = path
        self.store = ViewStore.open(path)
        self.store.create_view(self.spec())

    def spec(self, seconds: int = TTL) -> ViewSpec:
        return replace(spec_of("v", self.job), ttl_us=seconds * SECOND)

    def commit(self, number: int, second: int, batch: Batch) -> None:
        rows = self.core.rows(batch)
        clock = second * SECOND
        self.store.commit(BatchCommit("v", number, f"hash {number}", view="v", rows=rows, clock_us=clock))

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.store.read("SELECT * FROM v").table.to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def ops(self, since: int = 0) -> list[tuple[str, tuple[Any, ...]]]:
        changes = self.store.changes("v", since)
        return [(change.op, tuple((change.row or change.before or {}).values())) for change in changes]


def test_a_key_is_forgotten_when_no_row_came_for_it(tmp_path: Path) -> None:
    """It leaves with a change, also in a batch without rows, and begins anew when it comes back."""
    found = Forgetting(SUMS, tmp_path)
    found.commit(0, 10, {"l": [(1, 1, 5, "a"), (2, 2, 5, "a"), (None, 3, 1, "a")]})
    found.commit(1, 12, {"l": [(1, 4, 0, "a")]})
    found.commit(2, 14, {})
    assert found.rows() == [(1, 2, 5), (2, 1, 5), (None, 1, 1)]
    found.commit(3, 15, {})
    assert found.rows() == [(1, 2, 5)]
    assert found.ops(4) == [("delete", (2, 1, 5)), ("delete", (None, 1, 1))]
    # it is too old and comes back in the same batch: nothing of it is left
    found.commit(4, 18, {"l": [(1, 5, 7, "a"), (2, 6, 1, "a")]})
    assert found.rows() == [(1, 1, 7), (2, 1, 1)]
    assert found.ops(6) == [("delete", (1, 2, 5)), ("insert", (1, 1, 7)), ("insert", (2, 1, 1))]
    found.store.close()
    found.store = ViewStore.open(tmp_path)
    found.store.create_view(found.spec(100))  # a longer one counts from now on
    found.commit(5, 30, {})
    assert found.rows() == [(1, 1, 7), (2, 1, 1)]
    found.store.rollback("v", 3)
    assert found.rows() == [(1, 2, 5)]
    found.store.rollback("v", 1)
    assert found.rows() == [(1, 2, 5), (2, 1, 5), (None, 1, 1)]
    found.commit(2, 112, {})
    assert found.rows() == []
    found.store.close()


def test_groups_that_are_not_shown_are_forgotten_too() -> None:
    found = Forgetting(MANY)
    found.commit(0, 0, {"l": [(1, 1, 5, "a"), (2, 2, 5, "a")]})
    found.commit(1, 6, {"l": [(1, 3, 5, "a")]})
    assert found.rows() == []
    found.commit(2, 7, {"l": [(1, 4, 5, "a")]})
    assert found.rows() == [(1, 2)]
    assert found.ops() == [("insert", (1, 2))]
    found.store.rollback("v", 0)
    found.commit(1, 1, {"l": [(1, 3, 5, "a"), (2, 3, 5, "a")]})
    assert found.rows() == [(1, 2), (2, 2)]
    found.store.close()


@pytest.mark.parametrize("query", [BEST, JOINED])
def test_rows_are_forgotten_after_their_batch_and_the_answer_is_over_the_rest(query: str, tmp_path: Path) -> None:
    """At random: after every batch the view, and its folded changes, are the answer over the rows of the last five
    seconds; a batch that is run again after a restart forgets the same."""
    rnd = random.Random(f"ttl {query}")  # noqa: S311
    found = Forgetting(query, tmp_path)
    came: list[tuple[int, Batch]] = []
    fold: dict[str, int] = {}
    second, seq = 0, 0
    for number in range(12):
        second += rnd.choice([1, 2, 3])
        batch = random_batch(rnd, 10 * number) if number % 4 else {}
        came.append((second, batch))
        found.commit(number, second, batch)
        if number == 6:
            found.store.close()
            found.store = ViewStore.open(tmp_path)
            found.commit(number, second, batch)
        young = [rows for at, rows in came if at > second - TTL]
        fresh = Forgetting(query)
        for place, rows in enumerate(young):
            fresh.commit(place, 0, rows)
        assert counted(found.store.read("SELECT * FROM v").table) == counted(
            fresh.store.read("SELECT * FROM v").table
        ), f"after batch {number}"
        fresh.store.close()
        for change in found.store.changes("v", seq):
            for row, step in ((change.before, -1), (change.row, 1)):
                if row is not None:
                    fold[row_text(row.values())] = fold.get(row_text(row.values()), 0) + step
            seq = change.seq
        shown = counted(found.store.read("SELECT * FROM v").table)
        assert {text: count for text, count in fold.items() if count} == dict(shown)
    with pytest.raises(PenstockError, match="cannot go back"):
        found.store.rollback("v", 0)
    found.store.close()


def test_the_plan_tells_what_bounds_the_state() -> None:
    """EXPLAIN names the bound; what a ttl cannot bound is refused by name, unless it is only a setting for all."""
    merged = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 hour') AS {SUMS};")
    assert plan_job(merged).ttl_us == 3_600 * SECOND
    text = plan_text(merged)
    assert "a group is forgotten when no row came for it for 1 hour (state_ttl)" in text
    assert "grows for ever" not in text
    kept = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 hour') AS {BEST};")
    assert "a row is forgotten 1 hour after its batch (state_ttl)" in plan_text(kept)
    of_spark = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 hour', state = 'spark') AS {SUMS};")
    assert "not run yet: option state_ttl over state that Spark keeps is not there yet" in plan_text(of_spark)
    # First rows, a join without a bound, and groups over them, which Spark keeps for ever: so the store keeps them.
    for query in (
        "SELECT DISTINCT ON (k) k, v FROM l",
        "SELECT DISTINCT ON (k) k, v FROM l ORDER BY k",
        "SELECT DISTINCT ON (k) k, v FROM (SELECT k, v FROM l UNION ALL SELECT k, w FROM r)",
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY PROCTIME()) AS rn FROM l) WHERE rn = 1",
        "SELECT v, COUNT(*) AS n FROM (SELECT DISTINCT ON (k) k, v FROM l) GROUP BY v",
        "SELECT l.k, r.w FROM l JOIN r ON l.k = r.k",
        "SELECT l.k, COUNT(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    ):
        joined = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 hour') AS {query};")
        assert (plan_job(joined).kind, plan_job(joined).ttl_us) == ("finish", 3_600 * SECOND)
        assert "a row is forgotten 1 hour after its batch (state_ttl)" in plan_text(joined)
        assert "for ever" not in plan_text(joined)
    above = planned(
        f"{STREAMS} CREATE MATERIALIZED VIEW a AS {SUMS}; "
        "CREATE MATERIALIZED VIEW b WITH (state_ttl = '1 hour') AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;"
    )
    assert plan_job(above).ttl_us == 3_600 * SECOND
    assert "what follows from a row is forgotten 1 hour after it came (state_ttl)" in plan_text(above)
    quiet = planned(
        f"SET state_ttl = '1 hour'; {STREAMS} CREATE MATERIALIZED VIEW a AS {SUMS}; "
        "CREATE MATERIALIZED VIEW b AS SELECT n, COUNT(*) AS c FROM a GROUP BY n;"
    )
    assert plan_job(quiet).ttl_us is None
