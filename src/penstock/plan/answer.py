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


def plan_answer(report: StatementReport, dimensions: Sequence[str] = (), realtime: str | None = None) -> str | None:
    """The tree of a statement that has a plan, JSON where EXPLAIN asks for it, the rewrite for SHOW REWRITE.

    `dimensions` tell how the dimensions of the query are joined, where that is known, and `realtime` whether it can
    run in real-time mode, where it asks for that.
    """
    statement = report.statement
    if report.error is not None or statement is None:
        return None
    if isinstance(statement, ShowRewrite):
        return rewrite_text(report)
    if report.plan is None:
        return None
    if isinstance(statement, Explain) and statement.json:
        more = {"dimensions": list(dimensions), **({} if realtime is None else {"realtime": realtime})}
        return json.dumps({**explain_json(report), **more}, indent=2)
    lines = [f"dimension   {line}" for line in dimensions]
    lines += [] if realtime is None else [f"real time   {realtime}"]
    text = "\n".join([explain_text(report), *lines])
    if isinstance(statement, Explain) and statement.physical:
        text += "\nphysical    Spark's plan is known once the query runs; this is the logical one"
    return text
