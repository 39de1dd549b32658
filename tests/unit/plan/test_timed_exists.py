"""EXISTS and IN within a bound of time are planned as the semi and anti joins with the same condition."""

from __future__ import annotations

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.nodes import Join
from penstock.plan.relation import Mode
from penstock.plan.spark_text import spark_sql
from tests.unit.plan.analysis import planned

NEAR = "t.symbol = q.symbol AND q.at BETWEEN t.ts - INTERVAL '10' SECOND AND t.ts"
VIEW = "CREATE MATERIALIZED VIEW mv AS "


def text(query: str) -> str:
    return spark_sql(planned(VIEW + query).spark, pretty=False)


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("SEMI", f"EXISTS (SELECT 1 FROM quotes q WHERE {NEAR})"),
        ("ANTI", f"NOT EXISTS (SELECT q.bid FROM quotes q WHERE {NEAR})"),
        ("SEMI", f"t.symbol IN (SELECT symbol FROM quotes q WHERE {NEAR.partition(' AND ')[2]})"),
    ],
)
def test_the_same_plan_as_the_join(kind: str, condition: str) -> None:
    for select, behind in (
        ("SELECT t.symbol, t.ts", ""),
        ("SELECT t.symbol, COUNT(*) AS n", " GROUP BY t.symbol, TUMBLE(t.ts, INTERVAL '1' MINUTE)"),
    ):
        joined = f"{select} FROM trades t LEFT {kind} JOIN quotes q ON {NEAR} WHERE t.price > 1{behind}"
        written = f"{select} FROM trades t WHERE t.price > 1 AND {condition}{behind}"
        assert text(written) == text(joined)
        plan = planned(VIEW + written)
        assert plan.mode is Mode.APPEND
        assert [node.kind for node in plan.nodes() if isinstance(node, Join)] == [kind.lower()]
        assert plan_job(plan).kind == "append"


def test_columns_without_a_relation_mean_what_they_did() -> None:
    """Inside they are those of the subquery's own stream, and only then those of the one outside."""
    exists = "SELECT symbol, price FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE {})"
    assert "SEMI JOIN" in text(exists.format(NEAR))
    assert text(exists.format(NEAR.replace("q.", ""))) == text(exists.format(NEAR))
    assert planned(VIEW + exists.format(NEAR.replace("t.ts", "ts"))).mode is Mode.RETRACT, (
        "not told apart, and not joined"
    )
    grouped = (
        "SELECT price AS symbol, COUNT(*) AS n FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE {}) GROUP BY {}"
    )
    window = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    assert "GROUP BY `t`.`price`" in text(grouped.format(NEAR, f"price, {window}"))


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT 1 FROM quotes q WHERE t.symbol = q.symbol)",
        "NOT EXISTS (SELECT 1 FROM quotes q WHERE t.symbol = q.symbol AND q.at > t.ts)",
        f"t.symbol NOT IN (SELECT q.symbol FROM quotes q WHERE {NEAR.partition(' AND ')[2]})",
    ],
)
def test_without_a_bound_the_answer_changes(condition: str) -> None:
    plan = planned(f"{VIEW} SELECT t.symbol FROM trades t WHERE {condition}")
    assert plan.mode is Mode.RETRACT
    assert plan_job(plan).kind == "finish"


KEYED = """
CREATE STREAM sent (id BIGINT NOT NULL, shop STRING, ref BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM seen (id BIGINT NOT NULL, shop STRING, ref BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
"""
SOON = "seen.ts BETWEEN sent.ts AND sent.ts + INTERVAL '1' MINUTE"


@pytest.mark.parametrize(
    ("condition", "joined"),
    [
        (f"sent.id NOT IN (SELECT id FROM seen WHERE {SOON})", f"sent.id = seen.id AND {SOON}"),
        (f"NOT id IN (SELECT seen.id FROM seen WHERE {SOON})", f"sent.id = seen.id AND {SOON}"),
        (
            f"sent.ref IS NOT NULL AND sent.ref NOT IN (SELECT id FROM seen WHERE {SOON})",
            f"sent.ref = seen.id AND {SOON}",
        ),
        (
            f"id NOT IN (SELECT ref FROM seen WHERE {SOON} AND ref IS NOT NULL)",
            f"sent.id = seen.ref AND ({SOON} AND seen.ref IS NOT NULL)",
        ),
        # Something else is equal: what may be NULL is looked at for the rows for which it is.
        (
            f"sent.ref NOT IN (SELECT ref FROM seen WHERE seen.shop = sent.shop AND {SOON})",
            f"(sent.ref = seen.ref OR sent.ref IS NULL OR seen.ref IS NULL) AND (seen.shop = sent.shop AND {SOON})",
        ),
        (
            f"sent.id NOT IN (SELECT ref FROM seen WHERE seen.shop = sent.shop AND {SOON})",
            f"(sent.id = seen.ref OR seen.ref IS NULL) AND (seen.shop = sent.shop AND {SOON})",
        ),
    ],
)
def test_not_in_is_an_anti_join_where_nulls_can_be_told(condition: str, joined: str) -> None:
    written = f"{KEYED} {VIEW} SELECT sent.id FROM sent WHERE {condition}"
    plan = planned(written)
    assert plan.mode is Mode.APPEND
    assert plan_job(plan).kind == "append"
    kept = " WHERE sent.ref IS NOT NULL" if condition.startswith("sent.ref IS") else ""
    same = planned(f"{KEYED} {VIEW} SELECT sent.id FROM sent LEFT ANTI JOIN seen ON {joined}{kept}")
    assert spark_sql(plan.spark, pretty=False) == spark_sql(same.spark, pretty=False)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT sent.id FROM sent WHERE sent.ref NOT IN (SELECT id FROM seen WHERE {SOON})",
        f"SELECT sent.id FROM sent WHERE sent.id NOT IN (SELECT ref FROM seen WHERE {SOON})",
        # Only one of the sides, or not for every row.
        f"SELECT sent.id FROM sent WHERE sent.ref IS NOT NULL AND sent.ref NOT IN (SELECT ref FROM seen WHERE {SOON})",
        (
            f"SELECT sent.id FROM sent WHERE sent.id NOT IN (SELECT ref FROM seen WHERE {SOON} AND "
            "(seen.ref IS NOT NULL OR seen.shop = 'x'))"
        ),
        f"SELECT sent.id FROM sent WHERE sent.id NOT IN (SELECT ref FROM seen WHERE {SOON} AND seen.ref IS NULL)",
        # The name is that of a query, whose column is another one.
        (
            f"WITH seen AS (SELECT ref AS id, ts FROM sent) "
            f"SELECT sent.id FROM sent WHERE sent.id NOT IN (SELECT seen.id FROM seen WHERE {SOON})"
        ),
    ],
)
def test_not_in_of_what_may_be_null_changes(query: str) -> None:
    plan = planned(f"{KEYED} {VIEW} {query}")
    assert plan.mode is Mode.RETRACT
    assert plan_job(plan).kind == "finish"


def test_over_a_table_it_stays_a_subquery() -> None:
    assert "EXISTS(" in text("SELECT t.symbol FROM trades t WHERE EXISTS (SELECT 1 FROM names n WHERE n.id = t.symbol)")
