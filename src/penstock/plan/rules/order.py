"""The rules and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from penstock.plan.rules.array_queries import array_queries
from penstock.plan.rules.call_spellings import call_spellings
from penstock.plan.rules.distinct_on import distinct_on
from penstock.plan.rules.group_by_references import group_by_references
from penstock.plan.rules.having_all import having_all
from penstock.plan.rules.inline_ctes import inline_ctes
from penstock.plan.rules.named_windows import named_windows
from penstock.plan.rules.qualify import qualify
from penstock.plan.rules.row_makers import row_makers
from penstock.plan.rules.session_frames import session_frames
from penstock.plan.rules.topk import topk
from penstock.plan.rules.window_exists import window_exists
from penstock.plan.rules.with_ties import with_ties

Rule = Callable[[exp.Expr], exp.Expr]

# CTEs first: the others then see every SELECT where it stands. References of GROUP BY before what makes rows, which may
# be a key of it, and before QUALIFY and DISTINCT ON, which move the SELECT list into a subquery. Sessions as frames
# come last: QUALIFY has then put its functions into a SELECT list.
RULES: Final[tuple[Rule, ...]] = (
    inline_ctes, call_spellings, named_windows, window_exists, topk, group_by_references, row_makers, array_queries,
    having_all, with_ties, qualify, distinct_on, session_frames,
)  # fmt: skip


def apply_rules(tree: exp.Expr) -> exp.Expr:
    """A copy of a query with every rule applied."""
    result = tree.copy()
    for rule in RULES:
        result = rule(result)
    return result
