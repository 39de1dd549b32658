"""What the store keeps where an answer needs only distinct rows, or only the best rows of each key: beside DuckDB, with
duplicates within batches and across them, ways back and stores that are opened again (G13, G16)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import plan_job
from penstock.stores.views import best_table, finish_view
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import STREAMS, Finished, Row, job_of, random_batch, row_text

# The query, and of each relation that it reads, in their order, whether distinct rows are kept.
DISTINCT: dict[str, tuple[str, tuple[bool, ...]]] = {
    "distinct": ("SELECT DISTINCT k, s FROM l", (True,)),
    "groups alone": ("SELECT k, s FROM l GROUP BY CUBE (k, s)", (True,)),
    "distinct, cut off": ("SELECT DISTINCT v FROM l ORDER BY v DESC LIMIT 3", (True,)),
    "count distinct": ("SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k", (True,)),
    "others that count no rows": (
        (
            "SELECT k, SUM(DISTINCT v) AS a, AVG(DISTINCT v) AS b, MIN(s) AS c, MAX(v) AS d, BOOL_OR(v > 3) AS e, "
            "BOOL_AND(v > 1) AS f, COUNT(DISTINCT s) FILTER (WHERE v > 1) AS g, COUNT(DISTINCT (k, v)) AS h FROM l GROUP BY k "
            "HAVING COUNT(DISTINCT v) > 1"
        ),
        (True,),
    ),
    "of all": ("SELECT COUNT(DISTINCT s) AS n, MAX(v) AS m FROM l", (True,)),
    "rollup": ("SELECT k, s, COUNT(DISTINCT v) AS n FROM l GROUP BY ROLLUP (k, s)", (True,)),
    "count beside it": ("SELECT k, COUNT(DISTINCT v) AS n, COUNT(*) AS m FROM l GROUP BY k", (False,)),
    "sum in HAVING": ("SELECT k, COUNT(DISTINCT s) AS n FROM l GROUP BY k HAVING SUM(v) > 3", (False,)),
    "running count of rows": ("SELECT DISTINCT k, COUNT(*) OVER (PARTITION BY k) AS n FROM l", (False,)),
    "exists": ("SELECT k, id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w > l.v)", (False, True)),
    "not in": ("SELECT id, v FROM l WHERE k NOT IN (SELECT w FROM r WHERE w IS NOT NULL)", (False, True)),
    "in some": ("SELECT id FROM l WHERE k IN (SELECT k FROM r ORDER BY w, k LIMIT 2)", (False, False)),
    "semi join": ("SELECT l.k, l.id FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.v < r.w", (False, True)),
    "anti join": ("SELECT l.k, l.id FROM l LEFT ANTI JOIN r ON l.k = r.k", (False, True)),
    "largest of the other": ("SELECT id, v FROM l WHERE v > (SELECT MIN(w) FROM r)", (False, True)),
    "count of the other": ("SELECT id, v FROM l WHERE v > (SELECT COUNT(*) % 3 FROM r)", (False, False)),
    "union": ("SELECT k, s FROM l UNION SELECT k, s FROM r", (True, True)),
    "except": ("SELECT k, v FROM l EXCEPT SELECT k, w FROM r", (True, True)),
    "except all": ("SELECT k FROM l EXCEPT ALL SELECT k FROM r", (False, False)),
    "distinct of a union": ("SELECT DISTINCT k FROM (SELECT k FROM l UNION ALL SELECT k FROM r) AS x", (True, True)),
    "distinct of the rest": (
        "SELECT DISTINCT k FROM (SELECT k FROM l EXCEPT ALL SELECT k FROM r) AS x",
        (False, False),
    ),
    "distinct of a join": (
        "SELECT COUNT(DISTINCT l.v) AS n, r.s FROM l LEFT JOIN r ON l.k = r.k GROUP BY r.s",
        (True, True),
    ),
    "join": ("SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k", (False, False)),
    "twice": ("SELECT DISTINCT k FROM l WHERE v IN (SELECT v FROM l WHERE s = 'a')", (True,)),
    "twice, counted once": ("SELECT k FROM l WHERE v IN (SELECT v FROM l WHERE s = 'a')", (False,)),
    "groups of groups": (
        "SELECT m, COUNT(*) AS n FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS x GROUP BY m",
        (True,),
    ),
}

TOTAL = "v DESC, id, s"
# The query, its rows of kept keys, and whether Spark leaves fewer of a large batch.
BEST: dict[str, tuple[str, tuple[int, str] | None, bool]] = {
    "top 2": (
        f"SELECT k, id, v FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) <= 2",
        (2, "k"),
        False,
    ),
    "top 2 with their place": (
        f"SELECT * FROM (SELECT k, id, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) AS rn FROM l WHERE v > 0) AS x WHERE rn < 3",
        (2, "k"),
        False,
    ),
    "the second": (
        f"SELECT k, id FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) = 2",
        (2, "k"),
        False,
    ),
    "by two keys, between": (
        (
            "SELECT * FROM (SELECT k, s, v, ROW_NUMBER() OVER (PARTITION BY k, s ORDER BY v) AS rn FROM l) AS x "
            "WHERE rn BETWEEN 2 AND 3"
        ),
        (3, "k, s"),
        False,
    ),
    "keep first": ("SELECT DISTINCT ON (k) k, v, id, s FROM l ORDER BY k, id, v, s", (1, "k"), False),
    "keep last": (
        "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC, v, s) AS rn FROM l) AS x WHERE 1 = rn",
        (1, "k"),
        False,
    ),
    "by text, NULLs first": (
        "SELECT k, id, s FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY s DESC NULLS FIRST, id, v) <= 2",
        (2, "k"),
        False,
    ),
    "of all": (f"SELECT k, id, v FROM l QUALIFY ROW_NUMBER() OVER (ORDER BY {TOTAL}, k) <= 3", (3, ""), True),
    "limit": ("SELECT k, v, id FROM l ORDER BY v DESC, id, k LIMIT 4", (4, ""), True),
    "limit, offset": ("SELECT k, v AS w, id FROM l ORDER BY w DESC NULLS FIRST, id, k LIMIT 3 OFFSET 2", (5, ""), True),
    "rank": ("SELECT k, v, id FROM l QUALIFY RANK() OVER (PARTITION BY k ORDER BY v DESC) <= 2", (2, "k"), False),
    "dense rank": (
        "SELECT k, v, id FROM l QUALIFY DENSE_RANK() OVER (PARTITION BY s ORDER BY v) <= 2",
        (2, "s"),
        False,
    ),
    "below an aggregate": (
        (
            f"SELECT id, COUNT(*) AS n FROM (SELECT k, id, v FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) <= 2) AS x "
            "GROUP BY id"
        ),
        (2, "k"),
        False,
    ),
    "before a join": (
        (
            "SELECT x.id, r.w FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) AS rn FROM l) AS x "
            "LEFT JOIN r ON x.k = r.k WHERE x.rn <= 2"
        ),
        (2, "k"),
        False,
    ),
    "behind a join": (
        (
            "SELECT r.id, x.id AS other FROM r LEFT JOIN (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) AS rn FROM l) AS x "
            "ON x.k = r.k WHERE x.rn <= 2 OR x.rn IS NULL"
        ),
        None,
        False,
    ),
    "read twice": (
        (
            f"SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) AS rn FROM l) AS x "
            "WHERE rn <= 2 AND EXISTS (SELECT 1 FROM l AS o WHERE o.k = x.k AND o.v = 1)"
        ),
        None,
        False,
    ),
    "how many there are": (
        (
            "SELECT * FROM (SELECT k, id, COUNT(*) OVER (PARTITION BY k) AS n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) AS rn "
            "FROM l) AS x WHERE rn <= 2"
        ),
        None,
        False,
    ),
    "the worst": ("SELECT k, id FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) >= 2", None, False),
    "one or another": (
        "SELECT * FROM (SELECT k, id, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) AS rn FROM l) AS x WHERE rn <= 2 OR v = 1",
        None,
        False,
    ),
}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that tidies every other batch, and of which nobody goes back more than four."""
    monkeypatch.setattr(finish_view, "KEPT_BATCHES", 4)
    monkeypatch.setattr(finish_view, "TIDY_EVERY", 2)
    monkeypatch.setattr(best_table, "TIDY_EVERY", 2)


