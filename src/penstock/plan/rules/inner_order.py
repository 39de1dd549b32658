"""Carries what an ORDER BY needs out of a subquery that a rule puts below it.

    SELECT id FROM t QUALIFY … ORDER BY price, id LIMIT 3
    -> SELECT id FROM (SELECT id, …, price AS __qualified_2 FROM t) AS __qualified WHERE …
       ORDER BY __qualified_2, id LIMIT 3

A term that is a place in the SELECT list or the name of one of its columns stays as it is. Any other is computed where
its relations are, under a name of ours, which `*` leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.plan.names import output_name
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.scope import same_name
from penstock.plan.trees import own_nodes, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

QUALIFIED: Final = "__qualified"


def order_above(order: exp.Order, items: Sequence[exp.Expr], moved: Callable[[exp.Expr], exp.Expr]) -> exp.Order:
    """The order above a subquery with the columns `items`; `moved` computes a value in it and gives the reference."""
    above = order.copy()
    for term in above.expressions:
        by = term.this if isinstance(term, exp.Ordered) else term
        if not _given(by, items):
            by.replace(moved(by.copy()))
    return above


def order_inside(
    order: exp.Order, items: Sequence[exp.Expr], prefix: str, made: int = 0
) -> tuple[exp.Order, list[exp.Expr]]:
    """The order above a subquery with the columns `items`, and the columns which that must have for it besides.

    They are called by the `prefix` and a number, behind as many as have been `made`.
    """
    added: list[exp.Expr] = []

    def moved(by: exp.Expr) -> exp.Expr:
        name = f"{prefix}{made + len(added) + 1}"
        added.append(exp.alias_(by, name, quoted=True))
        reference = exp.column(name, quoted=True)
        reference.meta.update(by.meta)
        return reference

    return order_above(order, items, moved), added


def orders_over(select: exp.Select, order: exp.Order) -> bool:
    """Whether a function with OVER is what the rows of a query are ordered by, itself or as a column of the result."""
    return any(_computed(select, term).find(exp.Window) is not None for term in order.expressions)


def _computed(select: exp.Select, term: exp.Expr) -> exp.Expr:
    by = term.this if isinstance(term, exp.Ordered) else term
    place = whole_number(by)
    if place is not None and 1 <= place <= len(select.expressions):
        found: exp.Expr = select.expressions[place - 1]
        return found
    return alias_of(select, by) or by


def _given(by: exp.Expr, items: Sequence[exp.Expr]) -> bool:
    """Whether a term is written over the columns of the subquery."""
    if whole_number(by) is not None:
        return True
    nodes = list(own_nodes(by))
    if any(isinstance(node, exp.Window | exp.Query) or _is_aggregate(node) for node in nodes):
        return False
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    return bool(columns) and all(_selected(column, items) for column in columns)


def _selected(column: exp.Column, items: Sequence[exp.Expr]) -> bool:
    if column.args.get("table") is not None:
        return False
    if any(isinstance(item, exp.Star) for item in items) and not column.name.startswith(QUALIFIED):
        return True
    names = (column_name(item, place) for place, item in enumerate(items))
    return any(same_name(name, column.name, quoted=bool(column.this.quoted)) for name in names)


def column_name(item: exp.Expr, place: int) -> str:
    """The name of a column of a SELECT list; `place` counts from 0."""
    return item.alias if isinstance(item, exp.Alias) else output_name(item, place)


def _is_aggregate(node: exp.Expr) -> bool:
    info = find_function(node.name) if isinstance(node, exp.Anonymous) else None
    return info is not None and info.kind == "aggregate"
