"""Dimensions beside rows whose answer changes: the view is DuckDB's answer over all rows so far and the version that the
batch sees, after every batch, whatever is updated, broken off, run again or gone back from (SC40, G16, L13)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.stores.views import SeenVersion
from penstock.stores.views.model import BatchCommit
from tests.unit.stores.views.chaining import Chained
from tests.unit.stores.views.dimensioned import (
    DIMENSION,
    ChangingBesideDimension,
    Dimensioned,
    random_version,
    seen,
    use,
)
from tests.unit.stores.views.finishing import VIEW, BrokenOffError, Finished, add_rows, random_batch

# Over streams that rows are only added to. The answer is that of the newest version for all rows.
ADDED = {
    "aggregate": "SELECT x.k, x.m, d.label FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS x JOIN d ON d.k = x.k",
    "right": "SELECT l.id, l.v, d.label FROM l RIGHT JOIN d ON d.k = l.k",
    "full": "SELECT l.id, d.label, d.n FROM l FULL JOIN d ON d.k = l.k AND d.n > 0",
    "dimension in front": "SELECT d.label, l.id FROM d LEFT JOIN l ON d.k = l.k",
    "exists": "SELECT d.k, d.label FROM d WHERE EXISTS (SELECT 1 FROM l WHERE l.k = d.k AND l.v > 1)",
    "except": "SELECT k FROM l EXCEPT SELECT k FROM d",
    "having": "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING k IN (SELECT k FROM d WHERE n > 0)",
    "by what a left join finds": "SELECT l.id, r.w, d.label FROM l LEFT JOIN r ON r.id = l.id LEFT JOIN d ON d.k = r.k",
    "grouped by the dimension": (
        "SELECT d.label, COUNT(x.m) AS n, SUM(x.m) AS t FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS x "
        "RIGHT JOIN d ON d.k = x.k GROUP BY d.label"
    ),
    "a query over the dimension": (
        "SELECT x.k, x.m, d.n FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS x "
        "LEFT JOIN (SELECT k, SUM(n) AS n FROM d WHERE label <> 'b' GROUP BY k) AS d ON d.k = x.k"
    ),
}
# Over streams whose rows replace each other.
CHANGING = {
    "left": "SELECT l.id, l.v, d.label FROM l LEFT JOIN d ON d.k = l.k",
    "inner by a computed key": "SELECT l.id, d.n + 1 AS n FROM l JOIN d ON d.k + 1 = l.k",
    "semi": "SELECT l.id FROM l LEFT SEMI JOIN d ON d.k = l.k AND d.n > 0",
    "anti": "SELECT l.id, l.s FROM l LEFT ANTI JOIN d ON d.k = l.k",
    "not in": "SELECT l.id, l.s FROM l WHERE l.k NOT IN (SELECT k FROM d WHERE k IS NOT NULL)",
    "sums": "SELECT d.label, COUNT(*) AS n, SUM(l.v) AS t FROM l JOIN d ON d.k = l.k GROUP BY d.label",
    "twice": "SELECT l.id, a.label, b.n FROM l LEFT JOIN d AS a ON a.k = l.k LEFT JOIN d AS b ON b.k = l.v",
    "two streams": "SELECT l.id, r.w, d.label FROM l JOIN r ON l.id = r.id LEFT JOIN d ON d.k = r.w",
    "a value of all": "SELECT l.id, l.v FROM l WHERE l.v > (SELECT AVG(n) FROM d)",
}


# Joined below by Spark: a row meets the version of its batch. With one version the answer is that over all rows.
BELOW = {
    "behind a left join": "SELECT l.id, r.w, d.label FROM l LEFT JOIN r ON r.id = l.id LEFT JOIN d ON d.k = l.k",
    "an inner one": "SELECT l.id, r.w, d.label FROM l LEFT JOIN r ON r.k = l.k JOIN d ON d.k = l.k AND d.n > 0",
    "in front": "SELECT l.id, r.w, d.label FROM d RIGHT JOIN l ON d.k = l.k LEFT JOIN r ON r.id = l.id",
    "by the second stream": "SELECT l.id, r.id AS other, d.label FROM l JOIN r ON r.k = l.k JOIN d ON d.k = r.w FULL JOIN u ON u.k = l.k",
    "semi and anti": "SELECT l.id, r.w FROM l LEFT SEMI JOIN d ON d.k = l.k LEFT ANTI JOIN d AS e ON e.k = l.v LEFT JOIN r ON r.k = l.k",
    "one by the other": "SELECT l.id, e.n, r.w FROM l JOIN d ON d.k = l.k LEFT JOIN d AS e ON e.k = d.n LEFT JOIN r ON r.k = l.k",
    "ranked": (
        "SELECT l.*, d.label FROM l JOIN d ON d.k = l.k "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY l.k ORDER BY l.v DESC NULLS LAST, l.id, l.s, d.label, d.n) = 1"
    ),
    "not in": "SELECT l.id, r.w FROM l LEFT JOIN r ON r.k = l.k WHERE l.k NOT IN (SELECT k FROM d WHERE k > 2)",
    "exists": "SELECT k, COUNT(DISTINCT v) AS n FROM l WHERE EXISTS (SELECT 1 FROM d WHERE d.k = l.k AND d.n > 0) GROUP BY k",
    "read by a subquery": "SELECT l.id, d.label FROM l JOIN d ON d.k = l.k WHERE EXISTS (SELECT 1 FROM r WHERE r.k = d.n)",
}


def _check(found: Finished) -> object:
    expected = found.answer()
    assert found.view() == expected
    found.follow()
    assert +found.fold == expected
    return expected


def _story(found: Finished, rnd: random.Random, batches: list[dict[str, list[tuple[object, ...]]]]) -> None:
    """Updates between batches, one of them with no row beside; a commit that breaks off and is run again; the store
    closed and opened; the way back behind two updates."""
    versions = [random_version(rnd) for _ in range(3)]
    versions[1] = versions[0][1:3] + versions[1][:3]  # some rows stay
    answers: list[object] = []
    for number, batch in enumerate(batches):
        if number in (0, 3, 5):
            use(found, 1 + (0, 3, 5).index(number), versions[(0, 3, 5).index(number)])
        if number == 3:
            for point in ("view.before_write", "view.before_commit"):
                with pytest.raises(BrokenOffError):
                    found.commit(number, batch, fails_at=point)
                assert found.view() == answers[-1]
                found.reopen()
        found.add(number, batch)
        answers.append(_check(found))
        if number == 5:
            with pytest.raises(BrokenOffError):
                found.commit(6, batches[6], fails_at="view.before_commit")
            found.commit(number, batch)  # it is in the ledger, and taken once
            assert found.view() == answers[-1]
    found.store.rollback("job", 2)
    assert found.view() == answers[2], "back to the first version"
    found.store.rollback("job", 1)
    assert found.view() == answers[1]
    found.store.rollback("job", -1)
    assert not found.view()


@pytest.mark.parametrize("shape", ADDED)
def test_an_update_changes_the_answer_of_rows_that_are_there(shape: str, tmp_path: Path) -> None:
    rnd = random.Random(f"added {shape}")  # noqa: S311
    found = Dimensioned(ADDED[shape], tmp_path / "views.duckdb")
    batches = [random_batch(rnd, 100 * number) for number in range(8)]
    batches[5] = {}
    _story(found, rnd, batches)


@pytest.mark.parametrize("shape", CHANGING)
def test_rows_that_replace_each_other_beside_a_dimension(shape: str, tmp_path: Path) -> None:
    rnd = random.Random(f"changing {shape}")  # noqa: S311
    found = ChangingBesideDimension(CHANGING[shape], tmp_path / "views.duckdb")
    batches = [found.batch(rnd) for _ in range(8)]
    batches[5] = {"l": [], "r": [], "u": []}
    _story(found, rnd, batches)


@pytest.mark.parametrize("shape", BELOW)
def test_a_join_below(shape: str) -> None:
    rnd = random.Random(f"below {shape}")  # noqa: S311
    found = Dimensioned(BELOW[shape], None)
    assert not any(dimension.kept for dimension in found.job.dimensions)
    use(found, 1, random_version(rnd))
    for number in range(8):
        found.add(number, random_batch(rnd, 100 * number))
        _check(found)


def test_a_row_of_a_join_below_keeps_what_it_met() -> None:
    found = Dimensioned(BELOW["behind a left join"], None)
    use(found, 1, [(1, "old", 0)])
    found.commit(0, {"l": [(1, 10, 0, "x")]})
    use(found, 2, [(1, "new", 0)])
    found.commit(1, {"l": [(1, 11, 0, "x")], "r": [(1, 10, 5, "y")]})
    assert sorted(found.view()) == ["[10, 5, 'old']", "[11, None, 'new']"]


def test_a_version_that_is_there_is_not_read_again() -> None:
    found = Dimensioned(ADDED["right"], None)
    use(found, 1, [(1, "a", 0)])
    found.add(0, {"l": [(1, 1, 1, "x")]})

    def never() -> NoReturn:
        raise AssertionError("the version is there")

    found.versions = (SeenVersion("d", 1, never),)
    found.add(1, {"l": [(1, 2, 1, "x")]})
    assert found.view() == found.answer()


def test_an_update_touches_what_it_changes_alone() -> None:
    """Changes are those of the rows that differ: neither the rows of other keys nor rows that stay."""
    found = ChangingBesideDimension(CHANGING["left"], None)
    use(found, 1, [(0, "a", 0), (1, "b", 0), (2, "c", 0)])
    rows = [(key, key, 1, "x", 1, False, 0, key) for key in range(3)]
    found.add(0, {"l": rows})
    found.follow()
    use(found, 2, [(0, "a", 0), (1, "B", 0), (2, "c", 7)])
    found.add(1, {})
    changes = found.store.changes(VIEW, found.seq)
    assert sorted((change.op, (change.row or change.before or {})["label"]) for change in changes) == [
        ("delete", "b"),
        ("insert", "B"),
    ]


def test_a_row_as_of_processing_time_keeps_what_it_met() -> None:
    """The answer for a row is made once, with the version of its batch; an update changes none of it."""
    query = "SELECT x.id, x.label, r.w FROM (SELECT l.id, d.label FROM l LEFT JOIN d FOR SYSTEM_TIME AS OF PROCTIME() "
    query += "AS d ON d.k = l.k) AS x LEFT JOIN r ON r.id = x.id"
    found = Dimensioned(query, None)
    use(found, 1, [(1, "old", 0)])
    found.commit(0, {"l": [(1, 10, 0, "x")]})
    use(found, 2, [(1, "new", 0)])
    found.commit(1, {"l": [(1, 11, 0, "x")], "r": [(1, 10, 5, "y")]})
    assert sorted(found.view()) == ["[10, 'old', 5]", "[11, 'new', None]"]


def test_a_view_beside_a_dimension_follows_both() -> None:
    views = {
        "a": "SELECT k, MAX(v) AS m FROM l GROUP BY k",
        "b": "SELECT a.k, a.m, d.label FROM a LEFT JOIN d ON d.k = a.k",
        "c": "SELECT label, COUNT(*) AS n FROM b GROUP BY label",
    }
    found = Chained(views, tables="CREATE TABLE d (k BIGINT, label VARCHAR, n BIGINT);", declared=DIMENSION)

    def update(rows: list[tuple[object, ...]]) -> None:
        found.all.execute("DELETE FROM d")
        add_rows(found.all, "d", rows)

    assert found.jobs["b"].of_views
    update([(1, "one", 0)])
    found.make("a")
    found.store.create_view(found.spec("b"), (seen(1, [(1, "one", 0)]),))
    found.made.append("b")
    found.make("c")
    found.add("a", 0, {"l": [(1, 1, 5, "x"), (2, 2, 6, "x")]})
    found.check()
    update([(1, "uno", 0), (2, "due", 0)])
    found.store.see("b", (seen(2, [(1, "uno", 0), (2, "due", 0)]),))
    found.check()
    found.add("a", 1, {"l": [(2, 3, 9, "x")]})
    found.check()
    found.store.hold("b")
    update([(2, "two", 0)])
    found.store.see("b", (seen(3, [(2, "two", 0)]),))  # it stands still
    assert found.view("b") != found.answer("b")
    found.store.follow("b", (seen(3, [(2, "two", 0)]),))
    found.check()
    found.store.rollback("a", 0)
    found.all.execute("DELETE FROM l WHERE id = 3")
    assert found.view("b") == found.answer("b"), "the rows below went back, the dimension is what it is"


def test_changes_for_a_sink_are_the_same_when_the_batch_is_run_again() -> None:
    found = ChangingBesideDimension(CHANGING["left"], None)
    use(found, 1, [(1, "a", 0)])
    rows = found.core({"l": [(1, 1, 1, "x", 1, False, 0, 0)]})
    first = found.store.stage("job", VIEW, 0, rows, versions=found.versions).after
    again = found.store.stage("job", VIEW, 0, rows, versions=found.versions).after
    assert first.to_pylist() == again.to_pylist() == [{"id": 1, "v": 1, "label": "a"}]
    found.store.commit(BatchCommit("job", 0, "hash 0"))
    use(found, 2, [(1, "b", 0)])
    changed = found.store.stage("job", VIEW, 1, found.core({}), versions=found.versions)
    assert changed.operations == ["delete", "insert"]
    assert changed.before.to_pylist()[0]["label"] == "a"
    assert changed.after.to_pylist()[1]["label"] == "b"
