"""Computed columns of a source: bound once when it is created, so that what is wrong is said there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.plan.trees import type_of
from penstock.sql.spans import span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.model import FunctionDefinition, SourceDefinition
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.session import Session
    from penstock.types import SqlType


def check_computed(definition: SourceDefinition, session: Session) -> None:
    """Binds every computed column of a source."""
    for entry in definition.columns:
        if entry.computed is not None:
            bind_computed(definition, entry.computed, session)


def computed_functions(definition: SourceDefinition, catalog: Catalog) -> tuple[str, ...]:
    """The user's functions that computed columns of a source call."""
    trees = [entry.computed for entry in definition.columns if entry.computed is not None]
    calls = [catalog.find_function(Name(node.name)) for tree in trees for node in tree.find_all(exp.Anonymous)]
    return tuple(dict.fromkeys(found.name.text for found in calls if found is not None))


def bind_computed(definition: SourceDefinition, tree: exp.Expr, session: Session) -> tuple[exp.Expr, SqlType | None]:
    """The Spark tree and the type of a computed column over the other columns of its source."""
    fields = tuple(
        Field(entry.name, entry.type, nullable=entry.nullable) for entry in definition.columns if entry.computed is None
    )
    scope = Scope(leaves=[Leaf(definition.name.text, fields)])

    def function(name: str) -> FunctionDefinition | None:
        return session.catalog.find_function(Name(name))

    binder = ExpressionBinder(scope, function, _no_subquery, aggregates_allowed=False)
    bound = binder.bind(tree)
    for node in bound.find_all(exp.Column):
        node.set("table", None)  # the frame of a source has columns and no name
    return bound, type_of(bound)


def _no_subquery(tree: exp.Expr, scope: Scope) -> exp.Expr:
    del scope
    raise ResolutionError("INVALID_DEFINITION", "a computed column cannot hold a subquery", span=span_of(tree))
