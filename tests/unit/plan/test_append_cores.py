"""Subqueries that Spark runs by itself below an answer that changes (G13)."""

from __future__ import annotations

import pytest

from penstock.plan.explain import plan_text
from penstock.plan.job_plan import JobPlan, plan_job
from tests.unit.plan.analysis import planned, refused

STREAMS = """
CREATE STREAM auction (id BIGINT, category BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND);
CREATE STREAM bid (auction BIGINT, price BIGINT, tags ARRAY<STRING>, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND);
"""
HOPS = """SELECT window_start, window_end, auction, COUNT(*) AS n
FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY window_start, window_end, auction"""


def job_of(query: str) -> JobPlan:
    return plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}"))


def test_windows_close_in_spark_and_are_compared_by_the_store() -> None:
    job = job_of(f"SELECT auction, n FROM ({HOPS}) QUALIFY n = MAX(n) OVER (PARTITION BY window_start)")
    assert job.kind == "finish"
    assert job.uses_event_time
    assert job.spread_us == 10_000_000
    assert job.late is not None
    assert "window(" in job.core
    assert [scan.relation for scan in job.scans] == ["bid"]
    assert job.scans[0].event_time is not None
    assert job.finish is not None
    assert [rows.shown for rows in job.finish.rows] == [("window_start", "auction", "n")]


def test_a_subquery_that_stands_twice_is_run_once() -> None:
    query = f"""WITH c AS ({HOPS}) SELECT a.category, MAX(x.n) AS most, MAX(y.total) AS total FROM auction AS a
        LEFT JOIN c AS x ON a.id = x.auction LEFT JOIN (SELECT auction, SUM(n) AS total FROM c GROUP BY auction) AS y
        ON a.id = y.auction GROUP BY a.category"""
    job = job_of(query)
    assert sorted(scan.relation for scan in job.scans) == ["auction", "bid"]
    assert job.core.count("window(") == 1
    text = plan_text(planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}"))
    assert "Core  rows subquery 1 over bid\n" in text
    assert "Core  rows subquery 1 over bid, as above" in text


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        # a join within a bound
        (
            (
                "SELECT a.category, COUNT(DISTINCT b.price) AS n FROM auction AS a JOIN bid AS b ON a.id = b.auction "
                "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND GROUP BY a.category"
            ),
            ("category", "price"),
        ),
        # what UNNEST makes
        ("SELECT tag, COUNT(DISTINCT auction) AS n FROM bid CROSS JOIN UNNEST(tags) AS u(tag) GROUP BY tag", ("tag", "auction")),
        # distinct rows, forgotten by their time
        ("SELECT auction, COUNT(DISTINCT price) AS n FROM (SELECT DISTINCT auction, price, ts FROM bid) GROUP BY auction", ("auction", "price")),
    ],
)  # fmt: skip
def test_what_only_adds_rows_is_left_to_spark(query: str, kept: tuple[str, ...]) -> None:
    """One relation is kept, with a key: in Spark the rows are joined, unnested or made distinct."""
    job = job_of(query)
    assert job.finish is not None
    assert [set(rows.shown) for rows in job.finish.rows] == [set(kept)]
    assert len(job.finish.keys) == 1


def test_a_join_for_ever_is_kept_once() -> None:
    """Its rows are kept anyway: by the store, in which the join then has a key, and not by Spark too."""
    job = job_of(
        "SELECT a.category, COUNT(DISTINCT b.price) AS n FROM auction AS a JOIN bid AS b ON a.id = b.auction GROUP BY a.category"
    )
    assert job.kept == ()
    assert job.finish is not None
    assert [rows.relation for rows in job.finish.rows] == ["auction", "bid"]
    assert [bool(stage.keys) for stage in job.finish.stages] == [True, True]


def test_names_that_may_mean_an_output_stay_where_they_are() -> None:
    """The rows of a FROM clause are only set apart where every name is sure: HAVING names an output here."""
    job = job_of(
        "SELECT a.category AS c, COUNT(DISTINCT b.price) AS n FROM auction AS a JOIN bid AS b ON a.id = b.auction "
        "AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND GROUP BY a.category HAVING n > 1"
    )
    assert job.finish is not None
    assert [rows.relation for rows in job.finish.rows] == ["auction", "bid"]


def test_an_order_of_a_subquery_keeps_its_columns() -> None:
    job = job_of(
        "SELECT a.id, b.price FROM auction AS a LEFT JOIN (SELECT auction, price FROM bid ORDER BY price DESC, auction, ts LIMIT 3) AS b ON a.id = b.auction"
    )
    assert job.kind == "finish"


def test_what_a_sink_cannot_take_is_refused_as_before() -> None:
    sql = f"{STREAMS} CREATE SINK out (auction BIGINT, n BIGINT) WITH (connector = 'file', path = '/tmp/out', format = 'json'); "
    ranked = f"SELECT auction, n FROM ({HOPS}) QUALIFY n = MAX(n) OVER (PARTITION BY window_start)"
    assert refused(f"{sql} INSERT INTO out {ranked}") == "SINK_CANNOT_UPDATE"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.id, h.n FROM auction AS a CROSS JOIN LATERAL (SELECT n FROM ({HOPS}) AS w WHERE w.auction = a.id) AS h",
        f"SELECT a.id, h.n FROM auction AS a CROSS APPLY (SELECT n FROM ({HOPS}) AS w WHERE w.n < a.id) AS h",
        f"SELECT a.id, h.n FROM auction AS a LEFT JOIN LATERAL ({HOPS}) AS h ON h.auction = a.id",
        f"SELECT a.id FROM auction AS a WHERE a.id > (SELECT MAX(w.n) FROM ({HOPS}) AS w WHERE w.auction = a.id)",
        f"SELECT a.id FROM auction AS a WHERE a.category IN (SELECT w.n FROM ({HOPS}) AS w)",
    ],
)
def test_windows_close_wherever_a_subquery_stands(query: str) -> None:
    """Below LATERAL and below a subquery of an expression too, where they see nothing of the rows around them."""
    plan = planned(f"{STREAMS} CREATE MATERIALIZED VIEW mv AS {query}")
    job = plan_job(plan)
    assert job.uses_event_time
    assert job.late is not None
    assert "window(" in job.core
    assert "GROUP BY" in job.core
    assert not any("show each change" in text for text in plan.warnings)
