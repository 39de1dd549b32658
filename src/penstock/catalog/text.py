"""The text of a definition: canonical, and without secrets."""

from __future__ import annotations

from dataclasses import replace

from penstock.options import hide_option
from penstock.sql import statements
from penstock.sql.format import format_statement
from penstock.sql.statements import Statement

Created = (
    statements.CreateRelation
    | statements.CreateSink
    | statements.CreateView
    | statements.CreateMaterializedView
    | statements.CreateFunction
    | statements.CreateSecret
    | statements.CreateConnection
)


def canonical_text(statement: Statement) -> str:
    """A statement whose secrets were taken out, as it is stored and shown.

    OR REPLACE and IF NOT EXISTS say what to do with what was there before, and are no part of what the object is.
    """
    if isinstance(statement, Created):
        statement = replace(statement, or_replace=False, if_not_exists=False)
    if isinstance(statement, statements.CreateRelation | statements.CreateSink):
        # References are printed whatever this says; a value that is still there although it is secret never is.
        return format_statement(statement, hide=hide_option(statement.options))
    return format_statement(statement, hide=lambda _option: False)
