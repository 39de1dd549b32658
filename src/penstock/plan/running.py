"""A running aggregate with everything above it folded into one SELECT.

    SELECT k, total FROM (SELECT k, SUM(x) AS total FROM t GROUP BY k) AS s WHERE total > 100

is the aggregate with the columns `k` and `SUM(x)` and the condition `SUM(x) > 100`: what HAVING, the WHERE of a query
around it and the SELECT lists say is all computed from one row of the aggregate.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.errors import InternalError
from penstock.frozen import frozen
from penstock.plan.spark_blocks import aggregates, group_keys, relations
from penstock.plan.trees import nondeterministic_call, own_nodes

_ATOMS = (exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Dot, exp.Boolean, exp.Null, exp.Cast, exp.TryCast)


@frozen
class Running:
    """A running aggregate: the rows it reads (`block`: FROM, joins and WHERE), its keys, its columns, its condition."""

    block: exp.Select
    keys: tuple[exp.Expr, ...]
    items: tuple[tuple[str, exp.Expr], ...]
    keep: exp.Expr | None

    def with_keys(self, keys: tuple[exp.Expr, ...]) -> Running:
        """The same by other keys."""
        return replace(self, keys=keys)


def running(tree: exp.Expr) -> Running | None:
    """The running aggregate of a query; None where a value in it would be computed twice and might differ."""
    if not isinstance(tree, exp.Select):
        raise InternalError("a running aggregate is not a SELECT")
    if aggregates(tree):
        items = tuple((item.alias_or_name, item.unalias()) for item in tree.expressions)
        having = tree.args.get("having")
        return Running(tree, tuple(group_keys(tree)), items, having.this if having is not None else None)
    below = list(relations(tree).items())
    if len(below) != 1 or isinstance(below[0][1], exp.Table) or tree.args.get("joins"):
        raise InternalError("a running aggregate stands below something that is no projection")
    alias, query = below[0]
    inner = running(query)
    if inner is None:
        return None
    values = dict(inner.items)
    above = [*tree.expressions, *([tree.args["where"]] if tree.args.get("where") is not None else [])]
    if _differs(above, alias, values):
        return None
    items = tuple((item.alias_or_name, _inlined(item.unalias(), alias, values)) for item in tree.expressions)
    where = tree.args.get("where")
    keep = inner.keep
    if where is not None:
        condition = _inlined(where.this, alias, values)
        keep = condition if keep is None else exp.And(this=_grouped(keep), expression=_grouped(condition))
    return Running(inner.block, inner.keys, items, keep)


def _inlined(tree: exp.Expr, alias: str, values: dict[str, exp.Expr]) -> exp.Expr:
    if isinstance(tree, exp.Column) and tree.table == alias:
        return values[tree.name].copy()
    made = tree.copy()
    for node in list(made.find_all(exp.Column)):
        if node.table == alias:
            node.replace(_grouped(values[node.name].copy()))
    return made


def _grouped(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, _ATOMS) else exp.Paren(this=node)


def _differs(above: list[exp.Expr], alias: str, values: dict[str, exp.Expr]) -> bool:
    """Whether a value that differs each time it is computed would be computed more than once."""
    used = [
        node.name for tree in above for node in own_nodes(tree) if isinstance(node, exp.Column) and node.table == alias
    ]
    return any(used.count(name) > 1 and nondeterministic_call(value) is not None for name, value in values.items())
