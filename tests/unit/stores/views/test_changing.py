"""Views over sources whose rows change: every shape of query is DuckDB's answer over the latest row of each key, after
every batch (SC40, G13, G16, G18)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.stores.views.model import BatchCommit
from tests.unit.stores.views.changing import Bags, Changing
from tests.unit.stores.views.finishing import VIEW, BrokenOffError, Row
from tests.unit.stores.views.test_finish import SHAPES

# What has an answer of its own where rows can change back, besides the shapes over rows that are only added.
MORE = {
    "projection": "SELECT id, k, upper(s) AS u FROM l",
    "filter": "SELECT id, v FROM l WHERE v > 1 AND s <> 'a'",
    "filter that guards a value": "SELECT id, CAST(concat('1', s) AS INT) AS n FROM l WHERE s = '7'",
    "sums by key": "SELECT k, COUNT(*) AS n, SUM(v) AS t, MIN(v) AS low, MAX(v) AS high, AVG(v) AS mean FROM l GROUP BY k",
    "sum of all": "SELECT COUNT(*) AS n, SUM(v) AS t FROM l",
    "having": "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING COUNT(*) > 1",
    "inner join": "SELECT l.id, r.id AS other, r.w FROM l JOIN r ON l.k = r.k",
    "join by key": "SELECT l.id, l.v, r.w FROM l JOIN r ON l.id = r.id",
    "join and sum": "SELECT r.s, SUM(l.v) AS t FROM l JOIN r ON l.k = r.id GROUP BY r.s",
    "union all": "SELECT k, s FROM l UNION ALL SELECT k, s FROM r",
    "version shown": "SELECT id, ver FROM l",
    "medians": (
        "SELECT k, MEDIAN(v) AS m, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v) AS p, "
        "CAST(PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY v DESC) AS BIGINT) AS d, BIT_XOR(v) AS b, "
        "MEDIAN(v) FILTER (WHERE id > 5) AS f FROM l GROUP BY k"
    ),
    "of different values": (
        "SELECT k, MEDIAN(DISTINCT v) AS m, MEDIAN(DISTINCT v) FILTER (WHERE id > 5) AS f FROM l GROUP BY k"
    ),
    "texts of numbers": (
        "SELECT k, STRING_AGG(id, ',' ORDER BY id) AS x, STRING_AGG(DISTINCT v, ';' ORDER BY v DESC) AS y, "
        "STRING_AGG(v, '' ORDER BY v) FILTER (WHERE id > 2) AS z, STRING_AGG(v > 1, ',' ORDER BY v > 1) AS b FROM l GROUP BY k"
    ),
    "over groups": (
        "SELECT k, LAG(COUNT(*)) OVER (ORDER BY k) AS a, LEAD(MAX(v), 2, -1) OVER (ORDER BY k) AS b, "
        "FIRST_VALUE(SUM(v)) OVER (ORDER BY COUNT(*), k) AS c, NTH_VALUE(COUNT(*), 2) OVER (ORDER BY k) AS d, "
        "COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY k) AS e, LAG(MAX(v) IGNORE NULLS) OVER (ORDER BY k) AS f, "
        "LAST_VALUE(MAX(v) IGNORE NULLS) OVER (ORDER BY k) AS g FROM l GROUP BY k"
    ),
    "columns around an aggregate": (
        "SELECT id, v, (SELECT COUNT(*) + l.v FROM r WHERE r.k = l.k) AS n, "
        "(SELECT MAX(r.w) FROM r WHERE r.k = l.k HAVING COUNT(*) > l.v) AS m FROM l "
        "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k GROUP BY r.s HAVING SUM(r.w) < l.v) "
        "OR v < (SELECT SUM(r.w) - l.id FROM r)"
    ),
    "texts of a frame": (
        "SELECT k, id, STRING_AGG(DISTINCT k, ',') OVER (PARTITION BY k) AS x, "
        "LENGTH(STRING_AGG(DISTINCT s, ',') OVER (PARTITION BY k ORDER BY id)) AS n, "
        "STRING_AGG(v, ',') OVER (PARTITION BY k ORDER BY v, id) AS y, "
        "MEDIAN(DISTINCT v) OVER (PARTITION BY k) AS m FROM l"
    ),
    "ordered lists": (
        "SELECT k, ARRAY_AGG(COALESCE(s, '-') ORDER BY v DESC, s DESC) AS x, STRING_AGG(s, '-' ORDER BY v, s) AS y, "
        "ARRAY_AGG(id ORDER BY s, v DESC, id) AS z, ARRAY_AGG(DISTINCT COALESCE(v, -1) ORDER BY COALESCE(v, -1) DESC) AS d, "
        "STRING_AGG(upper(s), '' ORDER BY v DESC NULLS FIRST, s) FILTER (WHERE id > 2) AS u FROM l GROUP BY k"
    ),
}
QUERIES = {**{name: query for name, (query, _) in SHAPES.items()}, **MORE}
OFTEN = ("filter", "sums by key", "full join", "top 2 of a key", "several distinct", "except", "join and sum", "lag",
         "medians", "ordered lists", "columns around an aggregate")  # fmt: skip
# Each by turns in order and by version; the rest, and both ways of each, where there is time.
CASES = [
    pytest.param(shape, versioned, marks=[] if shape in OFTEN and place % 2 == versioned else pytest.mark.soak)
    for place, shape in enumerate(QUERIES)
    for versioned in (False, True)
]


@pytest.mark.parametrize(("shape", "versioned"), CASES)
def test_view_and_changes_are_the_answer_over_the_latest_rows(shape: str, versioned: bool, tmp_path: Path) -> None:
    """With deletions of known and unknown keys, rows that come twice and out of order, a batch that breaks off, one that
    comes twice, a store that is closed and opened again, and a way back that brings replaced rows back."""
    rnd = random.Random(f"changing {shape}")  # noqa: S311
    found = Changing(QUERIES[shape], tmp_path / "views.duckdb", versioned=versioned)
    batches = [found.batch(rnd) for _ in range(9)]
    batches[5] = {"l": [], "r": [], "u": []}
    answers: list[object] = []
    for number, batch in enumerate(batches):
        if number == 3:
            with pytest.raises(BrokenOffError):
                found.commit(number, batch, fails_at="view.before_commit")
        found.add(number, batch)
        if number == 2:
            found.commit(number, batch)  # Spark had not heard of the commit
        if number == 4:
            found.reopen()
        if number == 7:
            found.store.rollback("job", 3)
            assert found.view() == answers[3], "after the way back"
            for again in (4, 5, 6, 7):
                found.commit(again, batches[again])
            found.fold.clear()
            found.seq = 0
        found.follow()
        answers.append(found.answer())
        if not (number == 0 and "of all" in shape):
            assert found.view() == answers[-1], f"the view after batch {number}"
            assert +found.fold == answers[-1], f"the folded changes after batch {number}"
    if shape != "filter that guards a value":
        assert any(answers), "an empty answer tells nothing"
    found.store.close()


def test_percentiles_and_modes_that_duckdb_spells_in_another_way(tmp_path: Path) -> None:
    """Several shares are NULL of no value, and of values of which each counts once any is a mode: it is the smallest."""
    query = (
        "SELECT k, PERCENTILE(v, ARRAY(0.1, 0.9)) AS q, PERCENTILE(DISTINCT v, 0.25) AS p, MODE(DISTINCT v) AS m "
        "FROM l GROUP BY k"
    )
    found = Changing(query, tmp_path / "views.duckdb", versioned=True)
    found.oracle = (
        "SELECT k, CASE WHEN COUNT(v) > 0 THEN quantile_cont(CAST(v AS DOUBLE), [0.1, 0.9]) END AS q, "
        "quantile_cont(DISTINCT CAST(v AS DOUBLE), 0.25) AS p, MIN(v) AS m FROM l GROUP BY k"
    )
    rnd = random.Random(1)  # noqa: S311
    for number in range(4):
        found.add(number, found.batch(rnd))
        assert found.view() == found.answer(), f"the view after batch {number}"
    assert found.view()
    found.store.close()


@pytest.mark.parametrize("shape", ["filter", "sums by key", "full join", "count beside each row"])
def test_whole_rows_that_come_and_go(shape: str, tmp_path: Path) -> None:
    """SC40, G16: without a key a change names the whole row; the same row may be there twice, and goes once at a time."""
    rnd = random.Random(f"bags {shape}")  # noqa: S311
    found = Bags(QUERIES[shape], tmp_path / "views.duckdb")
    answers: list[object] = []
    batches: list[dict[str, list[Row]]] = []
    for number in range(6):
        batches.append(found.batch(rnd))
        found.add(number, batches[-1])
        if number == 2:
            found.reopen()
        if number == 4:
            found.store.rollback("job", 1)
            assert found.view() == answers[1], "after the way back"
            for again in (2, 3, 4):
                found.commit(again, batches[again])
            found.fold.clear()
            found.seq = 0
        found.follow()
        answers.append(found.answer())
        assert found.view() == answers[-1], f"the view after batch {number}"
        assert +found.fold == answers[-1], f"the folded changes after batch {number}"
    assert any(answers), "an empty answer tells nothing"
    found.store.close()


def test_a_row_that_is_replaced_is_one_update() -> None:
    """The key of the source tells the rows of a projection apart; deletions that delete nothing change nothing."""
    found = Changing("SELECT id, v FROM l WHERE v >= 0", None, versioned=False)
    row = ("a", None, False, 0)
    found.add(0, {"l": [(1, 1, 5, *row, 1), (1, 2, 5, *row, 2), (1, 1, 6, *row, 3)], "r": [], "u": []})
    found.add(1, {"l": [(9, 1, 7, *row, 4), (1, 3, 0, "a", None, True, 0, 5), (1, 2, -1, *row, 6)], "r": [], "u": []})
    found.add(2, {"l": [(1, 2, 8, *row, 7), (1, 2, 5, *row, 8), (1, 1, 7, *row, 9)], "r": [], "u": []})
    changes = found.store.changes(VIEW, 0)
    assert [(change.batch_id, change.op, change.before, change.row) for change in changes] == [
        (0, "insert", None, {"id": 1, "v": 6}),
        (0, "insert", None, {"id": 2, "v": 5}),
        (1, "delete", {"id": 2, "v": 5}, None),
        (1, "update", {"id": 1, "v": 6}, {"id": 1, "v": 7}),
        (2, "insert", None, {"id": 2, "v": 5}),
    ]
    found.store.close()


def test_deleted_keys_are_remembered_with_a_version_only(tmp_path: Path) -> None:
    """An old version does not bring a deleted row back; without versions nothing is kept of one."""
    for versioned, expected in ((True, 0), (False, 1)):
        found = Changing("SELECT id, v FROM l", tmp_path / f"{versioned}.duckdb", versioned=versioned)
        found.add(0, {"l": [(1, 1, 5, "a", 7, False, 0, 1)], "r": [], "u": []})
        found.add(1, {"l": [(None, 1, None, None, None, True, 0, 2)], "r": [], "u": []})
        found.add(2, {"l": [(1, 1, 4, "a", 6, False, 0, 3)], "r": [], "u": []})
        assert found.store.read(f"SELECT * FROM {VIEW}").table.num_rows == expected
        found.add(3, {"l": [(1, 1, 9, "a", 8, False, 0, 4)], "r": [], "u": []})
        assert found.store.read(f"SELECT * FROM {VIEW}").table.to_pylist() == [{"id": 1, "v": 9}]
        found.store.close()


def test_replaced_rows_are_kept_as_long_as_they_can_be_gone_back_to() -> None:
    """The history of a key is let go of, and with it the batches that need it."""
    found = Changing("SELECT id, v FROM l", None, versioned=False)
    nothing = found.core({})
    for number in range(141):
        rows = (
            found.core({"l": [(1, 1, number, "a", None, False, 0, number)]}) if number < 3 or number > 100 else nothing
        )
        found.store.commit(BatchCommit("job", number, str(number), view=VIEW, rows=rows))
    found.store.rollback("job", 45)
    assert found.store.read(f"SELECT v FROM {VIEW}").table.to_pylist() == [{"v": 2}]
    with pytest.raises(Exception, match="cannot go back"):
        found.store.rollback("job", 20)
    found.store.close()


@pytest.mark.parametrize("versioned", [False, True], ids=["in order", "by version"])
def test_rows_are_forgotten_when_their_time_is_over(versioned: bool) -> None:
    """With state_ttl a row goes so long after the batch that brought it, replaced or not; others stay."""
    found = Changing("SELECT id, v FROM l", None, versioned=versioned)
    found.store.drop_view(VIEW)
    found.store.create_view(replace(found.spec, ttl_us=10))
    rows = {0: (1, 1, 5, "a", 1), 5: (1, 2, 6, "a", 1), 8: (1, 1, 7, "a", 2), 16: (1, 3, 8, "a", 1)}
    for number, (clock, row) in enumerate(rows.items()):
        batch = found.core({"l": [(*row, False, 0, number)]})
        found.store.commit(BatchCommit("job", number, str(number), view=VIEW, rows=batch, clock_us=clock))
    table = found.store.read(f"SELECT * FROM {VIEW} ORDER BY id").table
    assert table.to_pylist() == [{"id": 1, "v": 7}, {"id": 3, "v": 8}]
    found.store.close()
