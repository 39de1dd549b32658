"""From an expression in the text that Spark was given back to where the user wrote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import type_of
from penstock.sql.spans import own_span, span_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.errors import Span

# Which relation a column belongs to differs between the text of a query and that of the job made of it.
_QUALIFIER: Final = re.compile(r"`(?:[^`]|``)*`\.(?=`)")
_DIVIDING: Final = frozenset({"div", "mod", "pmod"})
_LAYOUT: Final = re.compile(r"\s+")


def cast_span(source: str, target: str, bound: Iterable[exp.Expr], written: exp.Expr) -> Span | None:
    """The place of the only CAST in `written` between two types, which are in Spark's spelling; None where there are
    several, or none."""
    places = _places(written)
    found: set[Span] = set()
    for node in (node for tree in bound for node in tree.find_all(exp.Cast)):
        span, given = own_span(node), type_of(node.this)
        fits = node.to.sql(dialect="spark") == target and (given is None or given.spark() == source)
        if span is not None and span in places and fits:
            found.add(span)
    return found.pop() if len(found) == 1 else None


def division_span(bound: Iterable[exp.Expr], written: exp.Expr) -> Span | None:
    """The place of the only division in `written`; None where there is another one, there or in what it reads."""
    places = _places(written)
    found = {own_span(node) for tree in bound for node in tree.walk() if _divides(node)}
    span = found.pop() if len(found) == 1 else None
    return span if span in places else None


def _divides(node: exp.Expr) -> bool:
    return isinstance(node, exp.Div | exp.Mod | exp.IntDiv) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in _DIVIDING
    )


def expression_span(text: str, bound: Iterable[exp.Expr], written: exp.Expr) -> Span | None:
    """The first place in `written` whose expression is, among the trees bound from it, `text` in Spark's spelling.

    Bound trees also hold what views are made of, which stands in other statements: that is not in `written`.
    """
    places = _places(written)
    wanted = _plain(text)
    found: list[Span] = []
    for node in (node for tree in bound for node in tree.walk()):
        span = own_span(node)
        if span is not None and span in places and _plain(spark_sql(node, pretty=False)) == wanted:
            found.append(span)
    return min(found, key=lambda span: span.start, default=None)


def _places(written: exp.Expr) -> set[Span]:
    return {span for node in written.walk() if (span := span_of(node)) is not None}


def _plain(text: str) -> str:
    return _LAYOUT.sub("", _QUALIFIER.sub("", text))
