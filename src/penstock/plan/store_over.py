"""OVER for the view store: ranks, aggregates and neighbours, over the frames that both engines understand alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_aggregates import AGGREGATES, IN_ORDER, aggregate_call, in_order, map_of
from penstock.plan.store_lists import MAP_OF, SORTED_LIST, SORTED_TEXT
from penstock.plan.store_terms import DiffersError, Term, as_type, common, is_whole, told_apart_alike
from penstock.plan.trees import signed_number, whole_number
from penstock.types import DOUBLE, INT

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions
    from penstock.types import SqlType

_RANKS: Final = frozenset({"row_number", "rank", "dense_rank"})
_PLACES: Final = frozenset({"first_value", "last_value", "nth_value"})
_OTHER_NAMES: Final = {"first": "first_value", "last": "last_value"}
_SHARES: Final = frozenset({"percent_rank", "cume_dist"})
_ENDS: Final = frozenset({"UNBOUNDED", "CURRENT ROW"})
_EXCLUDED: Final = frozenset({"", "NO OTHERS", "CURRENT ROW", "GROUP", "TIES"})  # Spark has none of these
_SIDES: Final = frozenset({"PRECEDING", "FOLLOWING"})
_DAY_US: Final = 86_400_000_000


def over_term(write: StoreExpressions, node: exp.Window) -> Term:
    """A function with OVER; where no frame is written both engines take the same."""
    from penstock.plan.store_expressions import only_has
    from penstock.plan.store_text import ordered_text

    if not only_has(node, ("this", "partition_by", "order", "over", "spec")):
        raise DiffersError
    parts: list[str] = []
    keys = [told_apart_alike(write.term(key)).sql for key in node.args.get("partition_by") or []]
    if keys:
        parts.append(f"PARTITION BY {', '.join(keys)}")
    order = node.args.get("order")
    terms = [write.term(term.this) for term in order.expressions] if order is not None else []
    if order is not None:
        texts = [ordered_text(value, term) for value, term in zip(terms, order.expressions, strict=True)]
        parts.append(f"ORDER BY {', '.join(texts)}")
    frame = _frame(node.args.get("spec"), terms)
    suffix = f" OVER ({' '.join(parts + frame)})"
    if isinstance(node.this, exp.Filter):
        return _filtered(write, node.this, order, suffix)
    listed = _listed(write, node.this, order, suffix)
    return listed or _over(write, node.this, suffix, ordered=order is not None, framed=bool(frame))


def _listed(write: StoreExpressions, call: exp.Expr, order: exp.Expr | None, suffix: str) -> Term | None:
    """A list of the values of a frame in the order of its rows, or what goes by the order of the values themselves."""
    if not isinstance(call, exp.Anonymous):
        return None
    if call.name in ("collect_list", "array_agg") and not isinstance(call.expressions[0], exp.Distinct):
        terms = [term.copy() for term in order.expressions] if order is not None else []
        return in_order(write, SORTED_LIST, [call.expressions[0], *terms], suffix)
    if call.name == "collect_set":
        told_apart_alike(write.term(call.expressions[0]))
        found = in_order(write, SORTED_LIST, [call.expressions[0]], suffix)
        return Term(f"list_sort(list_distinct({found.sql}))", found.type)
    if call.name == "listagg" and not isinstance(call.expressions[0], exp.Distinct):
        terms = [term.copy() for term in order.expressions] if order is not None else []
        value, separator = (*call.expressions, exp.Literal.string(""))[:2]
        return in_order(write, SORTED_TEXT, [value, separator, *terms], suffix)
    if call.name == MAP_OF:
        return map_of(write.term(call.expressions[0]), write.term(call.expressions[1]), suffix)
    return in_order(write, call.name, list(call.expressions), suffix) if call.name in IN_ORDER else None


def _over(write: StoreExpressions, call: exp.Expr, suffix: str, *, ordered: bool, framed: bool) -> Term:
    nulls = ""
    if isinstance(call, exp.IgnoreNulls):
        call, nulls = call.this, " IGNORE NULLS"
    if not isinstance(call, exp.Anonymous):
        raise DiffersError
    name, arguments = call.name.lower(), list(call.expressions)
    name = _OTHER_NAMES.get(name, name)
    if name in AGGREGATES and name not in _PLACES and not nulls:
        return aggregate_call(write, name, arguments, suffix)
    if not ordered:
        raise DiffersError
    if name in _PLACES:
        return _of_frame(write, name, arguments, nulls, suffix)
    if framed:
        raise DiffersError
    if name in ("lag", "lead"):
        return _neighbour(write, name, arguments, nulls, suffix)
    if nulls:
        raise DiffersError
    return _rank(name, arguments, suffix)


def _filtered(write: StoreExpressions, node: exp.Filter, order: exp.Expr | None, suffix: str) -> Term:
    """An aggregate of the rows of a frame that meet a condition."""
    call, condition = node.this, write.condition(node.expression.this)
    listed = _listed(write, call, order, f" FILTER (WHERE {condition}){suffix}")
    if listed is not None:
        return listed
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in AGGREGATES:
        raise DiffersError
    return aggregate_call(write, call.name.lower(), list(call.expressions), f" FILTER (WHERE {condition}){suffix}")


def _of_frame(write: StoreExpressions, name: str, arguments: list[exp.Expr], nulls: str, suffix: str) -> Term:
    """The value of one row of the frame: its first, its last, or the one with a number."""
    place = whole_number(arguments[1]) if name == "nth_value" and len(arguments) == 2 else None
    if len(arguments) != (1 if place is None else 2) or (name == "nth_value" and not place):
        raise DiffersError
    value = write.term(arguments[0])
    number = "" if place is None else f", {place}"
    return Term(f"{name}({value.sql}{number}{nulls}){suffix}", value.known)


def _rank(name: str, arguments: list[exp.Expr], suffix: str) -> Term:
    """Where a row stands among the others: its number, its part of the whole."""
    if name in _RANKS and not arguments:
        return Term(f"CAST({name}(){suffix} AS INTEGER)", INT)
    if name in _SHARES and not arguments:
        return Term(f"{name}(){suffix}", DOUBLE)
    parts = whole_number(arguments[0]) if name == "ntile" and len(arguments) == 1 else None
    if not parts:
        raise DiffersError
    return Term(f"CAST(ntile({parts}){suffix} AS INTEGER)", INT)


def _neighbour(write: StoreExpressions, name: str, arguments: list[exp.Expr], nulls: str, suffix: str) -> Term:
    """LAG and LEAD: the value, how many rows away, and what stands there where no row is."""
    if not 1 <= len(arguments) <= 3:
        raise DiffersError
    value = write.term(arguments[0])
    text = value.sql
    if len(arguments) > 1:
        away = signed_number(arguments[1])
        if away is None:
            raise DiffersError
        text += f", {away}"
    if len(arguments) > 2:
        default = write.term(arguments[2])
        if common(value, default) != value.known:
            raise DiffersError
        text += f", {as_type(default, value.known).sql}"
    return Term(f"{name}({text}{nulls}){suffix}", value.known)


def _frame(spec: exp.Expr | None, order: list[Term]) -> list[str]:
    """The words of a frame of whole rows, of everything before or behind, or of a range of values."""
    if spec is None:
        return []
    kind = str(spec.args.get("kind")).upper()
    exclude = str(spec.args.get("exclude") or "").upper()
    if kind not in ("ROWS", "RANGE", "GROUPS") or exclude not in _EXCLUDED:
        raise DiffersError
    left_out = [f"EXCLUDE {exclude}"] if exclude else []
    ends = [_end(spec.args.get(name), spec.args.get(f"{name}_side"), kind, order) for name in ("start", "end")]
    if ends[1] is None:
        return [f"{kind} {ends[0]}", *left_out]
    return [f"{kind} BETWEEN {ends[0]} AND {ends[1]}", *left_out]


def _end(value: exp.Expr | str | None, side: str | None, kind: str, order: list[Term]) -> str | None:
    if value is None:
        return None
    way = (side or "").upper()
    if isinstance(value, str):
        word = value.upper()
        if word not in _ENDS or (word == "UNBOUNDED" and way not in _SIDES):
            raise DiffersError
        return f"{word} {way}".strip() if word == "UNBOUNDED" else word
    if way not in _SIDES:
        raise DiffersError
    if kind == "RANGE":
        return f"{_distance(value, order)} {way}"
    rows = whole_number(value)
    if rows is None:
        raise DiffersError
    return f"{rows} {way}"


def _distance(value: exp.Expr, order: list[Term]) -> str:
    """How far the values of a range lie from that of the row: a number, or a length of time."""
    if len(order) != 1:
        raise DiffersError
    by = order[0].known
    if isinstance(value, exp.Interval):
        return _length(value, by)
    number = whole_number(value)
    if number is None:
        raise DiffersError
    if by.name == "DATE":
        return f"to_days({number})"
    if by.name in ("DOUBLE", "DECIMAL"):
        return as_type(Term(str(number), None, str(number)), by).sql
    if not is_whole(by):
        raise DiffersError
    return str(number)


def _length(value: exp.Interval, by: SqlType) -> str:
    """A length of time: of dates, whole days or months."""
    from penstock.plan.store_expressions import interval_months, interval_us

    if by.name not in ("DATE", "TIMESTAMP"):
        raise DiffersError
    months = interval_months(value)
    if months is not None:
        return f"to_months({months})"
    micros = interval_us(value)
    if by.name == "TIMESTAMP":
        return f"to_microseconds({micros})"
    days, rest = divmod(micros, _DAY_US)
    if rest:
        raise DiffersError
    return f"to_days({days})"
