"""Functions that mean the same in Spark and in the view store, and how the store writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_lists import LIST_CALLS
from penstock.plan.store_terms import DiffersError, Term, as_type, common_of, is_whole, text_literal
from penstock.plan.trees import whole_number
from penstock.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions

MEAN: Final = "__mean"  # of merged partials: their sum through their count; no user can write this name
Writer = Callable[["StoreExpressions", list[exp.Expr]], Term]

_MOST_PLACES: Final = 8
_ROUNDED_IN: Final = (("1e12", 25), ("1e18", 18))  # below which size with how many digits behind the point
_TRUNCATED: Final = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_BETWEEN: Final = {"SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000, "DAY": 86_400_000_000,
                   "WEEK": 604_800_000_000}  # fmt: skip
_ORDERED: Final = frozenset({"STRING", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE",
                             "TIMESTAMP"})  # fmt: skip


def _same(writer: StoreExpressions, arguments: list[exp.Expr]) -> tuple[list[str], Term]:
    terms = [writer.term(argument) for argument in arguments]
    sql_type = common_of(terms)
    if sql_type is None or len(terms) < 1:
        raise DiffersError
    return [as_type(term, sql_type).sql for term in terms], Term("", sql_type)


def _coalesce(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    cells, shape = _same(writer, arguments)
    return Term(f"COALESCE({', '.join(cells)})", shape.type)


def _nullif(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    value, other = writer.term(arguments[0]), writer.term(arguments[1])
    equal = writer.compared(value, "=", other)
    return Term(f"(CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END)", value.known)


def _if(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    from penstock.plan.store_expressions import chosen

    if len(arguments) != 3:
        raise DiffersError
    return chosen([writer.condition(arguments[0])], [writer.term(argument) for argument in arguments[1:]])


def _extreme(name: str) -> Writer:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        cells, shape = _same(writer, arguments)
        if shape.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"{name}({', '.join(cells)})", shape.type)

    return write


def _absolute(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    term = writer.term(arguments[0])
    if term.known.name not in ("INT", "BIGINT", "DOUBLE", "DECIMAL"):
        raise DiffersError
    return as_type(Term(f"abs({term.sql})", None), term.known)


def _rounded(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """ROUND of a DOUBLE goes by its decimal digits in Spark, half up; DuckDB's own goes by the binary fraction."""
    term = writer.term(arguments[0])
    places = _constant(arguments[1], least=0) if len(arguments) == 2 else 0
    if is_whole(term.type):
        return term
    if term.type != DOUBLE or places > _MOST_PLACES:
        raise DiffersError
    digits = f"CAST({term.sql} AS VARCHAR)"
    branches = " ".join(
        f"WHEN abs({term.sql}) < {limit} "
        f"THEN CAST(CAST(round(CAST({digits} AS DECIMAL(38, {scale})), {places}) AS VARCHAR) AS DOUBLE)"
        for limit, scale in _ROUNDED_IN
    )
    return Term(f"(CASE {branches} ELSE {term.sql} END)", DOUBLE)


def _whole(name: str) -> Writer:
    """FLOOR and CEIL of a DOUBLE are BIGINT in Spark; what is beyond its ends is its end, and NaN is 0."""

    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        if len(arguments) != 1:
            raise DiffersError
        term = writer.term(arguments[0])
        if is_whole(term.type):
            return as_type(term, BIGINT)
        if term.type != DOUBLE:
            raise DiffersError
        ends = f"WHEN isnan({term.sql}) THEN 0 WHEN {term.sql} >= 9223372036854775807 THEN 9223372036854775807 "
        ends += f"WHEN {term.sql} <= -9223372036854775808 THEN -9223372036854775808 "
        return Term(f"CAST(CASE {ends}ELSE CAST({name}({term.sql}) AS BIGINT) END AS BIGINT)", BIGINT)

    return write


def _text(writer: StoreExpressions, argument: exp.Expr) -> str:
    term = writer.term(argument)
    if term.type != STRING:
        raise DiffersError
    return term.sql


def _constant(argument: exp.Expr, *, least: int) -> int:
    if not isinstance(argument, exp.Literal) or argument.is_string or not str(argument.this).isdigit():
        raise DiffersError
    value = int(argument.this)
    if not least <= value < 2**31:
        raise DiffersError
    return value


