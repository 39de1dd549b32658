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
    from collections.abc import Callable

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
    """The user's functions that computed columns of a source call, by themselves or through functions in SQL."""
    left = [entry.computed for entry in definition.columns if entry.computed is not None]
    found: dict[str, None] = {}
    while left:
        calls = [catalog.find_function(Name(node.name)) for node in left.pop().find_all(exp.Anonymous)]
        new = [each for each in calls if each is not None and each.name.text not in found]
        found |= dict.fromkeys(each.name.text for each in new)
        left += [each.expression for each in new if each.expression is not None]
    return tuple(found)


def bind_computed(definition: SourceDefinition, tree: exp.Expr, session: Session) -> tuple[exp.Expr, SqlType | None]:
    """The Spark tree and the type of a computed column over the other columns of its source."""
    fields = tuple(
        Field(entry.name, entry.type, nullable=entry.nullable) for entry in definition.columns if entry.computed is None
    )
    scope = Scope(leaves=[Leaf(definition.name.text, fields)])
    binder = ExpressionBinder(scope, _functions(session), _no_subquery, aggregates_allowed=False)
    bound = binder.bind(tree)
    for node in bound.find_all(exp.Column):
        node.set("table", None)  # the frame of a source has columns and no name
    return bound, spark_type(bound)


def _functions(session: Session) -> Callable[[str], FunctionDefinition | None]:
    def function(name: str) -> FunctionDefinition | None:
        return session.catalog.find_function(Name(name))

    return function


def function_binder(session: Session, warn: Callable[[str], None]) -> ExpressionBinder:
    """Who binds the body of a function in SQL."""
    settings = session.plan_settings()
    return ExpressionBinder(
        Scope(),
        _functions(session),
        _no_subquery,
        dialect=settings.dialect if settings.dialect != "penstock" else None,
        truncating_division=settings.truncating_division,
        warn=warn,
    )


def _no_subquery(tree: exp.Expr, scope: Scope) -> exp.Expr:
    del scope
    raise ResolutionError("INVALID_DEFINITION", "a computed column cannot hold a subquery", span=span_of(tree))
