"""Joins of a stream with dimensions, put below what the view store answers: which are, and how EXPLAIN shows it."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned

_MORE = """
CREATE STREAM bid (auction BIGINT, price BIGINT);
CREATE STREAM auction (id BIGINT, category BIGINT);
CREATE STREAM acct (id BIGINT, owner STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE dim (k BIGINT PRIMARY KEY, label STRING)
    WITH (connector = 'file', path = 'dim.csv', format = 'csv', refresh = '1 minute');
CREATE TABLE other (k BIGINT, label STRING)
    WITH (connector = 'file', path = 'other.csv', format = 'csv', refresh = '1 minute');
"""


def _explained(query: str) -> str:
    return plan_text(planned(f"{_MORE} CREATE MATERIALIZED VIEW v AS {query};"))


def _job(query: str) -> JobPlan:
    return plan_job(planned(f"{_MORE} CREATE MATERIALIZED VIEW v AS {query};"))


BELOW = {
    "behind a left join": "SELECT b.price, a.category, d.label FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "LEFT JOIN dim d ON d.k = b.auction",
    "an inner one behind a left join": "SELECT b.price, a.category, d.label FROM bid b "
    "LEFT JOIN auction a ON a.id = b.auction JOIN dim d ON d.k = b.auction",
    "before a left join": "SELECT b.price, d.label FROM bid b JOIN dim d ON d.k = b.auction "
    "LEFT JOIN auction a ON a.id = b.auction",
    "the dimension in front": "SELECT b.price, d.label FROM dim d JOIN bid b ON d.k = b.auction "
    "LEFT JOIN auction a ON a.id = b.auction",
    "the dimension in front, a right join": "SELECT b.price, d.label FROM dim d RIGHT JOIN bid b ON d.k = b.auction "
    "LEFT JOIN auction a ON a.id = b.auction",
    "the second stream": "SELECT b.price, d.label FROM auction a JOIN bid b ON a.id = b.auction "
    "JOIN dim d ON d.k = b.price LEFT JOIN bid c ON c.auction = a.id",
    "semi and anti": "SELECT b.price, a.category FROM bid b LEFT SEMI JOIN dim d ON d.k = b.auction "
    "LEFT ANTI JOIN other o ON o.k = b.auction LEFT JOIN auction a ON a.id = b.auction",
    "two, one by the other": "SELECT b.price, o.label FROM bid b JOIN dim d ON d.k = b.auction "
    "LEFT JOIN other o ON o.label = d.label LEFT JOIN auction a ON a.id = b.auction",
    "in WHERE": "SELECT b.price, d.label, r.n FROM bid b, dim d, (SELECT id, COUNT(*) AS n FROM auction GROUP BY id) r "
    "WHERE d.k = b.auction AND r.id = b.auction",
    "as of processing time": "SELECT b.price, d.label FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "LEFT JOIN dim FOR SYSTEM_TIME AS OF PROCTIME() AS d ON d.k = b.auction",
    "a query over the dimension": "SELECT b.price, d.n FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "LEFT JOIN (SELECT k, COUNT(*) AS n FROM other GROUP BY k) d ON d.k = b.auction",
    "all columns": "SELECT b.*, d.label FROM bid b JOIN dim d ON d.k = b.auction "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY b.auction ORDER BY b.price DESC) = 1",
    "not in": "SELECT b.price, a.category FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "WHERE b.auction NOT IN (SELECT k FROM dim)",
    "exists": "SELECT auction, COUNT(DISTINCT price) AS n FROM bid b "
    "WHERE EXISTS (SELECT 1 FROM dim d WHERE d.k = b.auction) GROUP BY auction",
    "read by a subquery": "SELECT b.price, d.label FROM bid b JOIN dim d ON d.k = b.auction "
    "WHERE EXISTS (SELECT 1 FROM auction a WHERE a.id = d.k)",
}
KEPT = {
    "by what a left join finds": "SELECT b.price, d.label FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "LEFT JOIN dim d ON d.k = a.category",
    "by both streams": "SELECT b.price, d.label FROM bid b LEFT JOIN auction a ON a.id = b.auction "
    "JOIN dim d ON d.k = b.auction + a.category",
    "behind a right join": "SELECT b.price, d.label FROM bid b RIGHT JOIN auction a ON a.id = b.auction "
    "LEFT JOIN dim d ON d.k = b.auction",
    "a full join": "SELECT b.price, d.label FROM bid b FULL JOIN dim d ON d.k = b.auction",
    "rows that change": "SELECT a.owner, d.label FROM acct a JOIN dim d ON d.k = a.id",
    "the rows of the dimension": "SELECT d.label FROM dim d WHERE NOT EXISTS (SELECT 1 FROM bid b WHERE b.auction = d.k)",
}


@pytest.mark.parametrize("shape", BELOW)
def test_below(shape: str) -> None:
    """Spark reads the dimension, and the store keeps none of its rows."""
    found = _job(BELOW[shape])
    assert found.kind == "finish"
    assert found.dimensions
    assert not any(dimension.kept for dimension in found.dimensions)
    assert found.finish is not None
    assert not any(rows.dimension for rows in found.finish.rows)


@pytest.mark.parametrize("shape", KEPT)
def test_kept(shape: str) -> None:
    """The store keeps the rows of the dimension, of which Spark reads nothing."""
    found = _job(KEPT[shape])
    assert [(each.relation, each.kept) for each in found.dimensions] == [("dim", True)]
    assert "__dimension" not in found.core


def test_both_ways_beside_each_other() -> None:
    found = _job(
        "SELECT b.price, d.label, e.label AS other FROM bid b LEFT JOIN auction a ON a.id = b.auction "
        "JOIN dim d ON d.k = b.auction LEFT JOIN dim e ON e.k = a.category"
    )
    assert [(each.id, each.kept) for each in found.dimensions] == [("dim", False), ("dim#2", True)]


def test_explained() -> None:
    shown = _explained(BELOW["behind a left join"])
    assert "the view store keeps the rows of bid joined with dim (auction, price, d_label) and auction" in shown
    joins = [line for line in shown.splitlines() if "Join" in line]
    assert ["broadcast" in line for line in joins] == [True, False]
    kept = _explained(KEPT["rows that change"])
    assert "answers the query beside dim, in the version of the batch, for the keys that a batch touches" in kept
    assert "the current version of dim (k, label)" in kept


@pytest.mark.parametrize("query", [
    "SELECT a.owner, d.label FROM acct a LEFT JOIN dim FOR SYSTEM_TIME AS OF PROCTIME() AS d ON d.k = a.id",
    "SELECT v.n, d.label FROM sums v JOIN dim FOR SYSTEM_TIME AS OF PROCTIME() AS d ON d.k = v.auction",
])  # fmt: skip
def test_rows_that_change_meet_a_dimension_once(query: str) -> None:
    """By their keys: what a row gave goes when it goes."""
    sums = "CREATE MATERIALIZED VIEW sums AS SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction;"
    finish = plan_job(planned(f"{_MORE} {sums} CREATE MATERIALIZED VIEW v AS {query};")).finish
    assert finish is not None
    assert [stage.meets for stage in finish.stages] == [True, False]
    assert len(finish.stages[0].keys) == 1
