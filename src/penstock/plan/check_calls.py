"""Calls that Spark refuses for what their arguments are or where they stand, not for their types: fractions, an order
that is missing, DISTINCT in front of no aggregate.

As with types, what is refused here is what Spark's analyzer surely refuses; a test holds the two against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.schema_literals import schema_fault
from penstock.plan.trees import type_of
from penstock.sql.spans import own_span, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Where a function takes the fraction of rows that lie below the value it gives.
_FRACTIONS: Final = {
    "percentile_cont": 0,
    "percentile_disc": 0,
    "percentile": 1,
    "approx_percentile": 1,
    "percentile_approx": 1,
    "approx_percentile_cont": 1,
}
_ORDERED: Final = frozenset({"percentile_cont", "percentile_disc"})
_SCHEMAS: Final = frozenset({"from_json", "from_csv", "from_xml"})
_GROUPINGS: Final = frozenset({"grouping", "grouping_id"})
_LISTS: Final = frozenset({"listagg", "string_agg"})  # WITHIN GROUP tells them an order of any number of terms


def check_call(node: exp.Anonymous, bound: Sequence[exp.Expr]) -> None:
    """Raise INVALID_ARGUMENT at a call that no row could make right; its arguments are counted and bound already."""
    name = node.name.lower()
    if name != "count" and any(isinstance(argument, exp.Star) for argument in node.expressions):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} is called with *",
            hint="give it the columns it works on; the name of a relation stands for its whole row",
            span=own_span(node),
        )
    needs_order = name in _ORDERED or (name == "mode" and not bound)
    if needs_order and _order(node) is None:
        given = ", ".join("0.5" for _ in bound)
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} is not told which values it is about",
            hint=f"write {name.upper()}({given}) WITHIN GROUP (ORDER BY x)" + ("" if bound else ", or MODE(x)"),
            span=own_span(node),
        )
    if name in _ORDERED and any(isinstance(argument, exp.Distinct) for argument in node.expressions):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} takes no DISTINCT, which would go by the fraction",
            hint="write PERCENTILE(DISTINCT x, 0.5), or MEDIAN(DISTINCT x)",
            span=own_span(node),
        )
    if name not in _LISTS:
        _check_order(node, takes=1 if needs_order else 0)
    place = _FRACTIONS.get(name)
    if place is not None and place < len(bound):
        _check_fraction(node, bound[place], node.expressions[place])


def check_rows_counted(node: exp.Anonymous, columns: Sequence[str]) -> None:
    """Raise INVALID_ARGUMENT at DISTINCT * inside of an aggregate; `columns` are those that * might stand for."""
    written = next((argument for argument in node.expressions if isinstance(argument, exp.Distinct)), None)
    if written is None or not any(isinstance(value, exp.Star) for value in written.expressions):
        return
    named = f"{node.name}(DISTINCT {', '.join(columns or ('a', 'b'))})"
    raise ResolutionError(
        "INVALID_ARGUMENT",
        f"function {node.name} is called with DISTINCT *",
        hint=f"name the columns: {named} counts the different rows without a NULL"
        if node.name.lower() == "count"
        else "give it the column it works on",
        span=span_of(written) or own_span(node),
    )


def check_distinct(node: exp.Anonymous) -> None:
    """Raise INVALID_ARGUMENT at DISTINCT in a call of what is no aggregate."""
    written = next((argument for argument in node.expressions if isinstance(argument, exp.Distinct)), None)
    if written is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"DISTINCT belongs to aggregates, and {node.name} is none",
            hint="leave it out; SELECT DISTINCT gives each row once",
            span=span_of(written) or own_span(node),
        )


def asks_grouping(node: exp.Expr) -> bool:
    """Whether this asks which keys a row of grouping sets is not grouped by."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _GROUPINGS


def check_grouping(node: exp.Anonymous, *, grouped: bool) -> None:
    """Raise INVALID_ARGUMENT at GROUPING where there are no groups."""
    if grouped or not asks_grouping(node):
        return
    key = node.expressions[0].sql() if node.expressions else "a, b"
    raise ResolutionError(
        "INVALID_ARGUMENT",
        f"{node.name} tells which keys a group is not grouped by, and here are no groups",
        hint=f"add GROUP BY ROLLUP ({key}), CUBE (…) or GROUPING SETS (…); it stands in the SELECT list and in HAVING",
        span=own_span(node),
    )


def check_row(node: exp.Anonymous, bound: Sequence[exp.Expr]) -> None:
    """Raise TYPE_MISMATCH at a function of rows that is given something else."""
    kind = type_of(bound[0]) if node.name.lower() == "row_to_json" else None
    if kind is not None and kind.name != "STRUCT":
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"function {node.name} takes a row, not {kind}",
            hint="give it a relation by its name, or STRUCT(…); JSON_STRING writes any other value",
            span=span_of(node.expressions[0]) or own_span(node),
        )


def _order(node: exp.Anonymous) -> list[exp.Expr] | None:
    """The terms of WITHIN GROUP behind a call."""
    around = node.parent
    return list(around.expression.expressions) if isinstance(around, exp.WithinGroup) and around.this is node else None


def _check_order(node: exp.Anonymous, takes: int) -> None:
    terms = _order(node)
    if terms is None or len(terms) == takes:
        return
    taken = "takes one term in WITHIN GROUP (ORDER BY …)" if takes else "takes no WITHIN GROUP"
    raise ResolutionError(
        "INVALID_ARGUMENT",
        f"function {node.name} {taken}",
        hint="leave out what stands behind the first" if takes else "leave it out: it sees all rows of a group",
        span=span_of(terms[takes]),
    )


def _check_fraction(node: exp.Anonymous, bound: exp.Expr, written: exp.Expr) -> None:
    if bound.find(exp.Column) is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} takes a fraction that is the same for all rows",
            hint="write it out, such as 0.95",
            span=span_of(written),
        )
    wrong = next((value for value in _constants(bound) if not 0 <= value <= 1), None)
    if wrong is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} takes a fraction from 0 to 1, not {wrong:g}",
            hint="0.5 is the middle, 0.95 leaves five in a hundred above it",
            span=span_of(written),
        )


def check_schema(node: exp.Anonymous, bound: Sequence[exp.Expr]) -> None:
    """Raise INVALID_ARGUMENT at a schema, written out, that Spark's parser cannot read."""
    if node.name.lower() not in _SCHEMAS or len(bound) < 2 or not bound[1].is_string:
        return
    fault = schema_fault(bound[1].name)
    if fault is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {node.name} cannot read its schema: {fault}",
            hint="write columns with their types, 'a INT, b ARRAY<STRING>', or one type, 'MAP<STRING, INT>'",
            span=span_of(node.expressions[1]),
        )


def _constants(bound: exp.Expr) -> Iterator[float]:
    """The number that is written, or those in an array that is."""
    if isinstance(bound, exp.Array) or (isinstance(bound, exp.Anonymous) and bound.name.lower() == "array"):
        for item in bound.expressions:
            yield from _constants(item)
    elif isinstance(bound, exp.Paren):
        yield from _constants(bound.this)
    elif isinstance(bound, exp.Neg):
        yield from (-value for value in _constants(bound.this))
    elif isinstance(bound, exp.Literal) and not bound.is_string:
        yield float(bound.this)
