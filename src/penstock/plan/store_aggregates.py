"""Aggregates for the view store, in the types that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_casts import cast
from penstock.plan.store_lists import (
    AT_PLACE,
    LIST_OF_ROWS,
    MAP_OF,
    SORTED_LIST,
    SORTED_TEXT,
    moment_of,
    percentile_of,
    value_at,
)
from penstock.plan.store_orders import is_nested, orders_nothing, placed
from penstock.plan.store_terms import (
    DiffersError,
    Term,
    as_type,
    in_some_order,
    is_whole,
    store_type,
    text_literal,
    told_apart_alike,
)
from penstock.types import BIGINT, BOOLEAN, DOUBLE, STRING, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions

_SPREADS: Final = {"stddev": "stddev_samp", "std": "stddev_samp", "stddev_samp": "stddev_samp",
                   "stddev_pop": "stddev_pop", "variance": "var_samp", "var_samp": "var_samp",
                   "var_pop": "var_pop"}  # fmt: skip
# Of Spark's choice, as rows have no order there; here it is always the same one, the smallest or the largest.
_ANY: Final = {"any_value": "min", "first": "min", "first_value": "min", "last": "max", "last_value": "max"}
_MOMENTS: Final = frozenset({"skewness", "kurtosis"})
_LISTS: Final = frozenset({"collect_list", "array_agg", "collect_set"})
_CHOICES: Final = {"max_by": "arg_max_null", "min_by": "arg_min_null"}
_PAIRS: Final = frozenset({"corr", "covar_pop", "covar_samp"})
_BITS: Final = frozenset({"bit_and", "bit_or", "bit_xor"})
AGGREGATES: Final = frozenset({"count", "count_if", "sum", "avg", "mean", "min", "max", "bool_and", "every", "bool_or",
                               "some", "any", "listagg", "approx_count_distinct", *_ANY, *_MOMENTS,
                               *_BITS, *_PAIRS, *_SPREADS, *_CHOICES, *_LISTS})  # fmt: skip
# Aggregates of values in an order.
IN_ORDER: Final = frozenset(
    {SORTED_LIST, LIST_OF_ROWS, SORTED_TEXT, AT_PLACE, "mode", "approx_percentile", "percentile_approx"}
)
GROUPINGS: Final = {"grouping": SqlType("TINYINT"), "grouping_id": BIGINT}
_ORDERED: Final = frozenset({"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL",
                             "DATE", "TIMESTAMP"})  # fmt: skip

_MORE_DIGITS: Final = 4  # of a mean of decimals
_LONGEST_MEAN: Final = 22  # beyond this many digits the sum of a billion rows might not fit


def aggregate_term(write: StoreExpressions, node: exp.Expr) -> Term | None:
    """The term of an aggregate, None for any other node."""
    condition = ""
    call = node
    if isinstance(node, exp.Filter):
        call = node.this
        condition = f" FILTER (WHERE {write.condition(node.expression.this)})"
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls) and call.this.name.lower() in _ANY:
        call = call.this  # what is chosen is no NULL where there is anything else
    if isinstance(call, exp.Anonymous) and not condition and call.name.lower() in GROUPINGS:
        return _grouping(write, call)
    if isinstance(call, exp.Anonymous) and call.name == "to_json" and not condition and is_list(call.expressions[0]):
        return _json(write.term(call.expressions[0]))
    if isinstance(call, exp.Anonymous) and call.name == MAP_OF:
        return map_of(write.term(call.expressions[0]), write.term(call.expressions[1]), condition)
    if isinstance(call, exp.Anonymous) and call.name.lower() in IN_ORDER:
        return in_order(write, call.name.lower(), list(call.expressions), condition)
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in AGGREGATES:
        if condition:
            raise DiffersError
        return None
    return aggregate_call(write, call.name.lower(), list(call.expressions), condition)


def _grouping(write: StoreExpressions, call: exp.Anonymous) -> Term:
    """Which keys a row of grouping sets is not grouped by: of one key, or of several as the bits of a number."""
    kind = GROUPINGS[call.name.lower()]
    if not call.expressions or (kind != BIGINT and len(call.expressions) > 1):
        raise DiffersError
    keys = ", ".join(write.term(key).sql for key in call.expressions)
    return as_type(Term(f"grouping({keys})", None), kind)


def aggregate_call(write: StoreExpressions, name: str, arguments: list[exp.Expr], suffix: str) -> Term:
    """`suffix` is what stands behind every call: FILTER, OVER."""
    if name == "listagg":
        return _text_of_all(write, arguments, suffix)
    if name in _PAIRS or name in _CHOICES:
        return _of_two(write, name, arguments, suffix)
    argument = _one(name, arguments)
    if name == "count" and isinstance(argument, exp.Star):
        return Term(f"count(*){suffix}", BIGINT)
    if name == "count_if":
        return Term(f"count(CASE WHEN {write.condition(argument)} THEN 1 END){suffix}", BIGINT)
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        if name == "count" and (len(argument.expressions) > 1 or isinstance(argument.expressions[0], exp.Tuple)):
            return _distinct_rows(write, argument.expressions, suffix)
        if len(argument.expressions) != 1:
            raise DiffersError
        argument = argument.expressions[0]
    if name == "approx_count_distinct":
        name, distinct = "count", True  # as near as can be
    term = write.term(argument)
    if name == "count":
        if distinct:
            told_apart_alike(term)
        return Term(f"count({'DISTINCT ' if distinct else ''}{term.sql}){suffix}", BIGINT)
    return _of_values(name, term, "DISTINCT " if distinct else "", suffix)


def _one(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """The only argument; FIRST and its kin also take whether NULLs are left out, which they are."""
    told = name in _ANY and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean)
    if len(arguments) != 1 and not told:
        raise DiffersError
    return arguments[0]


def _of_two(write: StoreExpressions, name: str, arguments: list[exp.Expr], suffix: str) -> Term:
    if len(arguments) != 2:
        raise DiffersError
    one, other = (write.term(argument) for argument in arguments)
    return _of_pairs(name, [one, other], suffix) if name in _PAIRS else _choice(name, one, other, suffix)


def _of_values(name: str, term: Term, distinct: str, suffix: str) -> Term:
    if name == "sum":
        return _sum(term, distinct, suffix)
    if name in ("avg", "mean"):
        if term.known.name == "DECIMAL":
            return _decimal_mean(term, distinct, suffix)
        if not (is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT")):
            raise DiffersError
        value = as_type(term, DOUBLE).sql
        return Term(f"(sum({distinct}{value}){suffix} / count({distinct}{value}){suffix})", DOUBLE)
    if name in _LISTS:
        return _list(term, distinct or ("DISTINCT " if name == "collect_set" else ""), suffix)
    if name in _SPREADS or name in _MOMENTS:
        return _spread(name, term, distinct, suffix)
    if name in ("min", "max") or name in _ANY:
        if is_nested(term.known):
            return Term(f"arg_{_ANY.get(name, name)}({term.sql}, {placed(term).sql}){suffix}", term.known)
        if term.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"{_ANY.get(name, name)}({term.sql}){suffix}", term.known)
    if name in _BITS and is_whole(term.type):
        return Term(f"{name}({term.sql}){suffix}", term.known)
    if term.type != BOOLEAN:
        raise DiffersError
    return Term(f"{'bool_and' if name in ('bool_and', 'every') else 'bool_or'}({term.sql}){suffix}", BOOLEAN)


def _spread(name: str, term: Term, distinct: str, suffix: str) -> Term:
    """How far values lie apart, and on which side of their mean."""
    if not (is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT", "DECIMAL")):
        raise DiffersError
    if distinct:
        return _spread_of_distinct(name, term, suffix)
    value = as_type(term, DOUBLE).sql
    if name in _MOMENTS:
        return moment_of(name, f"list({value}){suffix}")
    return Term(f"{_SPREADS[name]}({value}){suffix}", DOUBLE)


def _spread_of_distinct(name: str, term: Term, suffix: str) -> Term:
    """Values are told apart as they are: two large ones may be the same DOUBLE."""
    if name not in _SPREADS or " OVER (" in suffix:
        raise DiffersError
    told_apart_alike(term)
    values = f"list_transform(list_sort(list(DISTINCT {term.sql}){suffix}), lambda v: CAST(v AS DOUBLE))"
    return Term(f"list_aggregate({values}, '{_SPREADS[name]}')", DOUBLE)


def _distinct_rows(write: StoreExpressions, values: list[exp.Expr], suffix: str) -> Term:
    """How many different rows of values there are. One with a NULL in it is not counted, unless the row is a value of
    its own, as in COUNT(DISTINCT (a, b))."""
    whole = isinstance(values[0], exp.Tuple)
    if whole and len(values) > 1:
        raise DiffersError
    terms = [write.term(each) for each in (values[0].expressions if whole else values)]
    if any(term.known.name not in _ORDERED for term in terms):
        raise DiffersError
    there = " AND ".join(f"{term.sql} IS NOT NULL" for term in terms)
    row = ", ".join(f"'v{place}': {term.sql}" for place, term in enumerate(terms))
    counted = f"{{{row}}}" if whole else f"CASE WHEN {there} THEN {{{row}}} END"
    return Term(f"count(DISTINCT {counted}){suffix}", BIGINT)


def _list(term: Term, distinct: str, suffix: str) -> Term:
    """All values but NULLs. Spark gives them in any order; here in that of the values, which no batch changes."""
    if " OVER (" in suffix:
        raise DiffersError
    return _sorted_values(term, distinct, suffix)


def _sorted_values(term: Term, distinct: str, suffix: str) -> Term:
    kind = _list_of(in_some_order(told_apart_alike(term) if distinct else term))
    there = _there(f"list({distinct}{term.sql}){suffix}")
    return Term(f"coalesce(list_sort({there}), CAST([] AS {store_type(kind)}))", kind)


def _list_of(value: Term) -> SqlType:
    kind = SqlType("ARRAY", elements=(value.known,))
    store_type(kind)
    return kind


def _there(values: str) -> str:
    """The values of a list but NULLs."""
    return f"list_filter({values}, lambda x: x IS NOT NULL)"


def _text_of_all(write: StoreExpressions, arguments: list[exp.Expr], suffix: str) -> Term:
    """LISTAGG: all texts in one, NULL of none. Spark gives them in any order; here in that of the texts."""
    first, *rest = arguments
    distinct = isinstance(first, exp.Distinct)
    values = [*(first.expressions if isinstance(first, exp.Distinct) else [first]), *rest]
    if len(values) > 2:
        raise DiffersError
    between = _separator(values[1] if len(values) == 2 else exp.Literal.string(""))
    value = cast(write.term(values[0]), STRING)
    texts = _sorted_values(value, "DISTINCT " if distinct else "", suffix).sql
    return Term(f"(CASE WHEN len({texts}) > 0 THEN array_to_string({texts}, {between}) END)", STRING)


def _separator(node: exp.Expr) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise DiffersError
    return text_literal(str(node.this))


def _text_in_order(write: StoreExpressions, given: Term, order: str, arguments: list[exp.Expr], suffix: str) -> Term:
    """LISTAGG with an order; what is no text becomes one as in CAST, behind the order of the values themselves."""
    between, value = _separator(arguments[1]), cast(given, STRING)
    if not isinstance(arguments[0], exp.Distinct):
        return Term(f"string_agg({value.sql}, {between}{order}){suffix}", STRING)
    if value == given:
        return Term(f"string_agg(DISTINCT {value.sql}, {between}{order}){suffix}", STRING)
    values = _there(f"list(DISTINCT {given.sql}{order}){suffix}")
    return Term(f"array_to_string(nullif({values}, []), {between})", STRING)


def in_order(write: StoreExpressions, name: str, arguments: list[exp.Expr], suffix: str) -> Term:
    """An aggregate that goes by the order of its values, or of others beside them."""
    first, distinct = arguments[0], ""
    terms = [argument for argument in arguments if isinstance(argument, exp.Ordered)]
    if isinstance(first, exp.Distinct):
        first, distinct = first.expressions[0], "DISTINCT "
    value = write.term(first)
    if name in (SORTED_LIST, LIST_OF_ROWS):
        kind = _list_of(in_some_order(told_apart_alike(value) if distinct else value))
        if distinct and is_nested(value.known):
            return _distinct_in_order(value, terms[0], kind, suffix)
        values = f"list({distinct}{value.sql}{_order(write, terms, value)}){suffix}"
        there = values if name == LIST_OF_ROWS else _there(values)
        return Term(f"coalesce({there}, CAST([] AS {store_type(kind)}))", kind)
    if value.known.name not in _ORDERED:
        raise DiffersError
    if name == SORTED_TEXT:
        return _text_in_order(write, value, _order(write, terms, value), arguments, suffix)
    there = f"list({distinct}{value.sql}{_order(write, terms, value)}){suffix}"
    values = _there(f"coalesce({there}, CAST([] AS {store_type(value.known)}[]))")
    if name == "mode":
        return Term(f"list_aggregate({values}, 'mode')", value.known)
    if not (is_whole(value.type) or value.known.numeric):
        raise DiffersError
    if isinstance(arguments[1], exp.Anonymous) and arguments[1].name.lower() == "array" and arguments[1].expressions:
        places = [_at(name, arguments, values, value.known, _share(write, each)) for each in arguments[1].expressions]
        kind = _list_of(places[0])
        return Term(f"(CASE WHEN len({values}) > 0 THEN [{', '.join(place.sql for place in places)}] END)", kind)
    return _at(name, arguments, values, value.known, _share(write, arguments[1]))


def _share(write: StoreExpressions, node: exp.Expr) -> str:
    share = write.term(node).constant
    if share is None or not 0 <= float(share) <= 1:
        raise DiffersError
    return share


def _at(name: str, arguments: list[exp.Expr], values: str, kind: SqlType, share: str) -> Term:
    """What stands at a place among values in order."""
    if name != AT_PLACE:
        return Term(value_at(values, share), kind)
    if arguments[2].name == "percentile_cont":
        return percentile_of(values, share)
    return as_type(Term(value_at(values, share), None), DOUBLE)


def _distinct_in_order(value: Term, order: exp.Ordered, kind: SqlType, suffix: str) -> Term:
    """ARRAY_AGG(DISTINCT x ORDER BY x) of lists or structs. DuckDB orders different values by themselves alone, so each
    comes behind its place."""
    both = f"CASE WHEN {value.sql} IS NOT NULL THEN {{'p': {placed(value).sql}, 'v': {value.sql}}} END"
    direction = f"{'DESC' if order.args.get('desc') else 'ASC'} NULLS LAST"
    listed = _there(f"list(DISTINCT {both} ORDER BY {both} {direction}){suffix}")
    return Term(f"coalesce(list_transform({listed}, lambda s: s.v), CAST([] AS {store_type(kind)}))", kind)


def is_list(node: exp.Expr) -> bool:
    """Whether an aggregate gives all its values, as a list or a map."""
    call = node
    while isinstance(call, exp.Filter | exp.Window):
        call = call.this
    if isinstance(call, exp.Anonymous) and call.name == "transform_values":
        return is_list(call.expressions[0])
    return isinstance(call, exp.Anonymous) and call.name in (*_LISTS, SORTED_LIST, LIST_OF_ROWS, MAP_OF)


def _json(term: Term) -> Term:
    """A list or a map as JSON, of values that both engines write alike."""
    *keys, value = term.known.elements
    plain = is_whole(value) or value in (STRING, BOOLEAN)
    if not plain or any(key != STRING for key in keys):
        raise DiffersError
    return Term(f"CAST(to_json({term.sql}) AS VARCHAR)", STRING)


def map_of(key: Term, value: Term, suffix: str) -> Term:
    """All keys but NULL in their order, each with the largest of its values."""
    if key.known.name not in _ORDERED or not (value.known.name in _ORDERED or is_nested(value.known)):
        raise DiffersError
    kind = SqlType("MAP", elements=(key.known, value.known))
    pair = f"CASE WHEN {key.sql} IS NOT NULL THEN {{'k': {key.sql}, 'v': {value.sql}}} END"
    terms = [(key, key.sql), (value, f"{placed(value).sql} NULLS FIRST")]
    listed = f"list({pair}{_ordering(terms)}){suffix}"
    pairs = _there(listed)
    made = "map_from_entries(list_filter(s, lambda e, i: i = len(s) OR s[i + 1].k <> e.k))"
    some = f"list_transform([{pairs}], lambda s: CASE WHEN len(s) > 0 THEN {made} END)[1]"
    return Term(f"coalesce({some}, CAST(MAP {{}} AS {store_type(kind)}))", kind)


def _order(write: StoreExpressions, terms: list[exp.Ordered], value: Term) -> str:
    """ORDER BY inside an aggregate. What it leaves open goes by the value, so that no batch changes it."""
    from penstock.plan.store_text import ordered_text

    values = [write.term(term.this) for term in terms]
    texts = [(each, ordered_text(each, term)) for each, term in zip(values, terms, strict=True)]
    last = "DESC NULLS LAST" if terms and terms[-1].args.get("desc") else "ASC NULLS FIRST"
    return _ordering([*texts, (value, f"{value.sql} {last}")])


def _ordering(terms: list[tuple[Term, str]]) -> str:
    """ORDER BY of the terms that order anything."""
    texts = [text for value, text in terms if not orders_nothing(value)]
    return f" ORDER BY {', '.join(texts)}" if texts else ""


def _decimal_mean(term: Term, distinct: str, suffix: str) -> Term:
    """The mean of decimals: exact, with four digits more, rounded half up, as in Spark. DuckDB's own is a DOUBLE."""
    precision, scale = term.known.parameters
    if precision > _LONGEST_MEAN or precision + scale + 2 * _MORE_DIGITS > 38:
        raise DiffersError
    count = f"count({distinct}{term.sql}){suffix}"
    shifted = f"CAST('1{'0' * (scale + _MORE_DIGITS)}' AS DECIMAL({scale + _MORE_DIGITS + 1}, 0))"
    units = f"CAST(CAST(sum({distinct}{term.sql}){suffix} AS DECIMAL(38, {scale})) * {shifted} AS HUGEINT)"
    rounded = f"sign({units}) * ((abs({units}) * 2 + {count}) // ({count} * 2))"
    back = f"CAST('0.{'0' * (scale + _MORE_DIGITS - 1)}1' AS DECIMAL({scale + _MORE_DIGITS}, {scale + _MORE_DIGITS}))"
    mean = f"(CAST({rounded} AS DECIMAL({precision + _MORE_DIGITS}, 0)) * {back})"
    return as_type(Term(mean, None), SqlType("DECIMAL", (precision + _MORE_DIGITS, scale + _MORE_DIGITS)))


