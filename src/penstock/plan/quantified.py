"""Comparisons with every row of a subquery: (a, b) IN (SELECT …), x > ALL (SELECT …), x = ANY (SELECT …).

Neither Spark nor the view store has all of them, with the NULLs of SQL, so they become EXISTS over the subquery:

    WHERE (a, b) IN (SELECT c, d FROM t)   ->  WHERE EXISTS (SELECT 1 FROM (SELECT c, d FROM t) WHERE a = c AND b = d)
    WHERE x > ALL (SELECT c FROM t)        ->  WHERE NOT EXISTS (… WHERE NOT COALESCE(x > c, FALSE))

EXISTS is never unknown, and these are, where a NULL is compared. Among the conditions of WHERE and HAVING unknown is
the same as no, and one EXISTS is enough, also below one NOT, where unknown must be told from no. Anywhere else two
tell:

    SELECT x > ALL (SELECT c FROM t)  ->  SELECT CASE WHEN EXISTS (… WHERE NOT x > c) THEN FALSE
                                                      WHEN EXISTS (… WHERE (x > c) IS NULL) THEN NULL ELSE TRUE END

Of an array, x > ALL (xs) is a function of Spark's that knows unknown by itself.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.check_types import check_types
from penstock.plan.spark_blocks import outputs
from penstock.plan.trees import (
    aliased,
    call,
    column,
    has_aggregate,
    identifier,
    number,
    select,
    subquery,
    type_of,
    typed,
)
from penstock.sql.spans import span_of
from penstock.types import BOOLEAN

if TYPE_CHECKING:
    from penstock.plan.expressions import ExpressionBinder

_EACH: Final = "__each"
_ELEMENT: Final = "__x"
_STRICTLY: Final[dict[type[exp.Expr], type[exp.Expr]]] = {exp.LTE: exp.LT, exp.GTE: exp.GT}
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def is_quantified(node: exp.Expr) -> bool:
    """Whether a node compares with all rows of a subquery in a way that only this module writes."""
    if isinstance(node, exp.In):
        return isinstance(node.this, exp.Tuple) and node.args.get("query") is not None
    other = node.expression if isinstance(node, _COMPARISONS) else None
    return isinstance(other, exp.Any | exp.All) and isinstance(other.this, exp.Subquery)


def is_of_array(node: exp.Expr) -> bool:
    """Whether a node compares with all elements of an array: x = ANY (xs)."""
    other = node.expression if isinstance(node, _COMPARISONS) else None
    return isinstance(other, exp.Any | exp.All) and not isinstance(other.this, exp.Query)


def bind_of_array(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """The bound call that looks at each element."""
    quantifier = node.expression
    value, array = binder.bind(node.this), binder.bind(quantifier.this.unnest())
    container = type_of(array)
    if container is not None and container.name != "ARRAY":
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"{'ALL' if isinstance(quantifier, exp.All) else 'ANY'} needs an array or a subquery, not {container}",
            span=span_of(quantifier),
        )
    element = typed(column(_ELEMENT), container.elements[0] if container is not None else None)
    check_types(type(node)(this=value.copy(), expression=element), node)
    compared = type(node)(this=value, expression=identifier(_ELEMENT))
    looked = exp.Lambda(this=compared, expressions=[identifier(_ELEMENT)])
    return typed(call("forall" if isinstance(quantifier, exp.All) else "exists", array, looked), BOOLEAN)


def bind_quantified(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """The bound EXISTS, or the plain IN that it is."""
    if isinstance(node, exp.In):
        return _exists(binder, node, list(node.this.expressions), node.args["query"], exp.EQ, every=False)
    quantifier = node.expression
    every = isinstance(quantifier, exp.All)
    given = node.this.unnest()
    if isinstance(given, exp.Tuple):
        values = list(given.expressions)
    elif isinstance(node, exp.NEQ if every else exp.EQ):
        listed = binder.bind(exp.In(this=given.copy(), query=quantifier.this.copy()))
        return exp.Not(this=listed) if every else listed
    else:
        values = [given]
    return _exists(binder, node, values, quantifier.this, type(node), every=every)


def _exists(
    binder: ExpressionBinder,
    node: exp.Expr,
    given: list[exp.Expr],
    query: exp.Expr,
    comparison: type[exp.Expr],
    *,
    every: bool,
) -> exp.Expr:
    values = [binder.bind(value) for value in given]
    if any(has_aggregate(value) for value in values):
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "an aggregate that is compared with all rows of a subquery is not there yet",
            hint="aggregate in a subquery, and compare its column in the WHERE of the query around it",
            span=span_of(node),
        )
    inner = binder.subquery(query, binder.scope).this
    names = outputs(inner)
    if len(names) != len(values):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{len(values)} values are compared with the {len(names)} columns of a subquery",
            hint="the subquery must have a column for each of them",
            span=span_of(node),
        )
    condition = _compared(values, [column(name, _EACH) for name in names], comparison)
    place = _place(node)
    if place is None:
        return _value(inner, condition, every=every)
    found = _found(inner, _looked_for(condition, place, every=every))
    return typed(exp.Not(this=found) if every else found, BOOLEAN)


def _compared(left: list[exp.Expr], right: list[exp.Expr], comparison: type[exp.Expr]) -> exp.Expr:
    """Rows of values: equal where all are, and else in the order of the first that differ."""
    pairs = list(zip(left, right, strict=True))
    if comparison in (exp.EQ, exp.NEQ):
        each: list[exp.Expr] = [comparison(this=one.copy(), expression=other.copy()) for one, other in pairs]
        joined = exp.And if comparison is exp.EQ else exp.Or
        return reduce(lambda one, other: joined(this=one, expression=other), each[1:], each[0])
    (one, other), *rest = pairs
    if not rest:
        return comparison(this=one, expression=other)
    strictly = _STRICTLY.get(comparison, comparison)
    first = strictly(this=one, expression=other)
    same = exp.EQ(this=one.copy(), expression=other.copy())
    later = exp.Paren(this=_compared(left[1:], right[1:], comparison))
    return exp.Or(this=first, expression=exp.Paren(this=exp.And(this=same, expression=later)))


def _value(inner: exp.Query, condition: exp.Expr, *, every: bool) -> exp.Expr:
    """The comparison as a value, which may be unknown."""
    decides = exp.Not(this=exp.Paren(this=condition)) if every else condition
    unknown = exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.Null())
    ifs = [
        exp.If(this=_found(inner, decides), true=exp.false() if every else exp.true()),
        exp.If(this=_found(inner.copy(), unknown), true=exp.Null()),
    ]
    return typed(exp.Case(ifs=ifs, default=exp.true() if every else exp.false()), BOOLEAN)


def _found(inner: exp.Query, condition: exp.Expr) -> exp.Expr:
    return exp.Exists(this=exp.Subquery(this=_rows(inner, condition)))


def _looked_for(condition: exp.Expr, place: Literal["holds", "fails"], *, every: bool) -> exp.Expr:
    """The rows that decide: those that meet it, or, where all must, those that do not; unknown counts against."""
    if place == "holds" and not every:
        return condition
    unknown = exp.true() if (place == "fails") else exp.false()
    known = call("coalesce", condition, unknown)
    return exp.Not(this=known) if every else known


def _rows(query: exp.Query, condition: exp.Expr) -> exp.Select:
    return select([aliased(number(1), "one")], subquery(query, _EACH), where=exp.Where(this=condition))


def _place(node: exp.Expr) -> Literal["holds", "fails"] | None:
    """Whether the condition must hold or must fail for a row to stay; None where it is any other value."""
    place: Literal["holds", "fails"] = "holds"
    around, beside = node.parent, False
    while isinstance(around, exp.And | exp.Paren | exp.Not):
        beside = beside or isinstance(around, exp.And)
        if isinstance(around, exp.Not):
            if place == "fails" or beside:
                return None  # a negated AND needs one of several to fail
            place = "fails"
        around = around.parent
    return place if isinstance(around, exp.Where | exp.Having) else None
