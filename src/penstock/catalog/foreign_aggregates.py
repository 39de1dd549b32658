"""Aggregates of other systems, written for Spark.

A rewrite may wrap the aggregate, as in `coalesce(sum(x), 0)`; FILTER and OVER then belong to the aggregate inside,
which `penstock.catalog.functions.aggregate_calls` finds.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.catalog.foreign_call import Arguments, ForeignFunction, call, foreign, invalid, number, renamed, text
from penstock.catalog.foreign_json import has_whole_row, keep_nulls

KEEPS_NULLS: Final = "keeps_nulls"  # said by the ORDER BY of an ARRAY_AGG that stands for ARRAY(SELECT …)


def _ordering(args: Arguments) -> tuple[list[exp.Expr], list[exp.Ordered]]:
    """The arguments without the ORDER BY that stands inside the call, and its terms."""
    plain: list[exp.Expr] = []
    terms: list[exp.Ordered] = []
    for arg in args:
        if isinstance(arg, exp.Order):
            plain.append(arg.this)
            terms += [term for term in arg.expressions if isinstance(term, exp.Ordered)]
        else:
            plain.append(arg)
    return plain, terms


def _listagg(args: Arguments, dialect: str | None) -> exp.Expr:
    """LISTAGG(x [, separator] [ORDER BY y]): Spark has the order behind the call, Flink a comma where none is given."""
    plain, terms = _ordering(args)
    if len(plain) == 1 and dialect == "flink":
        plain.append(text(","))
    aggregate = call("listagg", *plain)
    return exp.WithinGroup(this=aggregate, expression=exp.Order(expressions=terms)) if terms else aggregate


def _array_agg(args: Arguments, _dialect: str | None) -> exp.Expr:
    """ARRAY_AGG([DISTINCT] x ORDER BY y, …): the rows are collected with their keys, sorted, and the keys dropped. No
    NULL is collected, as without an order; where the order says so, all are.
    """
    plain, terms = _ordering(args)
    if not terms:
        return call("collect_list", *plain)
    value, collect = plain[0], "collect_list"
    if isinstance(value, exp.Distinct):
        value, collect = value.expressions[0], "collect_set"
        if any(term.this != value for term in terms):
            raise invalid("array_agg", "DISTINCT goes by the value", args[0], "order by the value itself")
    descending = {bool(term.args.get("desc")) for term in terms}
    plainly = len(descending) == 1 and all(_nulls_first(term) != bool(term.args.get("desc")) for term in terms)
    fields: list[exp.Expr] = []
    for position, term in enumerate(terms):
        fields += [text(f"k{position}{'' if plainly else _direction(term)}"), term.this]
    row_of = call("named_struct", *fields, text("v"), value.copy())
    if not any(arg.args.get(KEEPS_NULLS) for arg in args):
        row_of = call("if", exp.Is(this=value.copy(), expression=exp.Null()), exp.Null(), row_of)
    rows = call(collect, row_of)
    row = exp.to_identifier("r")
    taken = exp.Lambda(this=exp.Dot(this=row, expression=exp.to_identifier("v")), expressions=[row.copy()])
    if plainly:
        direction = [exp.false()] if descending == {True} else []
        return call("transform", call("sort_array", rows, *direction), taken)
    return call("transform", call("array_sort", rows, _comparison(terms)), taken)


def _nulls_first(term: exp.Ordered) -> bool:
    """Where NULLs stand: where nothing is said they are the smallest values, as anywhere in Spark."""
    found = term.args.get("nulls_first")
    return not term.args.get("desc") if found is None else bool(found)


def _direction(term: exp.Ordered) -> str:
    """The direction of a key as the end of its name."""
    return f"{'d' if term.args.get('desc') else 'a'}{'f' if _nulls_first(term) else 'l'}"


def _comparison(terms: list[exp.Ordered]) -> exp.Lambda:
    """Which of two rows stands first, by keys of different directions, and then by the value."""
    directions = [(f"k{position}{_direction(term)}", term) for position, term in enumerate(terms)]
    last = exp.Ordered(desc=False, nulls_first=True)
    made: exp.Expr = number(0)
    for name, term in reversed([*directions, ("v", last)]):
        one, other = (exp.Dot(this=exp.to_identifier(row), expression=exp.to_identifier(name)) for row in ("l", "r"))
        first, second = exp.Neg(this=number(1)), number(1)
        front, behind = (second, first) if term.args.get("desc") else (first, second)
        null, value = (first, second) if _nulls_first(term) else (second, first)
        made = exp.Case(
            ifs=[
                exp.If(this=exp.NullSafeEQ(this=one.copy(), expression=other.copy()), true=made),
                exp.If(this=exp.Is(this=one.copy(), expression=exp.Null()), true=null.copy()),
                exp.If(this=exp.Is(this=other.copy(), expression=exp.Null()), true=value.copy()),
                exp.If(this=exp.LT(this=one.copy(), expression=other.copy()), true=front.copy()),
            ],
            default=behind.copy(),
        )
    return exp.Lambda(this=made, expressions=[exp.to_identifier("l"), exp.to_identifier("r")])


def _sum_or_zero(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("coalesce", call("sum", *args), number(0))


def _approx_median(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("approx_percentile", args[0], exp.Literal.number("0.5"))


def _count_distinct(args: Arguments, _dialect: str | None) -> exp.Expr:
    if isinstance(args[0], exp.Distinct | exp.Star):
        raise invalid("count_distinct", "it takes values as they are", args[0], "write COUNT_DISTINCT(x)")
    return call("count", exp.Distinct(expressions=list(args)))


def _jsonb_agg(args: Arguments, dialect: str | None) -> exp.Expr:
    nulls = [keep_nulls()] if has_whole_row(args) else []
    return call("to_json", _array_agg(args, dialect), *nulls)


def _group_concat(args: Arguments, dialect: str | None) -> exp.Expr:
    """GROUP_CONCAT(x [ORDER BY y] [SEPARATOR s]): LISTAGG with a comma where no separator is given."""
    given = sum(len(arg.expressions) if isinstance(arg, exp.Distinct) else 1 for arg in args)
    return _listagg(args if given > 1 else [*args, text(",")], dialect)


def _map_agg(args: Arguments, _dialect: str | None) -> exp.Expr:
    """A map of all keys but NULL, in their order; of several values of a key the largest, as Spark takes no key twice.

    The array of all pairs, sorted, is named s, so that each pair can be compared with the one behind it.
    """
    key, value = args
    if isinstance(value, exp.Order) or isinstance(key, exp.Distinct):
        hint = "of several values of a key the largest counts"
        raise invalid("map_agg", "ORDER BY and DISTINCT change nothing in a map", args[0], hint)
    pair = call("named_struct", text("k"), key, text("v"), value)
    pairs = call("collect_set", call("if", exp.Is(this=key.copy(), expression=exp.Null()), exp.Null(), pair))
    every, one, place = (exp.to_identifier(name) for name in ("s", "e", "i"))
    behind = exp.Add(this=place.copy(), expression=number(1))
    last = exp.EQ(this=behind, expression=call("size", every.copy()))
    field = exp.to_identifier("k")
    other = exp.Dot(this=call("get", every.copy(), behind.copy()), expression=field)
    differs = exp.Not(
        this=exp.Paren(this=exp.NullSafeEQ(this=other, expression=exp.Dot(this=one.copy(), expression=field.copy())))
    )
    keeps = exp.Lambda(this=exp.Or(this=last, expression=differs), expressions=[one, place])
    made = call("map_from_entries", call("filter", every.copy(), keeps))
    let = exp.Lambda(this=made, expressions=[every])
    return call("element_at", call("transform", call("array", call("sort_array", pairs)), let), number(1))


def _jsonb_object_agg(args: Arguments, dialect: str | None) -> exp.Expr:
    return call("to_json", _map_agg(args, dialect))


_LISTED = "listagg; an ORDER BY inside goes behind it"

AGGREGATES: dict[str, ForeignFunction] = {
    **foreign(
        "1..2 characters listagg+~",
        _listagg,
        "Flink",
        f"{_LISTED}; separator ',' for dialect 'flink'",
        kind="aggregate",
    ),
    **foreign("1..2 characters string_agg+~", _listagg, "PostgreSQL, Arroyo", _LISTED, kind="aggregate"),
    **foreign(
        "1..2 characters group_concat+~",
        _group_concat,
        "MySQL",
        "listagg with ',' where no SEPARATOR is given",
        kind="aggregate",
    ),
    **foreign(
        "2 map map_agg+",
        _map_agg,
        "RisingWave, Materialize",
        "a map by key; of several values of a key the largest",
        kind="aggregate",
    ),
    **foreign(
        "1 array array_agg+~",
        _array_agg,
        "PostgreSQL, Arroyo",
        "collect_list, without NULLs, sorted by an ORDER BY inside",
        kind="aggregate",
    ),
    **foreign("1 array collect+~", renamed("collect_list"), "Flink", "collect_list", kind="aggregate"),
    **foreign("1 sum sum0+", _sum_or_zero, "RisingWave", "coalesce(sum(x), 0)", kind="aggregate"),
    **foreign(
        "1 BIGINT approx_distinct",
        renamed("approx_count_distinct"),
        "Arroyo",
        "approx_count_distinct",
        kind="aggregate",
    ),
    **foreign(
        "2..3 arg0 approx_percentile_cont",
        renamed("approx_percentile"),
        "Arroyo",
        "approx_percentile",
        kind="aggregate",
    ),
    **foreign("1 BIGINT count_distinct", _count_distinct, "ksqlDB", "count(DISTINCT x)", kind="aggregate"),
    **foreign("1 arg0 approx_median", _approx_median, "Arroyo", "approx_percentile(x, 0.5)", kind="aggregate"),
    **foreign("1 DOUBLE var+", renamed("var_samp"), "Arroyo", "var_samp", kind="aggregate"),
    **foreign("2 DOUBLE covar", renamed("covar_samp"), "Arroyo", "covar_samp", kind="aggregate"),
    **foreign("2 arg0 arg_max+", renamed("max_by"), "Arroyo", "max_by", kind="aggregate"),
    **foreign("2 arg0 arg_min+", renamed("min_by"), "Arroyo", "min_by", kind="aggregate"),
    **foreign(
        "1 STRING jsonb_agg~ json_agg~ json_arrayagg~",
        _jsonb_agg,
        "PostgreSQL, Flink",
        "to_json(collect_list(x))",
        kind="aggregate",
    ),
    **foreign(
        "2 STRING jsonb_object_agg json_object_agg json_objectagg",
        _jsonb_object_agg,
        "PostgreSQL, Flink",
        "to_json of a map; of several values of a key the largest",
        kind="aggregate",
    ),
}
