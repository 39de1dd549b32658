"""Nexmark's queries as the planner sees them, without Spark."""

from __future__ import annotations

import re

from penstock.interfaces.nexmark.queries import nexmark_query, setup_script
from penstock.plan.logical import LogicalPlan
from penstock.plan.script import analyze_script
from tests.project import ROOT

SIDE_INPUT = """
CREATE TABLE side_input (key BIGINT, value STRING) WITH (connector = 'file', path = 'side', format = 'parquet');
"""
FUNCTION = "CREATE FUNCTION count_char(text STRING, letter STRING) RETURNS BIGINT LANGUAGE python AS 'm.count_char';"
# The three relations as streams of their own, in the place of views over one.
APART = "".join(
    f"CREATE STREAM {kind} WITH (connector = 'nexmark', table_type = '{kind}');\n"
    for kind in ("person", "auction", "bid")
)
# The stream and the views as Flink's implementation of the benchmark declares them.
FLINK_DDL = (ROOT / "tests" / "fixtures" / "nexmark" / "flink_ddl.sql").read_text(encoding="utf-8")


def planned(statements: str, relations: str | None = None) -> LogicalPlan:
    """The plan of the last statement; its error is raised."""
    report = analyze_script((relations or setup_script()) + SIDE_INPUT + statements)[-1]
    if report.error is not None:
        raise report.error
    assert report.analysis is not None
    (plan,) = report.analysis.plans
    return plan


def query_plan(name: str, relations: str | None = None) -> LogicalPlan:
    """The plan of one of the queries."""
    return planned(nexmark_query(name).statements, relations)


def spellings(dialect: str) -> dict[str, str]:
    """The queries as another system writes them."""
    text = (ROOT / "tests" / "fixtures" / "nexmark" / f"{dialect}.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- (q\d+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
