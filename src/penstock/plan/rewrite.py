"""SHOW REWRITE: the canonical statement, the Spark SQL that would run, and the defaults that were taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.spark_text import spark_sql

if TYPE_CHECKING:
    from penstock.plan.script import StatementReport


def rewrite_text(report: StatementReport) -> str:
    """What SHOW REWRITE prints for a statement."""
    canonical = (report.canonical or "").removeprefix("SHOW REWRITE").strip()
    parts = ["-- canonical", f"{canonical};"]
    if report.analysis is not None:
        for plan in report.analysis.plans:
            parts += ["", "-- Spark SQL", spark_sql(plan.spark) + ";"]
    for notice in report.notices:
        parts.append(f"-- {notice}")
    return "\n".join(parts)
