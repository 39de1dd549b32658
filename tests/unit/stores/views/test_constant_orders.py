"""Orders by what is written out, and so the same in all rows, which DuckDB refuses to order by, beside DuckDB's answer."""

from __future__ import annotations

import random
from typing import Final

import pytest

from tests.unit.stores.views.finishing import Finished, random_batch

_IDS: Final = "COUNT(DISTINCT id) AS ids"
# Each beside what DuckDB answers without the constants.
QUERIES: Final[dict[str, tuple[str, str]]] = {
    "maps of one key": (
        f"SELECT k, MAP_AGG('a', id) AS m, {_IDS} FROM l GROUP BY k",
        f"SELECT k, MAP {{'a': max(id)}}, {_IDS} FROM l GROUP BY k",
    ),
    "JSON of one key": (
        f"SELECT k, JSON_OBJECTAGG('it''s' : id) AS m, {_IDS} FROM l GROUP BY k",
        f"SELECT k, '{{\"it''s\":' || max(id) || '}}', {_IDS} FROM l GROUP BY k",
    ),
    "maps to one value": (
        f"SELECT k, MAP_AGG(v, 'x') AS m, {_IDS} FROM l GROUP BY k",
        (
            "SELECT k, map_from_entries(list_transform(list_sort(coalesce(list(DISTINCT v) FILTER (WHERE v IS NOT NULL), "
            f"[])), lambda e: {{'k': e, 'v': 'x'}})), {_IDS} FROM l GROUP BY k"
        ),
    ),
    "lists": (
        (
            "SELECT k, ARRAY_AGG(id ORDER BY 'x') AS a, ARRAY_AGG(id ORDER BY ('x') DESC, 1.5, TRUE, -1, v, id) AS b, "
            f"ARRAY_AGG('x' ORDER BY id) AS c, {_IDS} FROM l GROUP BY k"
        ),
        (f"SELECT k, list(id ORDER BY id), list(id ORDER BY v NULLS FIRST, id), list('x'), {_IDS} FROM l GROUP BY k"),
    ),
    "different values": (
        f"SELECT k, ARRAY_AGG(DISTINCT 'x' ORDER BY 'x') AS a, {_IDS} FROM l GROUP BY k",
        f"SELECT k, ['x'], {_IDS} FROM l GROUP BY k",
    ),
    "texts": (
        f"SELECT k, STRING_AGG(s, ',' ORDER BY 'x') AS a, STRING_AGG('y', ',' ORDER BY s) AS b, {_IDS} FROM l GROUP BY k",
        f"SELECT k, string_agg(s, ',' ORDER BY s), string_agg('y', ','), {_IDS} FROM l GROUP BY k",
    ),
    "values at a place": (
        f"SELECT k, MODE('a') AS a, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY 2) AS b, {_IDS} FROM l GROUP BY k",
        f"SELECT k, 'a', CAST(2 AS DOUBLE), {_IDS} FROM l GROUP BY k",
    ),
    "over": (
        (
            "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY 'x') AS n, "
            "STRING_AGG(s, ',') OVER (PARTITION BY k ORDER BY 'x') AS t FROM l"
        ),
        "SELECT id, COUNT(*) OVER (PARTITION BY k), string_agg(s, ',' ORDER BY s) OVER (PARTITION BY k) FROM l",
    ),
    "rows": (
        "SELECT id, v FROM l ORDER BY 'x', id, -7 LIMIT 3",
        "SELECT id, v FROM l ORDER BY id, v LIMIT 3",
    ),
    "rows in any order": (
        "SELECT id, v FROM l ORDER BY TRUE LIMIT 3",
        "SELECT id, v FROM l ORDER BY id, v LIMIT 3",
    ),
    "groups": (
        "SELECT k, COUNT(*) AS n FROM l GROUP BY k ORDER BY 'x', -5, n, k LIMIT 3",
        "SELECT k, COUNT(*) AS n FROM l GROUP BY k ORDER BY n, k NULLS FIRST LIMIT 3",
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_constant_orders_nothing(name: str) -> None:
    query, oracle = QUERIES[name]
    finished = Finished(query, None)
    finished.oracle = oracle
    finished.spark.execute("SET order_by_non_integer_literal = true")  # as Spark, which it stands in for
    rnd = random.Random(name)  # noqa: S311
    for number in range(6):
        finished.add(number, random_batch(rnd, 10 * number))
        assert finished.view() == finished.answer(), f"{query} after batch {number}"
    assert finished.view()
    finished.store.close()