def _kept(found: Finished, place: int = 0) -> list[Row]:
    """The kept rows of a relation, with their batches first."""
    with found.store._database.errors():
        return found.store._database.writer.execute(f"FROM store.r1_{place}").fetchall()


def _run(query: str, path: Path, seed: str) -> Finished:
    """Fourteen batches, some of which come twice, with a way back and a store that is opened again."""
    rnd = random.Random(seed)  # noqa: S311
    batches = [random_batch(rnd, 10 * number) for number in range(14)]
    for number in range(3, 14, 4):  # a batch of what was there already, twice over
        batches[number] = {name: 2 * rows for name, rows in batches[number - 2].items()}
    batches[0]["l"].append((1, 0, 1, "a"))
    batches[5] = {"l": [], "r": [], "u": []}
    found = Finished(query, path)
    for number, batch in enumerate(batches):
        found.add(number, batch)
        if number == 6:
            found.reopen()
        if number == 11:
            found.store.rollback("job", 8)
            for again in (9, 10, 11):
                found.commit(again, batches[again])
            found.fold.clear()
            found.seq = 0
        found.follow()
        expected = found.answer()
        assert found.view() == expected, f"the view after batch {number}"
        assert +found.fold == expected, f"the folded changes after batch {number}"
    assert expected, "an empty answer tells nothing"
    return found


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("shape", DISTINCT)
def test_distinct_rows_are_kept_where_nothing_counts_them(shape: str, tmp_path: Path) -> None:
    query, distinct = DISTINCT[shape]
    found = _run(query, tmp_path / "views.duckdb", f"distinct {shape}")
    assert found.job.finish is not None
    assert tuple(rows.distinct for rows in found.job.finish.rows) == distinct
    for place, alone in enumerate(distinct):
        rows = [row_text(row[1:]) for row in _kept(found, place)]
        assert (len(rows) == len(set(rows))) == alone
    assert (found.job.batch is not None) == all(distinct)
    assert (found.taken_out > 0) == all(distinct)
    found.store.close()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("shape", BEST)
