"""Rows of arrays and maps in the view store's text, run by DuckDB (G9)."""

from __future__ import annotations

from typing import Any, Final

import duckdb
import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.store_text import store_sql
from tests.unit.plan.analysis import last, planned
from tests.unit.plan.test_quantified import STREAMS

ROWS: Final = (
    "(VALUES (1, 7, ['p', NULL], [10, 20, 30], [{'x': 5, 'y': 'f'}, NULL], MAP {'k': 1, 'l': 2}), "
    "(2, 7, NULL, [], NULL, NULL)) AS t(id, cat, tags, ns, rs, m)"
)


@pytest.mark.parametrize(
    ("unnest", "columns", "rows"),
    [
        ("CROSS JOIN UNNEST(a.tags) AS t(tag)", "t.tag", [(1, "p"), (1, None)]),
        ("LEFT JOIN UNNEST(a.tags) AS t(tag) ON TRUE", "t.tag", [(1, "p"), (1, None), (2, None)]),
        ("CROSS JOIN UNNEST(a.m) AS t(k, v)", "t.k, t.v", [(1, "k", 1), (1, "l", 2)]),
        ("CROSS JOIN UNNEST(a.rs) AS t(p, q)", "t.p, t.q", [(1, 5, "f"), (1, None, None)]),
        (
            "CROSS JOIN UNNEST(a.rs) WITH ORDINALITY AS t(p, q, o)",
            "t.p, t.q, t.o",
            [(1, 5, "f", 1), (1, None, None, 2)],
        ),
        (
            "CROSS JOIN UNNEST(a.tags, a.ns) AS t(x, y)",
            "t.x, t.y",
            [(1, "p", 10), (1, None, 20), (1, None, 30)],
        ),
        ("CROSS JOIN UNNEST(a.ns) WITH ORDINALITY AS t(n, o)", "t.n, t.o", [(1, 10, 1), (1, 20, 2), (1, 30, 3)]),
        ("LATERAL VIEW explode_outer(a.tags) t AS tag", "t.tag", [(1, "p"), (1, None), (2, None)]),
        ("LATERAL VIEW posexplode(a.tags) t", "t.pos, t.col", [(1, 0, "p"), (1, 1, None)]),
        ("LATERAL VIEW posexplode_outer(a.ns) t AS o, n", "o, n", [(1, 0, 10), (1, 1, 20), (1, 2, 30), (2, None, None)]),
        ("LATERAL VIEW posexplode(a.m) t", "t.pos, t.key, t.value", [(1, 0, "k", 1), (1, 1, "l", 2)]),
        ("LATERAL VIEW inline_outer(a.rs) t", "t.x, t.y", [(1, 5, "f"), (1, None, None), (2, None, None)]),
        ("LATERAL VIEW stack(2, 'i', a.id, 'c', a.cat) t AS k, v", "k, v",
         [(1, "i", 1), (1, "c", 7), (2, "i", 2), (2, "c", 7)]),
        ("CROSS JOIN LATERAL (VALUES (a.id), (9)) AS t(v)", "t.v", [(1, 1), (1, 9), (2, 2), (2, 9)]),
        ("CROSS JOIN LATERAL generate_series(1, 2) AS g", "g.g", [(1, 1), (1, 2), (2, 1), (2, 2)]),
    ],
)  # fmt: skip
def test_rows_of_arrays(unnest: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    query = f"SELECT a.id, {columns} FROM a LEFT JOIN b ON a.cat = b.aid {unnest}"
    finish = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")).finish
    assert finish is not None
    (stage,) = finish.stages
    with duckdb.connect() as store:
        store.execute(f'CREATE TABLE "__leaf_0" AS SELECT * FROM {ROWS}')
        store.execute('CREATE TABLE "__leaf_1" AS SELECT 8 AS aid')
        found = [row[: len(rows[0])] for row in store.execute(stage.text).fetchall()]
    assert sorted(found, key=repr) == sorted(rows, key=repr)


def test_a_subquery_over_an_array_of_its_row_keeps_the_key() -> None:
    query = "SELECT a.cat, MAX(a.id) AS n FROM a WHERE (SELECT COUNT(*) FROM UNNEST(a.tags) AS t(x)) > 1 GROUP BY a.cat"
    finish = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")).finish
    assert finish is not None
    assert finish.keys == ("cat",)


def test_arrays_of_an_aggregate_that_changes() -> None:
    query = (
        "SELECT cat, x FROM (SELECT cat, COLLECT_LIST(id) AS xs FROM a GROUP BY cat) AS t CROSS JOIN UNNEST(xs) AS u(x)"
    )
    assert plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")).kind == "finish"


def test_a_view_is_taken_apart_where_it_is_kept() -> None:
    text = store_sql(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS SELECT id, tags FROM a; "
                             "SELECT id, x FROM v CROSS JOIN UNNEST(tags) AS u(x)"))  # fmt: skip
    assert text is not None
    assert 'LATERAL (SELECT unnest("v"."tags") AS "x") AS "u"' in text


def test_json_is_read_once_it_comes() -> None:
    query = "SELECT a.id, j.x FROM a LEFT JOIN b ON a.cat = b.aid LATERAL VIEW json_tuple(a.tags[1], 'x') j AS x"
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}"))
    assert job.finish is not None
    assert "get_json_object(" in job.core
    assert not job.finish.asked


def test_names_for_each_column() -> None:
    error = last(f"{STREAMS} SELECT id FROM a LATERAL VIEW posexplode(tags) t AS tag").error
    assert error is not None
    assert "posexplode makes 2 columns, and 1 names are given" in error.message


def test_a_running_sum_over_joined_rows_by_another_key() -> None:
    query = "SELECT a.id, SUM(b.price) OVER (PARTITION BY a.price ORDER BY b.ts) AS s FROM a JOIN b ON a.cat = b.aid"
    finish = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")).finish
    assert finish is not None
    assert len(finish.stages) == 2
