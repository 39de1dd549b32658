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


def test_over_a_table_it_stays_a_subquery() -> None:
    assert "EXISTS(" in text("SELECT t.symbol FROM trades t WHERE EXISTS (SELECT 1 FROM names n WHERE n.id = t.symbol)")
