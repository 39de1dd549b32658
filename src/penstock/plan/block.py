"""A SELECT while it is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.context import PlanContext
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.from_clause import Bound
from penstock.plan.grouping import Grouping
from penstock.plan.nodes import Node
from penstock.plan.relation import Field
from penstock.plan.scope import Scope

if TYPE_CHECKING:
    from penstock.errors import Span


@dataclass(slots=True)
class Item:
    """One column of a SELECT list: its output field, its tree in Spark, and its text for EXPLAIN."""

    field: Field
    tree: exp.Expr
    text: str
    place: Span | None = None


@dataclass(slots=True)
class Block:
    """A SELECT while it is planned."""

    context: PlanContext
    written: exp.Select
    scope: Scope
    binder: ExpressionBinder
    bound: Bound
    where: exp.Expr | None = None
    having: exp.Expr | None = None
    grouping: Grouping | None = None
    items: list[Item] = field(default_factory=list)

    _nullable: dict[tuple[str | None, str], bool] | None = None

    @property
    def node(self) -> Node:
        return self.bound.node

    def nullable(self) -> dict[tuple[str | None, str], bool]:
        """Of each column of the FROM clause, whether it can be NULL."""
        if self._nullable is None:
            self._nullable = {(entry.qualifier, entry.name): entry.nullable for entry in self.node.fields}
        return self._nullable