def test_only_the_best_rows_of_old_batches_stay(shape: str, tmp_path: Path) -> None:
    query, best, reduced = BEST[shape]
    found = _run(query, tmp_path / "views.duckdb", f"best {shape}")
    assert found.job.finish is not None
    (rows,) = [rows for rows in found.job.finish.rows if rows.relation == "l"]
    assert (found.job.batch is not None) == reduced
    assert (found.taken_out > 0) == reduced
    if best is None:
        assert rows.best is None
        assert len(_kept(found, found.job.finish.rows.index(rows))) == found.all.sql("FROM l").shape[0]
    else:
        count, by = best
        assert rows.best is not None
        names = {entry.name: shown for entry, shown in zip(rows.columns, rows.shown, strict=True)}
        assert (rows.best.count, ", ".join(names[name] for name in rows.best.by)) == (count, by)
        kept = [row for row in _kept(found) if row[0] <= 12 - 4]  # the last time that it tidied
        keys = {tuple(row[1 + list(names).index(name)] for name in rows.best.by) for row in kept}
        assert kept
        assert len(kept) <= count * len(keys) or rows.best.number != "row_number"
        assert len(kept) < found.all.sql("FROM l").shape[0]
    found.store.close()


def test_a_row_that_comes_again_touches_no_key() -> None:
    found = Finished("SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k", None)
    found.add(0, {"l": [(1, 1, None, "a"), (1, 2, None, "b"), (None, 3, 1, "a")]})
    found.add(1, {"l": [(1, 4, None, "a"), (None, 5, 1, None)]})
    assert _kept(found) == [(0, None, 1), (0, 1, None)] or _kept(found) == [(0, 1, None), (0, None, 1)]
    found.add(2, {"l": [(1, 4, 7, "a")]})
    found.store.rollback("job", 1)
    assert (2, 1, 7) not in _kept(found)
    assert len(_kept(found)) == 2
    found.store.close()


NESTED = "CREATE STREAM l (x DOUBLE, xs ARRAY<DOUBLE>, p STRUCT<a INT, b DOUBLE>);"
NESTED_TABLE = "CREATE TABLE l (x DOUBLE, xs DOUBLE[], p STRUCT(a INTEGER, b DOUBLE)); CREATE TABLE r (x INT); CREATE TABLE u (x INT);"


def test_what_is_distinct_is_what_distinct_says() -> None:
    """NaN is NaN and 0.0 is -0.0, also inside of lists and structs, where NULL is NULL as well."""
    found = Finished("SELECT DISTINCT x, xs, p FROM l", None, NESTED, NESTED_TABLE, NESTED_TABLE)
    nan = float("nan")
    rows: list[Row] = [
        (nan, [nan, 0.0, None], {"a": None, "b": nan}),
        (0.0, [], None),
        (None, None, {"a": 1, "b": 0.0}),
    ]
    again: list[Row] = [
        (nan, [nan, -0.0, None], {"a": None, "b": nan}),
        (-0.0, [], None),
        (None, None, {"a": 1, "b": -0.0}),
        (None, [None], {"a": 1, "b": -0.0}),
    ]
    found.add(0, {"l": rows + rows})
    found.add(1, {"l": again})
    assert len(found.answer()) == 4
    assert [row[0] for row in sorted(_kept(found), key=lambda row: int(row[0]))] == [0, 0, 0, 1]
    assert sum(found.view().values()) == 4
    found.store.close()