def _length(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    return Term(f"CAST(length({_text(writer, arguments[0])}) AS INTEGER)", INT)


def _trimmed(name: str) -> Writer:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        if len(arguments) != 1:
            raise DiffersError
        return Term(f"{name}({_text(writer, arguments[0])}, ' ')", STRING)

    return write


def _substring(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    start = _constant(arguments[1], least=1)
    rest = f", {_constant(arguments[2], least=0)}" if len(arguments) == 3 else ""
    return Term(f"substring({_text(writer, arguments[0])}, {start}{rest})", STRING)


def _end(name: str) -> Writer:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        return Term(f"{name}({_text(writer, arguments[0])}, {_constant(arguments[1], least=0)})", STRING)

    return write


def _replaced(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    sought = arguments[1]
    if len(arguments) != 3 or not isinstance(sought, exp.Literal) or not str(sought.this):
        raise DiffersError
    put = _text(writer, arguments[2])
    return Term(f"replace({_text(writer, arguments[0])}, {text_literal(str(sought.this))}, {put})", STRING)


def _found(name: str) -> Writer:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        return Term(f"{name}({_text(writer, arguments[0])}, {_text(writer, arguments[1])})", BOOLEAN)

    return write


def _concat(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    if not arguments:
        raise DiffersError
    return Term(f"({' || '.join(_text(writer, argument) for argument in arguments)})", STRING)


def _part(name: str, *, clock: bool = False) -> Writer:
    """A field of a date or time."""

    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        term = writer.term(arguments[0])
        if term.type != TIMESTAMP and (clock or term.type != DATE):
            raise DiffersError
        return Term(f"CAST({name}({term.sql}) AS INTEGER)", INT)

    return write


def _date_trunc(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    unit, term = arguments[0], writer.term(arguments[1])
    name = str(unit.this).upper() if isinstance(unit, exp.Literal) else ""
    if term.type != TIMESTAMP or name not in _TRUNCATED:
        raise DiffersError
    return Term(f"CAST(date_trunc('{name.lower()}', {term.sql}) AS TIMESTAMP)", TIMESTAMP)


def _time_between(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """TIMESTAMPDIFF: whole units from one time to another, the rest left out."""
    if len(arguments) != 3:
        raise DiffersError
    unit = _BETWEEN.get(arguments[0].name.upper())
    begin, end = writer.term(arguments[1]), writer.term(arguments[2])
    if unit is None or begin.type != TIMESTAMP or end.type != TIMESTAMP:
        raise DiffersError
    return Term(f"((epoch_us({end.sql}) - epoch_us({begin.sql})) // {unit})", BIGINT)


def _joined(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """CONCAT_WS: what is NULL is left out, with its separator."""
    separator = arguments[0]
    if not isinstance(separator, exp.Literal) or not separator.is_string or len(arguments) < 2:
        raise DiffersError
    parts = ", ".join(_text(writer, argument) for argument in arguments[1:])
    return Term(f"concat_ws({text_literal(str(separator.this))}, {parts})", STRING)


def _padded(name: str) -> Writer:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        value, length = _text(writer, arguments[0]), _constant(arguments[1], least=0)
        put = arguments[2] if len(arguments) == 3 else exp.Literal.string(" ")
        if not isinstance(put, exp.Literal) or not put.is_string or not str(put.this):
            raise DiffersError
        return Term(f"{name}({value}, {length}, {text_literal(str(put.this))})", STRING)

    return write


def _now(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    if not writer.clock or arguments:
        raise DiffersError
    return Term("make_timestamp(epoch_us(now()))", TIMESTAMP)


def _is_null(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    return Term(f"({writer.term(arguments[0]).sql} IS NULL)", BOOLEAN)


def _is_not_null(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    return Term(f"({writer.term(arguments[0]).sql} IS NOT NULL)", BOOLEAN)


def _element(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """`get(array, place)` counts from 0."""
    array = writer.term(arguments[0])
    place = _constant(arguments[1], least=0)
    if array.known.name != "ARRAY":
        raise DiffersError
    return Term(f"({array.sql})[{place + 1}]", array.known.elements[0])


def _size(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    array = writer.term(arguments[0])
    if array.known.name != "ARRAY":
        raise DiffersError
    return Term(f"CAST(len({array.sql}) AS INTEGER)", INT)


def _slice(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """Elements from a place on, so many; Spark takes places from the end too, which are left to it."""
    array = writer.term(arguments[0])
    first, count = (whole_number(argument) for argument in arguments[1:])
    if array.known.name != "ARRAY" or not first or count is None:
        raise DiffersError
    return Term(f"list_slice({array.sql}, {first}, {first + count - 1})", array.known)


def _sign_free_remainder(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """pmod: the remainder that is never negative, for a positive constant divisor."""
    term, divisor = writer.term(arguments[0]), _constant(arguments[1], least=1)
    if not is_whole(term.type) or term.known.name not in ("INT", "BIGINT"):
        raise DiffersError
    inner = f"(({term.sql} % {divisor}) + {divisor}) % {divisor}"
    return as_type(Term(f"({inner})", None), term.known)


def _mean(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    total, count = (writer.term(argument) for argument in arguments)
    return Term(f"({total.sql} / {count.sql})", DOUBLE)  # the sum of no values is NULL


CALLS: Final[dict[str, Writer]] = {
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nvl": _coalesce,
    "nullif": _nullif,
    "if": _if,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "abs": _absolute,
    "round": _rounded,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    MEAN: _mean,
    **LIST_CALLS,
    "pmod": _sign_free_remainder,
    "length": _length,
    "char_length": _length,
    "character_length": _length,
    "trim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "substring": _substring,
    "substr": _substring,
    "left": _end("left"),
    "right": _end("right"),
    "replace": _replaced,
    "startswith": _found("starts_with"),
    "endswith": _found("ends_with"),
    "contains": _found("contains"),
    "concat": _concat,
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "day": _part("day"),
    "dayofmonth": _part("day"),
    "dayofyear": _part("dayofyear"),
    "hour": _part("hour", clock=True),
    "minute": _part("minute", clock=True),
    "second": _part("second", clock=True),
    "date_trunc": _date_trunc,
    "timestampdiff": _time_between,
    "concat_ws": _joined,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "now": _now,
    "current_timestamp": _now,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "get": _element,
    "slice": _slice,
    "size": _size,
    "cardinality": _size,
}
