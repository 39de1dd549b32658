"""ksqlDB's WITHIN: the join by event time that it stands for, and what is refused of it."""

from __future__ import annotations

import pytest

from penstock.errors import NotYetError
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.sql.format import format_statement
from penstock.sql.script import parse_statement
from tests.unit.plan.analysis import last, planned

STREAMS = """
CREATE STREAM orders (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
CREATE STREAM payments (id BIGINT, order_id BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND);
CREATE STREAM plain (order_id BIGINT);
"""


def job(join: str) -> JobPlan:
    return plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS SELECT o.id, p.id AS paid FROM orders o {join};"))


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
@pytest.mark.parametrize(
    ("within", "before", "after"),
    [("1 HOUR", "1", "1"), ("(2 HOURS, 3 HOURS)", "2", "3"), ("(0 SECONDS, 1 HOUR)", "0", "1")],
)
def test_the_join_that_it_stands_for(kind: str, within: str, before: str, after: str) -> None:
    made = job(f"{kind} payments p WITHIN {within} ON o.id = p.order_id")
    bounds = f"p.at BETWEEN o.ts - INTERVAL '{before}' HOUR AND o.ts + INTERVAL '{after}' HOUR"
    other = job(f"{kind} payments p ON o.id = p.order_id AND {bounds}")
    assert (made.kind, made.uses_event_time, made.spread_us) == (other.kind, True, other.spread_us)
    assert made.kept == other.kept


def test_it_is_written_as_it_was() -> None:
    text = "SELECT 1 AS x FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id"
    again = format_statement(parse_statement(text))
    assert "WITHIN (3600000 MILLISECONDS, 3600000 MILLISECONDS)" in again
    assert format_statement(parse_statement(again)) == again


def test_it_needs_two_event_times() -> None:
    query = "SELECT o.id FROM orders o JOIN plain p WITHIN 1 HOUR ON o.id = p.order_id"
    error = last(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {query}").error
    assert isinstance(error, NotYetError)
    assert (error.condition, "BETWEEN" in str(error.hint)) == ("DIALECT_NOT_YET", True)