@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ("m MAP<STRING, INT>", "SELECT COUNT(DISTINCT CAST(cardinality(m) AS INT)) AS n, MAX(m['a']) AS a FROM l"),
        ("k INT, m MAP<STRING, INT>", "SELECT k, MAX(m['a']) AS a, COUNT(DISTINCT k) AS n FROM l GROUP BY k"),
    ],
)
def test_maps_are_not_told_apart(columns: str, query: str) -> None:
    """Spark's maps and DuckDB's are not equal alike: such rows are all kept, or the values that Spark takes out of them."""
    job = plan_job(planned(f"CREATE STREAM l ({columns}); CREATE MATERIALIZED VIEW v AS {query};"))
    assert job.finish is not None
    (rows,) = job.finish.rows
    maps = [entry for entry in rows.columns if entry.type is None or entry.type.name == "MAP"]
    assert rows.distinct == (not maps)


def test_rows_that_change_are_kept_as_they_are() -> None:
    """Rows that replace each other, those of views, and those with a time to live."""
    changing = "CREATE STREAM c (k BIGINT, v BIGINT, PRIMARY KEY (k)) WITH (connector = 'topic', changes = 'upsert');"
    for streams, relation, more in [
        (changing, "c", ""),
        (STREAMS, "l", " WITH (state_ttl = '1 day')"),
        (f"{STREAMS} CREATE MATERIALIZED VIEW c AS SELECT k, v FROM l;", "c", ""),
    ]:
        for query in (
            f"SELECT DISTINCT v FROM {relation}",
            f"SELECT k, v FROM {relation} ORDER BY v, k LIMIT 3",
        ):
            plan = planned(f"{streams} CREATE MATERIALIZED VIEW a{more} AS {query};")
            job = plan_job(plan)
            assert job.finish is not None
            assert not any(rows.fewer for rows in job.finish.rows)
            assert job.batch is None
            assert "distinct" not in job.how
            assert not any("distinct (" in node.state.keeps for node in plan.nodes() if node.state is not None)


def test_explain_says_what_is_kept_and_what_bounds_it() -> None:
    def told(query: str) -> tuple[str, str | None, list[str]]:
        plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW a AS {query};")
        state = plan.root.inputs[0].state
        assert state is not None
        return state.keeps, state.bound, [text for text in plan.warnings if "for ever" in text or "no key" in text]

    assert told("SELECT DISTINCT s FROM l") == (
        "each distinct (s) of l",
        None,
        ["state grows for ever where new values come: each distinct (s) of l is kept"],
    )
    best = "the best 2 rows by (k) of l (k, id, v), those of the last 100 batches included"
    assert told("SELECT k, id FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) <= 2") == (
        best,
        None,
        [f"state grows for ever where new keys come: {best}, are kept"],
    )
    assert told("SELECT k, id FROM l ORDER BY id LIMIT 2") == (
        "the best 2 rows of l (k, id), those of the last 100 batches included",
        "the best 2 rows of l and the rows of the last 100 batches",
        [],
    )
    assert job_of("SELECT DISTINCT s FROM l").how == (
        "Spark reads and filters each batch and takes duplicates out of large ones, the view store keeps each distinct (s) "
        "of l and answers the query for the keys that a batch touches: l by (s)"
    )
    assert job_of("SELECT DISTINCT ON (k) k, v FROM l ORDER BY k, v").how == (
        "Spark reads and filters each batch, the view store keeps the best row by (k) of l (k, v) and answers the query for the keys that a batch touches: l by (k)"
    )
    assert (
        "the rows of RANK 3 or better by (k) of l (k, id, v)"
        in job_of("SELECT id FROM l QUALIFY RANK() OVER (PARTITION BY k ORDER BY v) <= 3").how
    )


def test_a_job_that_kept_every_row_is_another_one() -> None:
    """What is kept is part of the fingerprint, and the store's own words of a view keep it too."""
    job = job_of("SELECT k, id, v FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) <= 2")
    document = json.loads(job.state)
    del document["kept rows"]
    assert describe_difference(json.dumps(document), job.state) == "which rows the view store keeps"
    for query in ("SELECT k, id, v FROM l ORDER BY v LIMIT 3", "SELECT DISTINCT s FROM l"):
        found = Finished(query, None)
        again = spec_from_text(spec_to_text(found.spec))
        assert again == found.spec
        assert again.finish is not None
        assert again.finish.rows[0].fewer
        found.store.close()
