"""Aggregates of other systems, written for Spark.

A rewrite may wrap the aggregate, as in `coalesce(sum(x), 0)`; FILTER and OVER then belong to the aggregate inside,
which `penstock.catalog.functions.aggregate_calls` finds.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.foreign_call import Arguments, ForeignFunction, call, foreign, invalid, number, renamed, text


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
    """ARRAY_AGG(x ORDER BY y, …): the rows are collected with their keys, sorted, and the keys dropped."""
    plain, terms = _ordering(args)
    if not terms:
        return call("collect_list", *plain)
    descending = {bool(term.args.get("desc")) for term in terms}
    if isinstance(plain[0], exp.Distinct) or len(descending) > 1:
        raise invalid(
            "array_agg",
            "DISTINCT, or ASC beside DESC, cannot be ordered",
            args[0],
            "order by one direction, without DISTINCT",
        )
    fields: list[exp.Expr] = []
    for position, term in enumerate(terms):
        fields += [text(f"k{position}"), term.this]
    rows = call("collect_list", call("named_struct", *fields, text("v"), plain[0]))
    direction = [exp.false()] if descending == {True} else []
    row = exp.to_identifier("r")
    value = exp.Lambda(this=exp.Dot(this=row, expression=exp.to_identifier("v")), expressions=[row.copy()])
    return call("transform", call("sort_array", rows, *direction), value)


def _sum_or_zero(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("coalesce", call("sum", *args), number(0))


def _approx_median(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("approx_percentile", args[0], exp.Literal.number("0.5"))


def _jsonb_agg(args: Arguments, dialect: str | None) -> exp.Expr:
    return call("to_json", _array_agg(args, dialect))


def _jsonb_object_agg(args: Arguments, _dialect: str | None) -> exp.Expr:
    pairs = call("collect_list", call("struct", *args))
    return call("to_json", call("map_from_entries", pairs))


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
        "1 array array_agg+~",
        _array_agg,
        "PostgreSQL, Arroyo",
        "collect_list, sorted by an ORDER BY inside",
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
    **foreign("1 arg0 approx_median", _approx_median, "Arroyo", "approx_percentile(x, 0.5)", kind="aggregate"),
    **foreign("1 DOUBLE var+", renamed("var_samp"), "Arroyo", "var_samp", kind="aggregate"),
    **foreign("2 DOUBLE covar", renamed("covar_samp"), "Arroyo", "covar_samp", kind="aggregate"),
    **foreign("2 arg0 arg_max+", renamed("max_by"), "Arroyo", "max_by", kind="aggregate"),
    **foreign("2 arg0 arg_min+", renamed("min_by"), "Arroyo", "min_by", kind="aggregate"),
    **foreign("1 STRING jsonb_agg~ json_agg~", _jsonb_agg, "PostgreSQL", "to_json(collect_list(x))", kind="aggregate"),
    **foreign(
        "2 STRING jsonb_object_agg~ json_object_agg~",
        _jsonb_object_agg,
        "PostgreSQL",
        "to_json of a map",
        kind="aggregate",
    ),
}
