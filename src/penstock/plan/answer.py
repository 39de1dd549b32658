"""What a statement that asks about a plan is answered, in its own form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.plan.explain import explain_json, explain_text
from penstock.plan.rewrite import rewrite_text
from penstock.sql.statements import Explain, ShowRewrite

if TYPE_CHECKING:
    from penstock.plan.script import StatementReport


def plan_answer(report: StatementReport, dimensions: Sequence[str] = ()) -> str | None:
    """The tree of a statement that has a plan, JSON where EXPLAIN asks for it, the rewrite for SHOW REWRITE.

    `dimensions` tell how the dimensions of the query are joined, where that is known.
    """
    statement = report.statement
    if report.error is not None or statement is None:
        return None
    if isinstance(statement, ShowRewrite):
        return rewrite_text(report)
    if report.plan is None:
        return None
    if isinstance(statement, Explain) and statement.json:
        return json.dumps({**explain_json(report), "dimensions": list(dimensions)}, indent=2)
    text = "\n".join([explain_text(report), *(f"dimension   {line}" for line in dimensions)])
    if isinstance(statement, Explain) and statement.physical:
        text += "\nphysical    Spark's plan is known once the query runs; this is the logical one"
    return text
