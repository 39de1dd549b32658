"""Distinct aggregates in the shape that Spark keeps on a stream.

    COUNT(DISTINCT user_id)  ->  CAST(SIZE(COLLECT_SET(user_id)) AS BIGINT)
    SUM(DISTINCT price)      ->  AGGREGATE(COLLECT_SET(price), CAST(NULL AS BIGINT), (sum, x) -> …)

Spark refuses DISTINCT in streaming aggregates; the set of the values of one window and group gives the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.return_types import apply_rule
from penstock.errors import NotYetError, ResolutionError
from penstock.plan.trees import aggregate_text, call, column, identifier, inside_out, number, type_of
from penstock.sql.spans import span_of
from penstock.types import SqlType


def distinct_aggregates(tree: exp.Expr) -> exp.Expr:
    """The bound tree without DISTINCT inside aggregates."""
    for node in inside_out(tree, exp.Anonymous):
        distinct = node.expressions[0] if node.expressions else None
        if not isinstance(distinct, exp.Distinct):
            continue
        replacement = _rewrite(node, distinct)
        replacement.meta.update(node.meta)
        around = node.parent
        replaced: exp.Expr = around if isinstance(around, exp.WithinGroup) else node
        parent = replaced.parent
        if isinstance(parent, exp.Filter):
            replacement = _filtered(replacement, parent)
            replaced = parent
        if replaced is tree:
            tree = replacement
        else:
            replaced.replace(replacement)
    return tree


def _rewrite(node: exp.Anonymous, distinct: exp.Distinct) -> exp.Expr:
    name = node.name.lower()
    _check_equality(node, distinct)
    if name == "count":
        return _count(call("collect_set", _value(distinct)))
    if name in ("min", "max", "collect_set", "bool_and", "bool_or", "any", "every", "some"):
        return call(name, *[inner.copy() for inner in distinct.expressions])  # distinct changes nothing
    if name in ("collect_list", "array_agg"):
        return call("collect_set", *[inner.copy() for inner in distinct.expressions])
    if name == "listagg":
        return _joined(node, distinct)
    if name in ("sum", "avg", "mean") and len(distinct.expressions) == 1:
        given = type_of(distinct.expressions[0])
        total = apply_rule("sum", [given]) if given is not None and given.numeric else None
        if given is not None and total is not None:
            values = call("collect_set", distinct.expressions[0].copy())
            mean = apply_rule("avg", [given])
            return _sum(values, total) if name == "sum" or mean is None else _mean(values, total, mean)
    raise NotYetError(
        "UPDATING_DISTINCT",
        f"{aggregate_text(node) or name} is not there yet on a stream",
        hint="COUNT, SUM and AVG take DISTINCT in a window that closes, and others where the view store answers",
        span=span_of(node),
    )


def _check_equality(node: exp.Anonymous, distinct: exp.Distinct) -> None:
    """Raise UPDATING_DISTINCT for values of which Spark makes no set, as it does not say which of them are equal."""
    for value in distinct.expressions:
        given = type_of(value)
        if given is not None and not given.has_equality:
            raise NotYetError(
                "UPDATING_DISTINCT",
                f"{aggregate_text(node) or node.name}, over values of type {given}, is not there yet on a stream",
                hint="count texts of them, as TO_JSON makes them, or the values inside",
                span=span_of(node),
            )


def _count(values: exp.Expr) -> exp.Expr:
    # the size of an array is INT, and a count is BIGINT
    return exp.Cast(this=call("size", values), to=exp.DataType.build("BIGINT"))


def _sum(values: exp.Expr, kind: SqlType) -> exp.Expr:
    """The sum of a set; NULL where it is empty."""
    start, zero = _cast(exp.Null(), kind), _cast(number(0), kind)
    total = exp.Add(this=call("coalesce", column("__sum"), zero), expression=_cast(column("__x"), kind))
    add = exp.Lambda(this=_cast(exp.Paren(this=total), kind), expressions=[identifier("__sum"), identifier("__x")])
    return call("aggregate", values, start, add)


def _mean(values: exp.Expr, total: SqlType, kind: SqlType) -> exp.Expr:
    """The mean of a set; NULL where it is empty, as its sum is."""
    size = call("nullif", call("size", values.copy()), number(0))
    count = _cast(size, SqlType("DECIMAL", (20, 0)) if total.name == "DECIMAL" else total)
    return _cast(exp.Paren(this=exp.Div(this=_sum(values, total), expression=count)), kind)


def _joined(node: exp.Anonymous, distinct: exp.Distinct) -> exp.Expr:
    """The texts of a set in one, NULL where it is empty; Spark's own come in any order, these in that of the texts."""
    value, *rest = [*distinct.expressions, *node.expressions[1:]]
    texts = call("collect_set", value.copy())
    separator = rest[0].copy() if rest else exp.Literal.string("")
    some = exp.GT(this=call("size", texts), expression=number(0))
    terms = _ordered(node)
    check_order(node, value, terms)
    down = bool(terms) and bool(terms[0].args.get("desc"))
    ordered = call("sort_array", texts.copy(), exp.false()) if down else call("array_sort", texts.copy())
    return call("if", some, call("array_join", ordered, separator), exp.Null())


def check_order(node: exp.Anonymous, value: exp.Expr, terms: Sequence[exp.Expr]) -> None:
    """Raise INVALID_ARGUMENT for texts that differ in an order by something else, of which each may have several."""
    other = next((term for term in terms[:1] if term.this != value), None)
    if other is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{aggregate_text(node) or node.name} goes by its value, and its order by another",
            hint="order by the value itself, or leave DISTINCT out",
            span=span_of(other) or span_of(node),
        )


def _ordered(node: exp.Anonymous) -> list[exp.Expr]:
    """The terms of WITHIN GROUP behind a call."""
    around = node.parent
    return list(around.expression.expressions) if isinstance(around, exp.WithinGroup) else []


def _cast(value: exp.Expr, kind: SqlType) -> exp.Cast:
    return exp.Cast(this=value, to=exp.DataType.build(kind.spark(), dialect="spark"))


def _value(distinct: exp.Distinct) -> exp.Expr:
    values: list[exp.Expr] = [inner.copy() for inner in distinct.expressions]
    if len(values) == 1:
        return values[0]
    missing: exp.Expr = exp.Is(this=values[0].copy(), expression=exp.Null())
    for value in values[1:]:
        missing = exp.Or(this=missing, expression=exp.Is(this=value.copy(), expression=exp.Null()))
    # COUNT(DISTINCT a, b) counts no pair with a NULL in it, and collect_set leaves NULLs out
    return call("if", missing, exp.Null(), call("struct", *values))


def _filtered(replacement: exp.Expr, parent: exp.Filter) -> exp.Expr:
    """The condition belongs to what is aggregated: to the sets, where something is made of them."""
    sets = [node for node in replacement.find_all(exp.Anonymous) if node.name == "collect_set"]
    if not sets or replacement is sets[0]:
        return exp.Filter(this=replacement, expression=parent.expression.copy())
    for found in sets:
        found.replace(exp.Filter(this=found.copy(), expression=parent.expression.copy()))
    return replacement
