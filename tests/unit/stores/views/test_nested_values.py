"""Lists, structs and maps in answers that change: an order that leaves nothing open, and lists of them, beside DuckDB."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from penstock.plan.job_plan import plan_job
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import Finished, Row

STREAMS: Final = """
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, tags ARRAY<STRING>, st STRUCT<a: BIGINT, b: ARRAY<STRING>>, m MAP<STRING, BIGINT>);
CREATE STREAM r (k BIGINT, w BIGINT, pairs ARRAY<STRUCT<a: BIGINT, b: STRING>>);
"""
TABLES: Final = """
CREATE TABLE l (k BIGINT, id BIGINT, v BIGINT, tags VARCHAR[], st STRUCT(a BIGINT, b VARCHAR[]), m MAP(VARCHAR, BIGINT));
CREATE TABLE r (k BIGINT, w BIGINT, pairs STRUCT(a BIGINT, b VARCHAR)[]);
CREATE TABLE u (x BIGINT);
"""
THERE: Final = "FILTER (WHERE {0} IS NOT NULL)"
# Each beside what DuckDB answers in an order that is written out.
QUERIES: Final[dict[str, tuple[str, str]]] = {
    "first by a number": (
        "SELECT id, tags FROM l ORDER BY v DESC LIMIT 4",
        "SELECT id, tags FROM l ORDER BY v DESC, id, tags LIMIT 4",
    ),
    "any rows": ("SELECT tags, st FROM l LIMIT 5", "SELECT tags, st FROM l ORDER BY tags, st LIMIT 5"),
    "maps, the first left out": (
        "SELECT m, v FROM l ORDER BY v OFFSET 1 ROW FETCH NEXT 4 ROWS ONLY",
        "SELECT m, v FROM l ORDER BY v, m LIMIT 4 OFFSET 1",
    ),
    "ranked": (
        "SELECT v, tags FROM l QUALIFY ROW_NUMBER() OVER (ORDER BY v DESC) <= 3",
        "SELECT v, tags FROM l ORDER BY v DESC, tags LIMIT 3",
    ),
    "the best of each key": (
        "SELECT k, st FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1",
        "SELECT k, st FROM l QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, st) = 1",
    ),
    "the one before": (
        "SELECT v, LAG(st) OVER (PARTITION BY k ORDER BY v) AS p FROM l",
        "SELECT v, lag(st) OVER (PARTITION BY k ORDER BY v, st) AS p FROM l",
    ),
    "a join": (
        "SELECT l.tags, r.pairs FROM l JOIN r ON l.k = r.k LIMIT 6",
        "SELECT l.tags, r.pairs FROM l JOIN r ON l.k = r.k ORDER BY l.tags, r.pairs LIMIT 6",
    ),
    "structs": (
        "SELECT k, COLLECT_LIST(STRUCT(id, tags)) AS x, COUNT(DISTINCT v) AS d FROM l GROUP BY k",
        "SELECT k, list_sort(list({'id': id, 'tags': tags})), count(DISTINCT v) FROM l GROUP BY k",
    ),
    "structs of both sides": (
        (
            "SELECT l.k, COLLECT_LIST(STRUCT(l.v, r.w AS w)) AS x, COUNT(DISTINCT r.w) AS d FROM l JOIN r ON l.k = r.k "
            "GROUP BY l.k"
        ),
        "SELECT l.k, list_sort(list({'v': v, 'w': w})), count(DISTINCT w) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    ),
    "structs in an order": (
        "SELECT k, ARRAY_AGG(STRUCT(v AS a, st AS b) ORDER BY v DESC) AS x, COUNT(DISTINCT id) AS d FROM l GROUP BY k",
        (
            "SELECT k, list({'a': v, 'b': st} ORDER BY v DESC, {'a': v, 'b': st} DESC), count(DISTINCT id) FROM l "
            "GROUP BY k"
        ),
    ),
    "lists, maps and structs": (
        (
            "SELECT k, COLLECT_LIST(tags) AS x, COLLECT_LIST(m) AS y, COLLECT_SET(st) AS z, COUNT(DISTINCT v) AS d "
            "FROM l GROUP BY k"
        ),
        (
            f"SELECT k, coalesce(list_sort(list(tags) {THERE.format('tags')}), []), "
            f"coalesce(list_sort(list(m) {THERE.format('m')}), []), "
            f"coalesce(list_sort(list(DISTINCT st) {THERE.format('st')}), []), count(DISTINCT v) FROM l GROUP BY k"
        ),
    ),
    "no NULL in any list": (
        (
            "SELECT k, ARRAY_AGG(v) AS a, ARRAY_AGG(v ORDER BY id) AS b, ARRAY_AGG(v ORDER BY v DESC) AS c, "
            "ARRAY_AGG(DISTINCT v ORDER BY v) AS d, COUNT(DISTINCT id) AS n FROM l GROUP BY k"
        ),
        "SELECT k, "
        + ", ".join(
            f"coalesce(list({value}) {THERE.format('v')}, [])"
            for value in ("v ORDER BY v", "v ORDER BY id, v", "v ORDER BY v DESC", "DISTINCT v ORDER BY v")
        )
        + ", count(DISTINCT id) FROM l GROUP BY k",
    ),
    "the list of the largest": (
        "SELECT k, MAX_BY(tags, v) AS x, COUNT(DISTINCT id) AS d FROM l GROUP BY k",
        (
            f"SELECT k, (list(tags ORDER BY v DESC, tags DESC NULLS FIRST) {THERE.format('v')})[1], count(DISTINCT id) "
            "FROM l GROUP BY k"
        ),
    ),
}


def _batch(rnd: random.Random, ids: int) -> dict[str, list[Row]]:
    """Rows that are alike in all but a list, a struct or a map; NULLs stand for them and inside them."""

    def some(*values: Any) -> Any:
        return rnd.choice([None, *values])

    left = [
        (
            some(1, 2),
            ids + place // 2,
            some(1, 2, 3),
            some([], ["a"], ["a", None], [None], ["b"]),
            some({"a": 1, "b": ["x"]}, {"a": None, "b": ["x"]}, {"a": 1, "b": [None]}, {"a": None, "b": None}),
            some({}, {"x": 1}, {"x": None}, {"y": 2, "x": 1}),
        )
        for place in range(rnd.randrange(9))
    ]
    pairs: list[Any] = [[], [{"a": 1, "b": "x"}], [{"a": 1, "b": None}], [None]]
    right = [(some(1, 2), some(1, 2), some(*pairs)) for _ in range(rnd.randrange(4))]
    return {"l": left + left[:1], "r": right}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", QUERIES)
def test_each_batch_chooses_as_duckdb_would_over_all(name: str, seed: int) -> None:
    query, oracle = QUERIES[name]
    finished = Finished(query, None, STREAMS, TABLES, TABLES)
    finished.oracle = oracle
    rnd = random.Random(f"{name} {seed}")  # noqa: S311
    for number in range(12):
        finished.add(number, _batch(rnd, 10 * number))
        assert finished.view() == finished.answer(), f"{query} after batch {number} of seed {seed}"
    assert finished.view()
    finished.store.close()


@pytest.mark.parametrize("query", [query for query, _ in QUERIES.values()])
def test_the_store_asks_spark_for_nothing(query: str) -> None:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW x AS {query};"))
    assert job.finish is not None
    assert not job.finish.asked
