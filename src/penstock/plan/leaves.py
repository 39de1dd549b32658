"""A planned relation under an alias: what it adds to the scope, and how it stands in a FROM clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.nodes import Core, Scan
from penstock.plan.relation import EVENT_TIME_COLUMN, WINDOW_COLUMN
from penstock.plan.scope import Leaf
from penstock.plan.trees import column, identifier, subquery

if TYPE_CHECKING:
    from penstock.plan.context import Relation


def as_leaf(relation: Relation, alias: str) -> tuple[Leaf, exp.Expr]:
    """The relation under an alias, for the scope and for the text."""
    fields = tuple(entry.under(alias) for entry in relation.fields)
    leaf = Leaf(alias, fields, open=relation.open, window=relation.window, bounded=relation.node.bounded)
    if isinstance(relation.node, Scan | Core) and relation.direct:
        return leaf, exp.Table(this=identifier(relation.node.relation), alias=exp.TableAlias(this=identifier(alias)))
    return leaf, subquery(relation.tree, alias)


def carrier(leaf: Leaf) -> exp.Expr | None:
    """The column of a relation that Spark knows as its event time."""
    for name in (WINDOW_COLUMN, EVENT_TIME_COLUMN):
        if any(entry.hidden and entry.name == name for entry in leaf.fields):
            return column(name, leaf.alias)
    for entry in leaf.fields:
        if entry.event_time and entry.part is None:
            return column(entry.name, leaf.alias)
    return None
