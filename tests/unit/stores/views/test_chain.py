"""Views on views: every view of a chain shows the same batch, and is DuckDB's batch answer over all rows so far
(G16, G18)."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.plan.job_plan import plan_job
from tests.unit.plan.analysis import last, planned
from tests.unit.stores.views.chaining import Batch, Chained, as_of, jobs_of
from tests.unit.stores.views.finishing import STREAMS, BrokenOffError, random_batch
from tests.unit.stores.views.sampling import some

ROWS = "SELECT k, id, v, s FROM l WHERE id >= 0"
SUMS = "SELECT k, COUNT(*) AS n, SUM(v) AS t, MAX(v) AS m FROM l GROUP BY k"
BEST = "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id, s) AS rn FROM l) AS x WHERE rn <= 2"
# A chain or a diamond over one job, or two.
SHAPES: dict[str, dict[str, str]] = {
    "over added rows": {
        "a": ROWS,
        "b": "SELECT k, COUNT(*) AS n, COUNT(DISTINCT s) AS d FROM a WHERE v > 0 GROUP BY k",
        "c": "SELECT n, COUNT(*) AS keys FROM b GROUP BY n",
    },
    "rows of rows of rows": {
        "a": ROWS,
        "b": "SELECT k, id, v + 1 AS v FROM a WHERE v > 0",
        "c": "SELECT id, v FROM b WHERE k IS NOT NULL",
        "d": "SELECT v, COUNT(*) AS n FROM c GROUP BY v",
    },
    "rows of two jobs together": {
        "a": ROWS,
        "b": "SELECT k, id, w FROM r",
        "c": "SELECT k, id, v AS x FROM a WHERE v > 1 UNION ALL SELECT k, id, w FROM b",
        "d": "SELECT k, x FROM c WHERE x > 0 UNION ALL SELECT id, x FROM c",
    },
    "rows of a stream and of a view together": {
        "a": ROWS,
        "b": "SELECT r.k, r.w FROM r UNION ALL SELECT k, v FROM a WHERE v > 1",
        "c": "SELECT k FROM b WHERE w > 0",
    },
    "over a merged aggregate": {
        "a": SUMS,
        "b": "SELECT k, t FROM a WHERE n > 1",
        "c": "SELECT COUNT(*) AS n, SUM(t) AS t FROM b",
    },
    "over an answered view": {
        "a": BEST,
        "b": "SELECT k, MAX(v) - MIN(v) AS apart FROM a GROUP BY k HAVING COUNT(*) > 1",
        "c": "SELECT a.id, b.apart FROM a LEFT JOIN b ON a.k = b.k",
    },
    "diamond": {
        "a": SUMS,
        "b": "SELECT k, n FROM a WHERE n > 2",
        "c": "SELECT k, m FROM a WHERE m IS NOT NULL",
        "d": "SELECT b.k, b.n, c.m FROM b FULL JOIN c ON b.k = c.k",
        "e": "SELECT COUNT(*) AS n, SUM(m) AS t FROM d",
    },
    "ranks of a key and of all": {
        "a": SUMS,
        "b": "SELECT k, t, RANK() OVER (PARTITION BY n ORDER BY t) AS r FROM a",
        "c": "SELECT k, t FROM a ORDER BY t DESC, k LIMIT 3",
        "d": "SELECT k + 1 AS u, COUNT(*) AS c, COUNT(DISTINCT t) AS d FROM b WHERE r = 1 GROUP BY k + 1",
    },
    "self join and subqueries": {
        "a": ROWS,
        "b": "SELECT x.id, y.id AS other FROM a AS x JOIN a AS y ON x.k = y.k AND x.id < y.id",
        "c": "SELECT k, id FROM a WHERE v > (SELECT AVG(v) FROM a AS z WHERE z.k = a.k)",
        "d": "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k) UNION SELECT other FROM b",
    },
    "two jobs": {
        "a": SUMS,
        "b": "SELECT k, id, w FROM r WHERE w > 0",
        "c": "SELECT a.k, a.n, b.id, b.w FROM a LEFT JOIN b ON a.k = b.k",
        "d": "SELECT k, COUNT(DISTINCT w) AS w FROM c GROUP BY k",
    },
    "a stream beside a view that changes": {
        "a": SUMS,
        "b": "SELECT r.id, r.w, a.n, a.t FROM r LEFT JOIN a ON r.k = a.k",
        "c": "SELECT n, COUNT(*) AS c, COUNT(DISTINCT w) AS w FROM b GROUP BY n",
    },
    "streams beside views, on views of such": {
        "a": ROWS,
        "b": "SELECT a.s, COUNT(*) AS n, SUM(r.w) AS w FROM a JOIN r ON a.k = r.k WHERE r.w > 0 GROUP BY a.s",
        "c": "SELECT u.k, u.x, b.s, b.w FROM u JOIN b ON b.n = u.k WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = u.k)",
        "d": "SELECT b.s, COUNT(c.x) AS c FROM b LEFT JOIN c ON b.s = c.s GROUP BY b.s",
    },
    "all of a view, and a row for none": {
        "a": BEST,
        "b": "SELECT a.k, COUNT(r.id) AS n, MAX(r.w) AS w FROM a LEFT JOIN r ON a.id = r.id GROUP BY a.k",
        "c": "SELECT COUNT(*) AS n, SUM(w) AS w FROM b",
    },
}


@pytest.mark.parametrize("shape", some(SHAPES, 3))
def test_every_view_of_a_chain_is_the_batch_answer_after_every_batch(shape: str, tmp_path: Path) -> None:
    """With views that are made later, batches that come twice or break off, a store that is opened again, a way back
    to an earlier batch, and views that are held for a while."""
    views = SHAPES[shape]
    rnd = random.Random(f"chain {shape}")  # noqa: S311
    found = Chained(views, tmp_path)
    roots = [name for name, job in found.jobs.items() if job.scans]
    assert all(found.jobs[name].of_views for name in views if name not in roots)
    found.make(*list(views)[:-1])
    batches = [random_batch(rnd, 10 * number) for number in range(9)]
    held = next(name for name in views if name not in roots)
    for number, batch in enumerate(batches):
        if number == 2:
            found.make(list(views)[-1])  # over what is there already
        if number == 6:
            found.store.hold(held)
        _commit_twice(found, roots, number, batch)
        if number == 6:
            found.reopen()  # what is held stays held
            assert found.store.ledger(held).batch_id == 5  # type: ignore[union-attr]
            found.store.follow(held)
        if number == 7:
            found.reopen()
        found.check()
    before = {name: found.view(name) for name in views}
    fed = [name for name in roots if not found.jobs[name].views]
    for root in fed:
        found.store.rollback(root, 5)
        for again in (6, 7, 8):
            found.commit(root, again, batches[again])
    for name in views:
        assert found.view(name) == before[name], f"{name} after the way back"
        if name not in fed:
            found.check(name)  # those that followed: also their changes
    assert any(before.values()), "empty answers tell nothing"
    found.store.close()


def _commit_twice(found: Chained, roots: list[str], number: int, batch: Batch) -> None:
    """The batch of each job; one that broke off, or that Spark had not heard of, comes again."""
    for root in roots:
        if number == 4:
            with pytest.raises(BrokenOffError):
                found.commit(root, number, batch, at=break_off)
        found.add(root, number, batch)
        if number == 3:
            assert found.commit(root, number, batch).skipped
        if number != 6:
            found.check()


def break_off(point: str) -> None:
    if point == "view.before_commit":
        raise BrokenOffError(point)


def test_a_view_that_cannot_be_answered_stands_still_and_the_others_go_on(tmp_path: Path) -> None:
    """Its rows stay those of the batch before, what is built on it waits with it, and both go on when it can be
    answered again."""
    found = Chained(
        {
            "a": "SELECT k, SUM(v) AS t FROM l GROUP BY k",
            "narrow": "SELECT k, CAST(t AS TINYINT) AS t FROM a",
            "above": "SELECT COUNT(*) AS n FROM narrow",
            "beside_it": "SELECT a.k, a.t, narrow.t AS small FROM a LEFT JOIN narrow ON a.k = narrow.k",
            "beside": "SELECT MAX(t) AS t FROM a",
        },
        tmp_path,
    )
    found.make()
    found.add("a", 0, {"l": [(1, 1, 100, "a"), (2, 2, 5, "a")]})
    found.check()
    found.add("a", 1, {"l": [(1, 3, 100, "a"), (3, 4, 1, "a")]})
    assert found.failed == [("narrow", "DATA_ERROR")]
    found.check("a", "beside")
    shown = found.store.read("SELECT * FROM narrow, above, beside_it, a, beside")
    assert as_of(shown) == {"a": 1, "beside": 1, "narrow": 0, "above": 0, "beside_it": 0}
    assert found.store.read("SELECT k, t FROM narrow ORDER BY k").table.to_pylist() == [
        {"k": 1, "t": 100},
        {"k": 2, "t": 5},
    ]
    with pytest.raises(PenstockError, match="TINYINT"):
        found.store.follow("narrow")
    found.reopen()
    found.add("a", 2, {"l": [(1, 5, -100, "a")]})
    assert as_of(found.store.read("SELECT * FROM narrow"))["narrow"] == 0
    found.store.follow("narrow")
    found.check()
    assert {as_of(found.store.read(f"SELECT * FROM {name}"))[name] for name in found.jobs} == {2}
    found.add("a", 3, {"l": [(4, 6, 1, "a")]})
    found.check()
    assert found.failed == [("narrow", "DATA_ERROR")]
    found.store.close()


def test_a_view_beside_a_stream_keeps_its_own_batches_while_it_stands_still(tmp_path: Path) -> None:
    """What it cannot answer holds it, as any view on views, and its own batches go on behind the last when it can."""
    found = Chained(
        {
            "a": "SELECT k, SUM(v) AS t FROM l GROUP BY k",
            "m": "SELECT r.id, CAST(a.t AS TINYINT) AS t FROM r JOIN a ON r.k = a.k",
            "n": "SELECT COUNT(*) AS n FROM m",
        },
        tmp_path,
    )
    assert (found.jobs["m"].views, [scan.relation for scan in found.jobs["m"].scans]) == (("a",), ["r"])
    found.make()
    assert found.store.ledger("m") is None, "the batch of a view below is none of its own"
    found.add("a", 0, {"l": [(1, 1, 100, "a"), (2, 2, 5, "a")]})
    found.add("m", 0, {"r": [(1, 7, 0, "a")]})
    found.check()
    found.add("a", 1, {"l": [(2, 3, 1, "a")]})
    found.add("a", 2, {"l": [(1, 3, 100, "a")]})
    assert found.failed == [("m", "DATA_ERROR")]
    found.check("a")
    assert found.store.ledger("m").batch_id == 0  # type: ignore[union-attr]
    with pytest.raises(PenstockError, match="TINYINT"):
        found.store.follow("m")
    found.reopen()
    assert found.store.ledger("m").batch_id == 0  # type: ignore[union-attr]
    assert found.store.tracker("m") is not None
    found.add("a", 3, {"l": [(1, 5, -100, "a")]})
    assert found.store.read("SELECT n FROM n").table.to_pylist() == [{"n": 1}]
    found.store.follow("m")
    found.check()
    found.add("m", 1, {"r": [(2, 8, 0, "a"), (3, 9, 0, "a")]})
    found.check()
    assert as_of(found.store.read("SELECT * FROM m")) == {"m": 1, "a": 3}
    assert as_of(found.store.read("SELECT * FROM n")) == {"n": None, "m": 1, "a": 3}
    assert [change.batch_id for change in found.store.changes("m", 0)] == sorted(
        change.batch_id or 0 for change in found.store.changes("m", 0)
    )
    found.store.drop_view("n")
    found.store.drop_view("m")
    found.check("a")
    found.store.close()


def test_a_view_beside_a_stream_waits_for_one_that_is_held() -> None:
    found = Chained(
        {
            "a": "SELECT k, COUNT(*) AS n FROM l GROUP BY k",
            "b": "SELECT k, n FROM a WHERE n > 0",
            "m": "SELECT r.id, b.n FROM r LEFT JOIN b ON r.k = b.k",
        }
    )
    found.make()
    found.add("a", 0, {"l": [(1, 1, 1, "a")]})
    found.add("m", 0, {"r": [(1, 7, 0, "a")]})
    found.check()
    found.store.hold("b")
    found.add("a", 1, {"l": [(1, 2, 1, "a")]})
    found.add("m", 1, {"r": [(1, 8, 0, "a")]})
    assert found.store.read("SELECT id, n FROM m ORDER BY id").table.to_pylist() == [
        {"id": 7, "n": 1},
        {"id": 8, "n": 1},
    ]
    found.store.follow("b")
    found.check()
    found.add("a", 2, {"l": [(1, 3, 1, "a")]})
    found.check()
    found.store.close()


def test_held_views_tell_which_batch_they_show() -> None:
    """A view made on a held one waits with it; over two jobs the batches of both are told."""
    found = Chained(
        {
            "a": SUMS,
            "o": "SELECT k, w FROM r WHERE w > 0",
            "b": "SELECT k, n FROM a WHERE n > 0",
            "c": "SELECT b.k, o.w FROM b JOIN o ON b.k = o.k",
            "late": "SELECT COUNT(*) AS n FROM b",
        }
    )
    found.make("a", "o", "b", "c")
    found.add("a", 0, {"l": [(1, 1, 1, "a")]})
    found.add("o", 0, {"r": [(1, 1, 1, "a")]})
    found.add("o", 1, {"r": [(1, 2, 2, "a")]})
    found.check()
    assert as_of(found.store.read("SELECT * FROM c")) == {"c": None, "a": 0, "o": 1}
    entry = found.store.ledger("c")
    assert entry is not None
    assert [(at.connector_id, at.offset) for at in entry.offsets] == [("a", 0), ("o", 1)]
    found.store.hold("b")
    found.add("a", 1, {"l": [(2, 1, 1, "a")]})
    found.make("late")
    assert as_of(found.store.read("SELECT * FROM b, late, a")) == {"a": 1, "b": 0, "late": 0}
    found.store.hold("late")
    found.store.follow("b")
    assert as_of(found.store.read("SELECT * FROM b, late, a")) == {"a": 1, "b": 1, "late": 0}
    found.check("a", "b", "c")
    found.store.follow("late")
    found.check()
    assert found.store.system_table("penstock.checkpoints").num_rows == 4  # type: ignore[union-attr]
    found.store.drop_view("late")
    found.store.drop_view("c")
    found.add("a", 2, {"l": [(2, 1, 1, "a")]})
    found.check("a", "b")
    found.store.close()


def test_a_reader_never_sees_two_batches_at_once() -> None:
    """One that joins parent, child and grandchild while batches are committed (G18)."""
    found = Chained(
        {
            "a": "SELECT k, COUNT(*) AS n FROM l GROUP BY k",
            "b": "SELECT n, COUNT(*) AS keys FROM a GROUP BY n",
            "c": "SELECT SUM(n * keys) AS total FROM b",
        }
    )
    found.make()
    done = threading.Event()
    seen: list[tuple[int, int, int]] = []
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set() or not seen:
            shown = found.store.read(
                "SELECT (SELECT coalesce(SUM(n), 0) FROM a) AS a, (SELECT coalesce(SUM(n * keys), 0) FROM b) AS b, "
                "(SELECT coalesce(SUM(total), 0) FROM c) AS c"
            )
            row = tuple(int(value) for value in shown.table.to_pylist()[0].values())
            seen.append(row)  # type: ignore[arg-type]
            if len(set(row)) != 1 or len({*as_of(shown).values()}) != 1:
                wrong.append((row, as_of(shown)))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        found.commit("a", number, {"l": [(number % 7, number, 1, "a"), (number % 5, number, 1, "b")]})
    done.set()
    reader.join(60)
    assert not wrong
    assert found.store.read("SELECT total FROM c").table.to_pylist() == [{"total": 120}]
    found.store.close()


def test_only_the_touched_keys_are_answered_anew() -> None:
    """A key that the batch did not touch below has no changes above, and an answer that stays has none."""
    found = Chained({"a": SUMS, "b": "SELECT k, n > 1 AS several FROM a"})
    found.make()
    found.add("a", 0, {"l": [(1, 1, 1, "a"), (2, 2, 1, "a"), (None, 3, 1, "a")]})
    found.add("a", 1, {"l": [(1, 4, 2, "a")]})
    found.add("a", 2, {"l": [(1, 4, 2, "a")]})
    changes = found.store.changes("b", 3)
    assert [(change.op, change.batch_id, change.before or change.row) for change in changes] == [
        ("update", 1, {"k": 1, "several": False}),
    ]
    assert changes[0].row == {"k": 1, "several": True}
    found.store.close()


def test_how_tells_who_answers_and_by_which_key() -> None:
    jobs = jobs_of({"a": SUMS, "b": "SELECT n, COUNT(*) AS c FROM a GROUP BY n", "c": "SELECT SUM(c) AS c FROM b"})
    assert jobs["b"].how == (
        "no Spark: in the transaction of each batch that changes a, the view store answers the query for the keys "
        "that a batch touches: a by (n)"
    )
    assert jobs["c"].how.endswith("over all of them after each batch: it has no key")
    assert (jobs["b"].views, jobs["b"].scans) == (("a",), ())


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT k, rand() AS x FROM a", "rand differs each time"),
    ],
)
def test_what_cannot_be_built_on_a_view_is_refused_by_name(query: str, told: str) -> None:
    report = last(f"{STREAMS} CREATE MATERIALIZED VIEW a AS {SUMS}; CREATE MATERIALIZED VIEW b AS {query};")
    assert report.error is not None
    assert report.error.condition == "QUERY_NOT_YET"
    assert told in report.error.message
    assert report.error.hint is not None


LARGE = "CREATE MATERIALIZED VIEW large AS SELECT symbol, price, ts FROM {stream} WHERE price > 10; "
MINUTES = (
    "CREATE MATERIALIZED VIEW minutes AS SELECT window_start, COUNT(*) AS n "
    "FROM TABLE(TUMBLE(TABLE large, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"
)


def test_windows_that_close_over_added_rows_are_those_of_the_streams_below() -> None:
    """With the query of the view in the place of its name: the rows are those of the view."""
    plan = planned(LARGE.format(stream="trades") + MINUTES)
    job = plan_job(plan)
    assert (job.kind, [scan.relation for scan in job.scans], job.views) == ("panes", ["trades"], ())
    assert "large" in plan.depends_on
    assert "`price` > 10" in job.core
    assert any("reads the query of large in its place" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("stream", "below"),
    [
        (
            "CREATE STREAM s (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (start = 'latest');",
            LARGE,
        ),
        (
            "CREATE STREAM s (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (retention = '1 day');",
            LARGE,
        ),
        (
            "CREATE STREAM s (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);",
            LARGE.replace("WHERE", "WHERE rand() > 0.5 AND"),
        ),
    ],
)
def test_windows_that_close_over_a_view_are_refused_when_they_would_run(stream: str, below: str) -> None:
    """Where its streams would not give the same rows again; planned and explained, and told before anything starts."""
    plan = planned(stream + below.format(stream="s") + MINUTES)
    with pytest.raises(PenstockError, match='a job that reads materialized view "large" is not there yet') as refused:
        plan_job(plan)
    assert refused.value.condition == "QUERY_NOT_YET"
    assert refused.value.hint is not None
