"""Turns ordinals and output names of a GROUP BY into the expressions they stand for.

    SELECT tumble(INTERVAL '1' SECOND) AS window, count(*) FROM s GROUP BY 1
    -> SELECT tumble(INTERVAL '1' SECOND) AS window, count(*) FROM s GROUP BY tumble(INTERVAL '1' SECOND)

An output name is taken only where no column of that name can be meant: a window call never has a column's name, and
any other alias is left to the binder, which knows the columns (`alias_of`).
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.scope import same_name
from penstock.plan.trees import whole_number
from penstock.sql.nodes import WindowCall, WindowPart
from penstock.sql.spans import span_of


def group_by_references(tree: exp.Expr) -> exp.Expr:
    """The query with plain expressions in every GROUP BY."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if isinstance(group, exp.Group):
            _rewrite(select, group)
    return tree


def alias_of(select: exp.Select, node: exp.Expr) -> exp.Expr | None:
    """The expression of the SELECT list whose output name a bare column is."""
    if not isinstance(node, exp.Column) or node.args.get("table") is not None or isinstance(node.this, exp.Star):
        return None
    for item in select.expressions:
        if isinstance(item, exp.Alias) and same_name(item.alias, node.name, quoted=bool(node.this.quoted)):
            found: exp.Expr = item.this
            return found
    return None


def _rewrite(select: exp.Select, group: exp.Group) -> None:
    keys = [_ordinal(select, key) or _window_alias(select, key) or key for key in group.expressions]
    group.set("expressions", [key.copy() for key in keys])
    for key in group.expressions:
        if isinstance(key, exp.GroupingSets | exp.Cube | exp.Rollup):
            _inside(select, key)


def _inside(select: exp.Select, node: exp.Expr) -> None:
    for column in list(node.find_all(exp.Column)):
        found = _window_alias(select, column)
        if found is not None:
            column.replace(found.copy())


def _ordinal(select: exp.Select, key: exp.Expr) -> exp.Expr | None:
    position = whole_number(key)
    if position is None:
        return None
    if not 1 <= position <= len(select.expressions):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"GROUP BY {position} is not a position of the SELECT list, which has {len(select.expressions)}",
            span=span_of(key),
        )
    item = select.expressions[position - 1]
    found: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return found


def _window_alias(select: exp.Select, key: exp.Expr) -> exp.Expr | None:
    found = alias_of(select, key)
    return found if isinstance(found, WindowCall | WindowPart) else None
