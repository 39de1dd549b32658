"""Joins in brackets: each relation keeps its name, and the answer is DuckDB's (A11)."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.store_text import store_sql
from tests.unit.plan.analysis import last, planned

VIEWS = """
CREATE STREAM s (k STRING, n BIGINT, m BIGINT);
CREATE MATERIALIZED VIEW a AS SELECT k, n FROM s;
CREATE MATERIALIZED VIEW b AS SELECT k, n, m FROM s;
CREATE MATERIALIZED VIEW c AS SELECT k, m FROM s;
CREATE MATERIALIZED VIEW d AS SELECT k, m AS z FROM s;
"""
ROWS = {
    "a": pa.table({"k": ["1", "4", None, "5"], "n": [1, 4, 9, 5]}),
    "b": pa.table({"k": ["1", "2", "4", "4"], "n": [1, 2, 4, 5], "m": [1, 2, 3, None]}),
    "c": pa.table({"k": ["2", "3", "4", None], "m": [2, 3, 3, 8]}),
    "d": pa.table({"k": ["2", "4", "9"], "z": [2, 3, 8]}),
}
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
STREAMS = """
CREATE STREAM t (id BIGINT, v BIGINT); CREATE STREAM u (id BIGINT, tid BIGINT); CREATE STREAM q (id BIGINT, uid BIGINT);
"""


def _both(query: str) -> tuple[list[object], list[object]]:
    text = store_sql(planned(VIEWS + query))
    assert text is not None
    with duckdb.connect() as connection:
        for name, rows in ROWS.items():
            connection.register(name, rows)
        ours, right = (connection.execute(sql).fetchall() for sql in (text, query))
    return sorted(ours, key=str), sorted(right, key=str)


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(KINDS, repeat=2)))
def test_a_join_in_brackets(outer: str, inner: str) -> None:
    ours, right = _both(f"SELECT a.k, b.k, c.k, b.n, c.m FROM a {outer} (b {inner} c ON b.m = c.m) ON a.k = b.k")
    assert ours == right


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, k1, b.*, c.m AS cm FROM a LEFT JOIN (b JOIN (SELECT k AS k1, m FROM c) AS c ON b.m = c.m) ON a.n = b.n",
        "SELECT * FROM a LEFT JOIN (b JOIN c ON b.m = c.m) ON a.k = b.k",
        "SELECT a.k, m, b.m, c.m FROM a LEFT JOIN (b FULL JOIN c USING (m)) ON a.k = b.k",
        "SELECT a.n, m, c.k FROM a FULL JOIN (b LEFT JOIN c USING (k, m)) USING (k)",
        "SELECT a.k, b.n, c.m FROM a LEFT JOIN b JOIN c ON b.m = c.m ON a.k = b.k",
        "SELECT a.k, b.n, c.m, d.z FROM a LEFT JOIN (b LEFT JOIN (c JOIN d ON c.k = d.k) ON b.m = c.m) ON a.k = b.k",
        "SELECT a.k, b.n, c.m FROM ((a JOIN b ON a.k = b.k) LEFT JOIN c ON b.m = c.m)",
        "SELECT a.k, b.n FROM a LEFT JOIN (b) ON a.k = b.k",
        "SELECT a.k, b.n, c.m, d.z FROM (a JOIN b ON a.k = b.k) LEFT JOIN (c JOIN d ON c.k = d.k) ON c.m = b.m",
        "SELECT b.n, COUNT(c.m) AS x FROM a LEFT JOIN (b JOIN c ON b.m = c.m) ON a.k = b.k WHERE a.n > 1 GROUP BY b.n",
    ],
)
def test_what_the_names_mean(query: str) -> None:
    ours, right = _both(query)
    assert ours == right
    assert ours


def test_streams_are_joined_in_stages() -> None:
    query = "SELECT t.id, u.id AS uid, q.id AS qid FROM t LEFT JOIN (u JOIN q ON q.uid = u.id) ON u.tid = t.id"
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}"))
    assert job.kind == "finish"
    assert job.finish is not None
    assert [len(stage.leaves) for stage in job.finish.stages] == [2, 2]
    assert all(stage.keys for stage in job.finish.stages)


@pytest.mark.parametrize(
    ("query", "condition", "word"),
    [
        ("SELECT id FROM t LEFT JOIN (u JOIN q ON q.uid = u.id) ON u.tid = t.v", "AMBIGUOUS_COLUMN", "t.id"),
        ("SELECT u.tids FROM t LEFT JOIN (u JOIN q ON q.uid = u.id) ON u.tid = t.v", "UNKNOWN_COLUMN", "u.tid"),
        ("SELECT v FROM t LEFT JOIN (u JOIN t ON t.v = u.id) ON u.tid = t.v", "DUPLICATE_ALIAS", "AS"),
    ],
)  # fmt: skip
def test_names_that_mean_nothing(query: str, condition: str, word: str) -> None:
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert error is not None
    assert error.condition == condition
    assert word in (error.hint or "")
