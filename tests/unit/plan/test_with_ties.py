"""FETCH FIRST … ROWS WITH TIES is a rank, beside what DuckDB makes of one (A11, G4)."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.store_text import store_sql
from tests.unit.plan.analysis import last, planned

VIEWS = """
CREATE STREAM s (k STRING, n BIGINT, m BIGINT);
CREATE MATERIALIZED VIEW a AS SELECT k, n, m FROM s;
"""
ROWS = pa.table(
    {
        "k": ["x", "y", "z", "x", "y", None, "w", "x"],
        "n": [5, 5, 3, 3, 9, 3, 1, None],
        "m": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)
RANKED = {
    "SELECT k, n FROM a ORDER BY n DESC FETCH FIRST 2 ROWS WITH TIES": "SELECT k, n FROM a QUALIFY rank() OVER (ORDER BY n DESC) <= 2",
    "SELECT n + 1 AS n, m FROM a ORDER BY n NULLS LAST FETCH NEXT 2 ROWS WITH TIES": (
        "SELECT n + 1, m FROM a QUALIFY rank() OVER (ORDER BY n NULLS LAST) <= 2"
    ),
    "SELECT m, n FROM a ORDER BY 2 DESC FETCH FIRST ROW WITH TIES": "SELECT m, n FROM a QUALIFY rank() OVER (ORDER BY n DESC) <= 1",
    "SELECT m, n FROM a ORDER BY n DESC OFFSET 1 ROW FETCH NEXT 2 ROWS WITH TIES": None,
    "SELECT k, COUNT(*) AS c FROM a GROUP BY k ORDER BY c DESC FETCH FIRST 2 ROWS WITH TIES": (
        "SELECT k, count(*) AS c FROM a GROUP BY k QUALIFY rank() OVER (ORDER BY count(*) DESC) <= 2"
    ),
    "SELECT k FROM a ORDER BY n DESC, m + 1 FETCH FIRST 2 ROWS WITH TIES": "SELECT k FROM a QUALIFY rank() OVER (ORDER BY n DESC, m) <= 2",
    "SELECT k FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY m) = 1 ORDER BY n FETCH FIRST 2 ROWS WITH TIES": (
        "SELECT k FROM (SELECT k, n FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY m) = 1) QUALIFY rank() OVER (ORDER BY n) <= 2"
    ),
    "SELECT k FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY m) = 1 ORDER BY n DESC, k LIMIT 2": (
        "SELECT k FROM (SELECT k, n FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY m) = 1) ORDER BY n DESC, k LIMIT 2"
    ),
    "SELECT DISTINCT ON (k) m FROM a ORDER BY k DESC, n, m LIMIT 2": (
        "SELECT m FROM (SELECT DISTINCT ON (k) k, m FROM a ORDER BY k DESC, n, m) ORDER BY k DESC LIMIT 2"
    ),
    "SELECT m, DENSE_RANK() OVER (ORDER BY n) AS r FROM a ORDER BY r DESC FETCH FIRST 2 ROWS WITH TIES": (
        "FROM (SELECT m, dense_rank() OVER (ORDER BY n) AS r FROM a) QUALIFY rank() OVER (ORDER BY r DESC) <= 2"
    ),
    "SELECT DISTINCT k FROM a ORDER BY k FETCH FIRST 2 ROWS WITH TIES": "SELECT DISTINCT k FROM a ORDER BY k NULLS FIRST LIMIT 2",
    "SELECT n FROM a UNION ALL SELECT m FROM a ORDER BY 1 DESC FETCH FIRST 3 ROWS WITH TIES": (
        "FROM (SELECT n FROM a UNION ALL SELECT m FROM a) QUALIFY rank() OVER (ORDER BY n DESC) <= 3"
    ),
    "SELECT m FROM (SELECT m, n FROM a ORDER BY n DESC FETCH FIRST 2 ROWS WITH TIES) AS x WHERE m > 1": (
        "SELECT m FROM (SELECT m, n FROM a QUALIFY rank() OVER (ORDER BY n DESC) <= 2) WHERE m > 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("query", RANKED)
def test_rows_that_tie_with_the_last_one_are_there_too(query: str) -> None:
    text = store_sql(planned(VIEWS + query))
    assert text is not None
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        connection.register("a", ROWS)
        ours = connection.execute(text).fetchall()
        if RANKED[query] is None:  # one of the two fives is left out, and those that are equal to the last are there
            assert sorted(ours, key=str) == [(1, 5), (2, 5)]
            return
        right = connection.execute(RANKED[query] or "").fetchall()
    assert sorted(ours, key=str) == sorted(right, key=str)


def test_a_view_of_the_first_rows_is_answered_by_the_store() -> None:
    query = "SELECT k, n FROM s ORDER BY n DESC FETCH FIRST 2 ROWS WITH TIES"
    job = plan_job(planned(f"{VIEWS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.finish is not None
    assert "rank()" in job.finish.view.text


def test_ties_of_what_is_followed_have_no_order() -> None:
    plan = planned("SELECT symbol FROM trades ORDER BY price DESC FETCH FIRST 2 ROWS WITH TIES")
    assert plan.kept
    assert plan.spark.args.get("order") is None


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT k FROM s FETCH FIRST 2 ROWS WITH TIES", "INVALID_ARGUMENT"),
        ("SELECT k FROM s ORDER BY k FETCH FIRST 'a' ROWS WITH TIES", "INVALID_ARGUMENT"),
        ("SELECT k FROM s ORDER BY k FETCH FIRST 2 ROWS WITH", "SYNTAX_ERROR"),
        ("SELECT DISTINCT k FROM s ORDER BY n FETCH FIRST 2 ROWS WITH TIES", "UNKNOWN_COLUMN"),
    ],
)
def test_without_an_order_nothing_ties(query: str, condition: str) -> None:
    error = last(VIEWS + query).error
    assert error is not None
    assert error.condition == condition
