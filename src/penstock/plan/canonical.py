"""The canonical form of a statement: one spelling for everything that has several."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import PenstockError
from penstock.options import resolve_connection, resolve_options, resolve_view_options
from penstock.sql import statements as s


def canonical_statement(statement: s.Statement) -> s.Statement:
    """The statement with canonical option keys and values; as it is where its options are not right."""
    try:
        if isinstance(statement, s.Explain | s.ShowRewrite):
            return replace(statement, statement=canonical_statement(statement.statement))
        if isinstance(statement, s.CreateRelation):
            resolved = resolve_options(
                statement.options,
                role="source",
                relation=statement.name,
                format=statement.format,
                with_span=statement.with_span,
            )
            return replace(statement, options=resolved.canonical, format=None)
        if isinstance(statement, s.CreateSink) and statement.options:
            resolved = resolve_options(
                statement.options,
                role="sink",
                relation=statement.name,
                format=statement.format,
                with_span=statement.with_span,
            )
            return replace(statement, options=resolved.canonical, format=None)
        if isinstance(statement, s.CreateMaterializedView):
            options = resolve_view_options(statement.options, statement.name)
            return replace(statement, options=options.canonical)
        if isinstance(statement, s.CreateConnection):
            return replace(
                statement, options=resolve_connection(statement.options, statement.name, statement.with_span)
            )
    except PenstockError:
        return statement
    return statement
