"""Comparisons with every row of a subquery: (a, b) IN (SELECT …), x > ALL (SELECT …), x = ANY (SELECT …).

Neither Spark nor the view store has all of them, with the NULLs of SQL, so they become EXISTS over the subquery:

    WHERE (a, b) IN (SELECT c, d FROM t)   ->  WHERE EXISTS (SELECT 1 FROM (SELECT c, d FROM t) WHERE a = c AND b = d)
    WHERE x > ALL (SELECT c FROM t)        ->  WHERE NOT EXISTS (… WHERE NOT COALESCE(x > c, FALSE))

EXISTS is never unknown, and these are, where a NULL is compared. So they stand where unknown is the same as no: among
the conditions of WHERE and HAVING, and below one NOT there, where it must be told from no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.spark_blocks import outputs
from penstock.plan.trees import aliased, call, column, has_aggregate, number, select, subquery, typed
from penstock.sql.spans import span_of
from penstock.types import BOOLEAN

if TYPE_CHECKING:
    from penstock.plan.expressions import ExpressionBinder

_EACH: Final = "__each"
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def is_quantified(node: exp.Expr) -> bool:
    """Whether a node compares with all rows of a subquery in a way that only this module writes."""
    if isinstance(node, exp.In):
        return isinstance(node.this, exp.Tuple) and node.args.get("query") is not None
    other = node.expression if isinstance(node, _COMPARISONS) else None
    return isinstance(other, exp.Any | exp.All) and isinstance(other.this, exp.Subquery)


def bind_quantified(binder: ExpressionBinder, node: exp.Expr) -> exp.Expr:
    """The bound EXISTS, or the plain IN that it is."""
    if isinstance(node, exp.In):
        return _exists(binder, node, list(node.this.expressions), node.args["query"], exp.EQ, every=False)
    quantifier = node.expression
    every = isinstance(quantifier, exp.All)
    if isinstance(node.this, exp.Tuple):
        given = list(node.this.expressions)
    elif isinstance(node, exp.NEQ if every else exp.EQ):
        listed = binder.bind(exp.In(this=node.this.copy(), query=quantifier.this.copy()))
        return exp.Not(this=listed) if every else listed
    else:
        given = [node.this]
    return _exists(binder, node, given, quantifier.this, type(node), every=every)


def _exists(
    binder: ExpressionBinder,
    node: exp.Expr,
    given: list[exp.Expr],
    query: exp.Expr,
    comparison: type[exp.Expr],
    *,
    every: bool,
) -> exp.Expr:
    place = _place(node)
    if place is None:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "a comparison with all rows of a subquery that is no condition of WHERE or HAVING is not there yet",
            hint="make it one of the conditions that are joined by AND, or write it with EXISTS",
            span=span_of(node),
        )
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
    if len(values) > 1 and comparison is not exp.EQ:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "rows of several values compared by their order with a subquery are not there yet",
            hint="compare them one by one",
            span=span_of(node),
        )
    condition: exp.Expr | None = None
    for value, name in zip(values, names, strict=True):
        one = comparison(this=value, expression=column(name, _EACH))
        condition = one if condition is None else exp.And(this=condition, expression=one)
    assert condition is not None
    found = exp.Exists(this=exp.Subquery(this=_rows(inner, _looked_for(condition, place, every=every))))
    return typed(exp.Not(this=found) if every else found, BOOLEAN)


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
