"""Distinct aggregates in the shape that Spark keeps on a stream.

    COUNT(DISTINCT user_id)  ->  CAST(SIZE(COLLECT_SET(user_id)) AS BIGINT)

Spark refuses DISTINCT in streaming aggregates; a set of the values of one window and group gives the same count.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.trees import aggregate_text, call
from penstock.sql.spans import span_of


def distinct_aggregates(tree: exp.Expr) -> exp.Expr:
    """The bound tree without DISTINCT inside aggregates."""
    for node in list(tree.find_all(exp.Anonymous)):
        distinct = node.expressions[0] if node.expressions else None
        if not isinstance(distinct, exp.Distinct):
            continue
        replacement = _rewrite(node, distinct)
        replacement.meta.update(node.meta)
        parent = node.parent
        replaced: exp.Expr = node
        if isinstance(parent, exp.Filter):
            # the filter belongs to the set, not to its size
            replacement = _filtered(replacement, parent)
            replaced = parent
        if replaced is tree:
            tree = replacement
        else:
            replaced.replace(replacement)
    return tree


def _rewrite(node: exp.Anonymous, distinct: exp.Distinct) -> exp.Expr:
    name = node.name.lower()
    if name == "count":
        return _count(call("collect_set", _value(distinct)))
    if name in ("min", "max", "collect_set", "bool_and", "bool_or", "any", "every", "some"):
        return call(name, *[inner.copy() for inner in distinct.expressions])  # distinct changes nothing
    if name in ("collect_list", "array_agg"):
        return call("collect_set", *[inner.copy() for inner in distinct.expressions])
    raise NotYetError(
        "UPDATING_DISTINCT",
        f"{aggregate_text(node) or name} is not there yet on a stream",
        hint="COUNT(DISTINCT …) works in a window that closes",
        span=span_of(node),
    )


def _count(values: exp.Expr) -> exp.Expr:
    # the size of an array is INT, and a count is BIGINT
    return exp.Cast(this=call("size", values), to=exp.DataType.build("BIGINT"))


def _value(distinct: exp.Distinct) -> exp.Expr:
    values: list[exp.Expr] = [inner.copy() for inner in distinct.expressions]
    if len(values) == 1:
        return values[0]
    missing: exp.Expr = exp.Is(this=values[0].copy(), expression=exp.Null())
    for value in values[1:]:
        missing = exp.Or(this=missing, expression=exp.Is(this=value.copy(), expression=exp.Null()))
    # COUNT(DISTINCT a, b) counts no pair with a NULL in it, and collect_set leaves NULLs out
    return call("if", missing, exp.Null(), call("struct", *values))


def _filtered(replacement: exp.Expr, parent: exp.Filter) -> exp.Expr:
    if isinstance(replacement, exp.Cast):
        values = replacement.this.expressions[0]
        return _count(exp.Filter(this=values.copy(), expression=parent.expression.copy()))
    return exp.Filter(this=replacement, expression=parent.expression.copy())