def _of_pairs(name: str, terms: list[Term], suffix: str) -> Term:
    """How two columns vary together; NULL where one of them does not vary."""
    if not all(is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT", "DECIMAL") for term in terms):
        raise DiffersError
    value = f"{name}({', '.join(as_type(term, DOUBLE).sql for term in terms)}){suffix}"
    return Term(f"(CASE WHEN isfinite({value}) THEN {value} END)", DOUBLE)


def _choice(name: str, value: Term, order: Term, suffix: str) -> Term:
    """The value of the row that is first or last by another column. Of rows that are alike by it Spark takes any; here
    it is always the same one, as an answer that is computed anew must not change by itself."""
    if order.known.name not in _ORDERED and not is_nested(order.known):
        raise DiffersError
    place = f"{{'a': {placed(order).sql}, 'b': {in_some_order(value).sql}}}"
    some = f"CASE WHEN {order.sql} IS NOT NULL THEN {place} END"
    return Term(f"{_CHOICES[name]}({value.sql}, {some}){suffix}", value.known)


def _sum(term: Term, distinct: str, suffix: str) -> Term:
    known = term.known
    if is_whole(known):
        return as_type(Term(f"sum({distinct}{term.sql}){suffix}", None), BIGINT)
    if known.name in ("DOUBLE", "FLOAT"):
        return as_type(Term(f"sum({distinct}{as_type(term, DOUBLE).sql}){suffix}", None), DOUBLE)
    if known.name == "DECIMAL":
        precision, scale = known.parameters
        wide = SqlType("DECIMAL", (min(38, precision + 10), scale))
        return as_type(Term(f"sum({distinct}{term.sql}){suffix}", None), wide)
    raise DiffersError
