"""Aggregates of other systems whose arguments stand elsewhere, as we write them.

    GROUPING(a, b)                            (PostgreSQL, RisingWave)    -> GROUPING_ID(a, b)
    APPROX_PERCENTILE(0.9) WITHIN GROUP (ORDER BY x)        (RisingWave)  -> APPROX_PERCENTILE(x, 0.9)

A column without AS keeps the name that the written call gives it.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.foreign_call import invalid
from penstock.plan.trees import inside_out, keep_place


def call_spellings(tree: exp.Expr) -> exp.Expr:
    """The query with such calls in our spelling."""
    for node in inside_out(tree, exp.WithinGroup, exp.Anonymous):
        made = _percentile(node) if isinstance(node, exp.WithinGroup) else _call(node)
        if made is None:
            continue
        keep_place(made, node.this if isinstance(node, exp.WithinGroup) else node)
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            name = (node.this if isinstance(node, exp.WithinGroup) else node).name.lower()
            if made.name.lower() != name:
                made = exp.alias_(made, name)
        node.replace(made)
    return tree


def _call(node: exp.Expr) -> exp.Expr | None:
    assert isinstance(node, exp.Anonymous)
    several = node.name.casefold() == "grouping" and len(node.expressions) > 1
    return exp.Anonymous(this="GROUPING_ID", expressions=node.expressions) if several else None


def _percentile(node: exp.WithinGroup) -> exp.Expr | None:
    """RisingWave's second argument is a relative error; here the values are told apart more closely than asked for."""
    call, order = node.this, node.expression
    if not isinstance(call, exp.Anonymous) or call.name.casefold() != "approx_percentile":
        return None
    terms = order.expressions if isinstance(order, exp.Order) else []
    if len(terms) != 1 or not 1 <= len(call.expressions) <= 2:
        raise invalid(
            "approx_percentile", "WITHIN GROUP takes one value in its ORDER BY", node, "write ORDER BY x, or (x, 0.5)"
        )
    share, value = call.expressions[0], terms[0].this
    if terms[0].args.get("desc"):
        share = exp.Paren(this=exp.Sub(this=exp.Literal.number("1.0"), expression=share))
    return exp.Anonymous(this="APPROX_PERCENTILE", expressions=[value, share])
