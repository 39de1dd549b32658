"""Computed columns of a source: bound once when it is created, so that what is wrong is said there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.decimal_types import spark_type
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.sql.spans import span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.model import ColumnDefinition, FunctionDefinition, SourceDefinition
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.session import Session
    from penstock.types import SqlType


def with_computed_types(definition: SourceDefinition, session: Session) -> SourceDefinition:
    """The source with every computed column bound: one without a declared type has that of its expression, if known."""

    def with_type(entry: ColumnDefinition) -> ColumnDefinition:
        if entry.computed is None:
            return entry
        _, found = bind_computed(definition, entry.computed, session)
        return entry if entry.type is not None else replace(entry, type=found)

    return replace(definition, columns=tuple(with_type(entry) for entry in definition.columns))


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
    return bound, spark_type(bound)


def _no_subquery(tree: exp.Expr, scope: Scope) -> exp.Expr:
    del scope
    raise ResolutionError("INVALID_DEFINITION", "a computed column cannot hold a subquery", span=span_of(tree))
