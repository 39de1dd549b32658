"""Inner joins of rows that are only added: each batch adds what its rows make with those that are there (G11)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.relation import Mode
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import BrokenOffError, Finished, job_of, random_batch

SHAPES = {
    "two": "SELECT l.id, r.id AS other, l.k FROM l JOIN r ON l.k = r.k",
    "where": "SELECT l.id, r.s FROM l, r WHERE l.k = r.k AND l.v = r.w AND l.s = 'a'",
    "more than equal": "SELECT l.id, r.id AS other, l.v + r.w AS x FROM l JOIN r ON l.k = r.k AND l.v < r.w WHERE l.v + r.w > 3",
    "filtered and computed": (
        "SELECT l.id * 2 AS double, r.w FROM (SELECT id, k + 1 AS n FROM l WHERE v > 1) AS l "
        "JOIN (SELECT * FROM r WHERE s <> 'b') AS r ON l.n = r.k"
    ),
    "three": "SELECT l.id, r.id AS other, u.x FROM l JOIN r ON l.k = r.k JOIN u ON u.k = l.v",
    "three by one": "SELECT l.id, r.id AS other, u.x FROM l JOIN r ON l.k = r.k JOIN u ON l.k = u.k",
    "in brackets": "SELECT l.id, j.other FROM l JOIN (SELECT r.k, r.id AS other FROM r JOIN u ON r.w = u.k) AS j ON l.k = j.k",
    "with itself": "SELECT a.id, b.id AS other FROM l AS a JOIN l AS b ON a.k = b.v",
    "three times itself": "SELECT a.id, b.id AS other, c.id AS third FROM l AS a JOIN l AS b ON a.k = b.v JOIN l AS c ON b.k = c.v",
    "itself around another": "SELECT a.id, r.id AS other, c.id AS third FROM l AS a JOIN r ON a.k = r.k JOIN l AS c ON r.w = c.v",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_make_their_pairs_once(shape: str, tmp_path: Path) -> None:
    """With NULL keys, duplicates, relations without rows, a batch that comes twice, one that breaks off, a store that is
    closed and opened again, and a way back, after which the batches come in another order."""
    rnd = random.Random(f"pairs {shape}")  # noqa: S311
    found = Finished(SHAPES[shape], tmp_path / "views.duckdb")
    batches = [random_batch(rnd, 10 * number) for number in range(10)]
    batches[4]["l"] = []
    batches[5]["r"] = []
    batches[6] = {}
    for number, batch in enumerate(batches):
        if number == 3:
            for point in ("view.before_write", "view.before_commit"):
                with pytest.raises(BrokenOffError):
                    found.commit(number, batch, fails_at=point)
        found.add(number, batch)
        if number == 2:
            found.commit(number, batch)
        if number == 4:
            found.reopen()
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number}"
    assert found.answer(), "an answer without rows says nothing"
    changes = found.store.changes("answered", 0, limit=100_000)
    assert {change.op for change in changes} == {"insert"}
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))

    for name in ("l", "r", "u"):
        found.all.execute(f"DELETE FROM {name}")
    for batch in batches[:3]:
        found.remember(batch)
    found.store.rollback("job", 2)
    found.fold.clear()
    found.seq = 0
    found.follow()
    assert found.view() == found.answer() == +found.fold, "gone back"
    for number, batch in enumerate([batches[8], batches[3], batches[9]], start=3):
        found.add(number, batch)
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number} of the second way"
    found.store.close()


def test_nothing_but_the_columns_that_are_read_is_kept() -> None:
    found = Finished(SHAPES["where"], None)
    finish = found.spec.finish
    assert finish is not None
    assert spec_from_text(spec_to_text(found.spec)) == found.spec
    assert [(rows.relation, rows.shown) for rows in finish.rows] == [("l", ("k", "id", "v")), ("r", ("k", "w", "s"))]
    found.store.drop_view("answered")
    found.store.create_view(found.spec)
    found.store.close()


def test_what_a_view_of_them_is() -> None:
    """Rows are only added, as where Spark keeps the join; EXPLAIN says who keeps what."""
    plan = planned(
        "CREATE MATERIALIZED VIEW v AS SELECT t.symbol, t.price, t.ts, q.bid FROM trades AS t JOIN quotes AS q "
        "ON t.symbol = q.symbol WHERE t.volume > 3;"
    )
    job = plan_job(plan)
    assert (plan.mode, job.kind, job.shows_closed, job.key) == (Mode.APPEND, "finish", True, ())
    assert plan.root.event_time is not None
    assert plan.root.event_time.column == "ts"
    assert job.how == (
        "Spark reads and filters each batch, the view store keeps the rows of trades (symbol, price, ts) and "
        "quotes (symbol, bid) and answers the query: what new rows make with those that are there is added, and nothing "
        "is answered anew"
    )
    kept = "every row of trades (symbol, price, ts) and every row of quotes (symbol, bid)"
    assert plan.warnings == (
        f"the join keeps {kept} for ever; bound their event times, or set state_ttl, to let go of old rows",
    )


JOIN = "SELECT l.id, r.id AS other FROM l JOIN r ON l.k = r.k"
STREAMS = "CREATE STREAM l (k BIGINT, id BIGINT, s STRING); CREATE STREAM r (k BIGINT, id BIGINT, s STRING);"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (f"CREATE MATERIALIZED VIEW v AS {JOIN}", "finish"),
        (f"CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS {JOIN}", "append"),
        (f"CREATE SINK v WITH (connector = 'console') AS {JOIN}", "append"),
        (JOIN, "append"),
        # Only Spark knows UPPER: it is computed below the join, or the join stays with Spark.
        ("CREATE MATERIALIZED VIEW v AS SELECT UPPER(l.s) AS s, r.id FROM l JOIN r ON l.k = r.k", "finish"),
        ("CREATE MATERIALIZED VIEW v AS SELECT UPPER(l.s || r.s) AS s FROM l JOIN r ON l.k = r.k", "append"),
        ("CREATE MATERIALIZED VIEW v AS SELECT l.s, COUNT(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.s", "merge"),
    ],
)
def test_which_joins_the_store_keeps(statement: str, kind: str) -> None:
    job = plan_job(planned(f"{STREAMS} {statement};"))
    pairs = job.finish is not None and job.finish.view.pairs
    assert (job.kind, pairs) == (kind, kind == "finish")


def test_a_join_within_a_bound_stays_with_spark() -> None:
    plan = planned(
        "CREATE MATERIALIZED VIEW v AS SELECT t.symbol, q.bid FROM trades AS t JOIN quotes AS q "
        "ON t.symbol = q.symbol AND q.at BETWEEN t.ts AND t.ts + INTERVAL '1' MINUTE;"
    )
    assert plan_job(plan).kind == "append"


def test_rows_that_are_forgotten_take_their_pairs_with_them() -> None:
    """`state_ttl` on the view; as a setting for all it bounds no join, as none that Spark keeps."""
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS {JOIN};")
    job = plan_job(plan)
    assert (plan.mode, job.kind, job.ttl_us) == (Mode.RETRACT, "finish", 86_400_000_000)
    assert job.finish is not None
    assert not job.finish.only_adds
    job = plan_job(planned(f"SET state_ttl = '1 day'; {STREAMS} CREATE MATERIALIZED VIEW v AS {JOIN};"))
    assert (job.finish is not None and job.finish.only_adds, job.ttl_us) == (True, None)


def test_another_state_than_that_of_answers_that_change() -> None:
    assert '"pairs": true' in job_of(SHAPES["two"]).state
