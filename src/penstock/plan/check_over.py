"""OVER that no rows could make right: frames that end before they begin, distances that do not fit, missing orders.

Told where they stand, before anything runs: neither Spark nor the view store would be the first to say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.argument_types import kind_of
from penstock.errors import ResolutionError
from penstock.plan.store_terms import DiffersError
from penstock.plan.trees import own_nodes, signed_number, type_of, whole_number
from penstock.sql.spans import own_span, span_of

if TYPE_CHECKING:
    from penstock.errors import Span

_NEED_ORDER: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_TAKE_ANY_ORDER: Final = frozenset({"row_number", "lag", "lead", "ntile"})
_PLACES: Final = {"ntile": 0, "nth_value": 1}  # where a number stands that is at least one
_AWAY: Final = frozenset({"lag", "lead"})
_NUMBERS: Final = frozenset({"WHOLE", "FRACTION"})
_LENGTHS: Final = {"TIMESTAMP": "INTERVAL '5' MINUTE PRECEDING", "DATE": "INTERVAL '5' DAY PRECEDING"}


def called_over(node: exp.Expr) -> exp.Anonymous | None:
    """The call in front of OVER, without what stands between."""
    function = node.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    return function if isinstance(function, exp.Anonymous) else None


def has_over(call: exp.Expr) -> bool:
    """Whether OVER stands behind a call, with what else may stand in between."""
    around = call.parent
    while isinstance(around, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) and around.this is call:
        call, around = around, around.parent
    return isinstance(around, exp.Window) and around.this is call


def takes_any_order(node: exp.Window) -> bool:
    """Whether a function numbers or compares rows, and nothing says in which order: any will do."""
    function = called_over(node)
    return function is not None and function.name.lower() in _TAKE_ANY_ORDER and node.args.get("order") is None


def check_not_over_over(written: exp.Window) -> None:
    """Raise MISPLACED_AGGREGATE at a function with OVER inside of another one, of its arguments or of its OVER (…)."""
    inner = next((node for node in own_nodes(written) if isinstance(node, exp.Window) and node is not written), None)
    if inner is not None:
        raise ResolutionError(
            "MISPLACED_AGGREGATE",
            "a window function cannot stand inside of another one",
            hint="compute the inner one in a subquery and name it: SELECT … OVER (ORDER BY x) FROM "
            "(SELECT *, … OVER (…) AS x FROM …) AS t",
            span=span_of(inner),
        )


def check_over(bound: exp.Window, written: exp.Window) -> None:
    """Raise INVALID_ARGUMENT or TYPE_MISMATCH at what is wrong in a function with OVER; its parts are bound already."""
    function = called_over(written)
    if function is not None:
        _check_call(function, ordered=written.args.get("order") is not None)
    spec = written.args.get("spec")
    if isinstance(spec, exp.WindowSpec):
        _check_ends(spec)
        _check_distances(spec, bound)


def _check_call(function: exp.Anonymous, *, ordered: bool) -> None:
    name, arguments = function.name.lower(), function.expressions
    if name in _NEED_ORDER and not ordered:
        raise _invalid(
            f"{function.name} tells where a row stands in an order, and OVER (…) has none",
            "add ORDER BY to OVER (…); ROW_NUMBER() numbers the rows in any order",
            own_span(function),
        )
    place = _PLACES.get(name)
    if place is not None and place < len(arguments) and _never(arguments[place], least=1):
        raise _invalid(
            f"{function.name} takes a whole number from 1 on {'second' if place else 'first'}, the same for all rows",
            f"write it out, such as {'NTH_VALUE(x, 2)' if place else 'NTILE(4)'}",
            span_of(arguments[place]) or own_span(function),
        )
    if name in _AWAY and len(arguments) > 1 and _never(arguments[1]):
        raise _invalid(
            f"{function.name} takes how many rows away second, a whole number that is the same for all rows",
            f"write it out, such as {name.upper()}(x, 2); what stands there where no row is comes third",
            span_of(arguments[1]) or own_span(function),
        )


def _check_ends(spec: exp.WindowSpec) -> None:
    start, end = spec.args.get("start"), spec.args.get("end")
    sides = [str(spec.args.get(f"{name}_side") or "").upper() for name in ("start", "end")]
    kind = str(spec.args.get("kind")).upper()
    if start == "UNBOUNDED" and sides[0] == "FOLLOWING":
        raise _invalid(
            "a frame cannot begin behind all rows", "it begins at UNBOUNDED PRECEDING at the earliest", span_of(spec)
        )
    if end == "UNBOUNDED" and sides[1] == "PRECEDING":
        raise _invalid(
            "a frame cannot end in front of all rows", "it ends at UNBOUNDED FOLLOWING at the latest", span_of(spec)
        )
    for value in (start, end):
        if isinstance(value, exp.Expr):
            _check_distance(value, spec, kind)
    first, last = (_place(value, side) for value, side in zip((start, end), sides, strict=True))
    if first is not None and last is not None and first > last:
        raise _invalid(
            "a frame cannot end before it begins",
            "write the earlier end first: BETWEEN 2 PRECEDING AND CURRENT ROW, BETWEEN CURRENT ROW AND 2 FOLLOWING",
            span_of(spec),
        )


def _check_distance(value: exp.Expr, spec: exp.WindowSpec, kind: str) -> None:
    if _negative(value):
        raise _invalid(
            "a frame reaches so many rows or so far, which is never negative",
            "PRECEDING is in front of the row, FOLLOWING behind it",
            span_of(spec),
        )
    if value.find(exp.Column) is not None:
        raise _invalid(
            "a frame reaches equally far for all rows", "write a constant, such as 2 PRECEDING", span_of(value)
        )
    if kind != "RANGE" and isinstance(value, exp.Literal | exp.Interval) and whole_number(value) is None:
        raise _invalid(
            f"{kind} takes a whole number of {'rows' if kind == 'ROWS' else 'groups'}",
            "write 2 PRECEDING; RANGE goes by the values of the order",
            span_of(value) or span_of(spec),
        )


def _place(value: object, side: str) -> float | None:
    """Where an end lies, seen from the row, in rows, values or microseconds; None where that is not known."""
    if not isinstance(value, exp.Expr):
        return 0 if value != "UNBOUNDED" else None
    distance = _length(value) if isinstance(value, exp.Interval) else whole_number(value)
    return None if distance is None else -distance if side == "PRECEDING" else distance


def _length(value: exp.Interval) -> int | None:
    from penstock.plan.store_expressions import interval_us

    try:
        return interval_us(value)
    except DiffersError:
        return None


def _check_distances(spec: exp.WindowSpec, bound: exp.Window) -> None:
    kind = str(spec.args.get("kind")).upper()
    order = bound.args.get("order")
    terms = list(order.expressions) if isinstance(order, exp.Order) else []
    if kind == "GROUPS" and not terms:
        raise _invalid("GROUPS counts the values of an order, and OVER (…) has none", "add ORDER BY", span_of(spec))
    distances = [value for name in ("start", "end") if isinstance(value := spec.args.get(name), exp.Expr)]
    if kind != "RANGE" or not distances:
        return
    if len(terms) != 1:
        raise _invalid(
            f"RANGE with a distance goes by one column of an order, not by {len(terms) or 'none'}",
            "leave one column in ORDER BY, or count rows: ROWS BETWEEN 5 PRECEDING AND CURRENT ROW",
            span_of(spec),
        )
    for value in distances:
        _check_fits(value, terms[0].this, spec)


def _check_fits(value: exp.Expr, ordered: exp.Expr, spec: exp.WindowSpec) -> None:
    given = type_of(ordered)
    kind = kind_of(given)
    if kind is None:
        return
    length = isinstance(value, exp.Interval)
    if kind not in _NUMBERS and kind not in _LENGTHS and kind != "INTERVAL":
        message = f"RANGE with a distance goes by numbers or times, and the order is by {given}"
        hint = "count rows instead: ROWS BETWEEN 5 PRECEDING AND CURRENT ROW"
    elif kind in _NUMBERS and length:
        message = f"an interval is no distance between values of {given}"
        hint = "write a number: RANGE BETWEEN 5 PRECEDING AND CURRENT ROW"
    elif kind == "TIMESTAMP" and isinstance(value, exp.Literal):
        message = f"a number is no distance between values of {given}"
        hint = f"write an interval: RANGE BETWEEN {_LENGTHS[kind]} AND CURRENT ROW"
    else:
        return
    raise ResolutionError("TYPE_MISMATCH", message, hint=hint, span=span_of(spec))


def _never(node: exp.Expr, least: int | None = None) -> bool:
    """Whether this is surely no whole number, of at least so much, that is the same for all rows."""
    value = signed_number(node)
    if value is not None:
        return least is not None and value < least
    return isinstance(node, exp.Literal) or node.find(exp.Column) is not None


def _negative(value: exp.Expr) -> bool:
    if isinstance(value, exp.Interval) and isinstance(value.this, exp.Expr):
        return _negative(value.this)
    if isinstance(value, exp.Literal):
        return str(value.this).strip().startswith("-")
    return isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal)


def _invalid(message: str, hint: str, span: Span | None) -> ResolutionError:
    return ResolutionError("INVALID_ARGUMENT", message, hint=hint, span=span)
