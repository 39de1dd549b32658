"""Short ways to plan a script in tests."""

from __future__ import annotations

from penstock.plan.logical import LogicalPlan
from penstock.plan.script import StatementReport, analyze_script
from penstock.plan.spark_text import spark_sql

TRADES = """
CREATE STREAM trades (symbol STRING, price DOUBLE, volume INT, ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (connector = 'topic');
CREATE STREAM quotes (symbol STRING, bid DOUBLE, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '2' SECOND);
CREATE STREAM plain (k STRING, v INT, seen TIMESTAMP, other TIMESTAMP);
CREATE TABLE names (id STRING, name STRING) WITH (connector = 'file', path = 'names.csv', format = 'csv');
"""


def last(sql: str, *, lenient: bool = False) -> StatementReport:
    """The report on the last statement, behind the streams of `TRADES`."""
    return analyze_script(TRADES + sql, lenient=lenient)[-1]


def planned(sql: str) -> LogicalPlan:
    """The plan of the last statement, which must be fine."""
    report = last(sql)
    assert report.error is None, report.error
    assert report.plan is not None
    return report.plan


def refused(sql: str) -> str:
    """The condition with which the last statement is refused."""
    error = last(sql).error
    assert error is not None
    return error.condition


def spark(sql: str) -> str:
    """The Spark SQL of the last statement on one line."""
    return spark_sql(planned(sql).spark, pretty=False)


def labels(plan: LogicalPlan) -> list[str]:
    """The operators from the output down."""
    return [node.label for node in plan.nodes()]
