"""Where in a statement an error belongs that was found while it was run, far from its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import CatalogError, OptionError, PenstockError, ResolutionError
from penstock.plan.expression_spans import cast_span, division_span, expression_span
from penstock.plan.script import options_of
from penstock.runtime.failures import marked_expression
from penstock.sql.spans import span_of
from penstock.sql.statements import Name, Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.errors import Span
    from penstock.plan.script import StatementReport
    from penstock.sql.statements import Option

# Messages about an option name it so: stores and connectors know its key, and nothing of the text.
_NAMED: Final = re.compile(r"\boption ([\w.-]+)")

_READS: Final = re.compile(r'which "(.+)" reads')
_CAST: Final = re.compile(r'of the type "([^"]+)" cannot be cast to "([^"]+)"')


def place(error: PenstockError, report: StatementReport) -> None:
    """Point an error about what a statement says at the option or name concerned, and one about a value at what was
    to be computed."""
    if error.span is not None:
        return
    if error.condition in ("DATA_ERROR", "TYPE_MISMATCH"):
        error.span = _of_expression(error, report)
        return
    if error.condition == "FILE_NOT_FOUND":
        error.span = _of_relation(error, report)
        return
    about_text = isinstance(error, OptionError | CatalogError | ResolutionError)
    if not (about_text or error.condition == "TOPIC_MISMATCH"):
        return
    named = _NAMED.search(error.message)
    key = "topic" if error.condition == "TOPIC_MISMATCH" else named[1] if named is not None else None
    error.span = _of_option(key, report) or _of_name(report) or report.span


def _of_expression(error: PenstockError, report: StatementReport) -> Span | None:
    """The expression that Spark marks, where it stands in the statement; else the query."""
    query = getattr(report.statement, "query", None)
    if not isinstance(query, Query) or report.analysis is None:
        return None
    trees = [plan.spark for plan in report.analysis.plans]
    marked, cast = marked_expression(error.detail), _CAST.search(error.detail or "")
    found: Span | None = None
    if marked is not None:
        found = expression_span(marked, trees, query.tree)
    elif cast is not None:  # of a number that does not fit Spark tells the types alone
        found = cast_span(cast[1], cast[2], trees, query.tree)
    elif error.message.endswith("division by zero"):  # as the view store says it
        found = division_span(trees, query.tree)
    return found or query.span


def _of_relation(error: PenstockError, report: StatementReport) -> Span | None:
    """The table that an error names, where the query reads it; the query, where a view does."""
    query, named = getattr(report.statement, "query", None), _READS.search(error.message)
    if not isinstance(query, Query) or named is None:
        return None
    tables = [table for table in query.tree.find_all(exp.Table) if table.name.casefold() == named[1].casefold()]
    return next((span for table in tables if (span := span_of(table.this) or span_of(table)) is not None), query.span)


def _of_option(key: str | None, report: StatementReport) -> Span | None:
    """The value of an option as the statement gives it, under whatever name."""
    statement, definition = report.statement, report.analysis.definition if report.analysis is not None else None
    if statement is None or key is None:
        return None
    written = options_of(statement)
    own = {option.value_span for option in written}  # of ALTER, only some options stand in the text
    resolved: Iterable[Option] = getattr(getattr(definition, "options", None), "canonical", ())
    for option in (*resolved, *written):
        if option.key.casefold() == key.casefold() and option.value_span in own:
            return option.value_span
    return None


def _of_name(report: StatementReport) -> Span | None:
    for attribute in ("name", "target"):
        found = getattr(report.statement, attribute, None)
        if isinstance(found, Name):
            return found.span
    return None
