"""Turns ksqlDB's TOPK and TOPKDISTINCT into arrays that are cut off.

SELECT k, TOPK(v, 3) FROM t GROUP BY k
-> SELECT k, SLICE(ARRAY_AGG(v ORDER BY v DESC) FILTER (WHERE NOT v IS NULL), 1, 3) FROM t GROUP BY k
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.trees import call, inside_out, number, whole_number
from penstock.sql.spans import span_of

_NAMES: Final = frozenset({"TOPK", "TOPKDISTINCT"})


def topk(tree: exp.Expr) -> exp.Expr:
    """The query without such calls."""
    for node in inside_out(tree, exp.Anonymous):
        if node.name.upper() in _NAMES:
            node.replace(_array(node))
    return tree


def _array(node: exp.Anonymous) -> exp.Expr:
    count = whole_number(node.expressions[1]) if len(node.expressions) == 2 else None
    if not count:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{node.name.upper()} takes a column and how many of its largest values to keep",
            hint=f"write {node.name.upper()}(amount, 3)",
            span=span_of(node),
        )
    value = node.expressions[0]
    listed = exp.Distinct(expressions=[value.copy()]) if node.name.upper() == "TOPKDISTINCT" else value.copy()
    by = exp.Ordered(this=value.copy(), desc=True, nulls_first=False)
    collected = exp.Anonymous(this="ARRAY_AGG", expressions=[exp.Order(this=listed, expressions=[by])])
    collected.meta.update(node.meta)
    there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    made = call("SLICE", exp.Filter(this=collected, expression=exp.Where(this=there)), number(1), number(count))
    made.meta.update(node.meta)
    return made
