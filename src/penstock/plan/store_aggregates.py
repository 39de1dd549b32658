"""Aggregates for the view store, in the types that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_terms import DiffersError, Term, as_type, is_whole
from penstock.types import BIGINT, BOOLEAN, DOUBLE, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions

_SPREADS: Final = {"stddev": "stddev_samp", "std": "stddev_samp", "stddev_samp": "stddev_samp",
                   "stddev_pop": "stddev_pop", "variance": "var_samp", "var_samp": "var_samp",
                   "var_pop": "var_pop"}  # fmt: skip
_CHOICES: Final = {"max_by": "arg_max_null", "min_by": "arg_min_null"}
AGGREGATES: Final = frozenset({"count", "count_if", "sum", "avg", "mean", "min", "max", "bool_and", "every", "bool_or",
                               "some", "any", *_SPREADS, *_CHOICES})  # fmt: skip
_ORDERED: Final = frozenset({"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL",
                             "DATE", "TIMESTAMP"})  # fmt: skip


def aggregate_term(write: StoreExpressions, node: exp.Expr) -> Term | None:
    """The term of an aggregate, None for any other node."""
    condition = ""
    call = node
    if isinstance(node, exp.Filter):
        call = node.this
        condition = f" FILTER (WHERE {write.condition(node.expression.this)})"
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in AGGREGATES:
        if condition:
            raise DiffersError
        return None
    return aggregate_call(write, call.name.lower(), list(call.expressions), condition)


def aggregate_call(write: StoreExpressions, name: str, arguments: list[exp.Expr], suffix: str) -> Term:
    """`suffix` is what stands behind every call: FILTER, OVER."""
    if name in _CHOICES and len(arguments) == 2:
        return _choice(name, write.term(arguments[0]), write.term(arguments[1]), suffix)
    if len(arguments) != 1 or name in _CHOICES:
        raise DiffersError
    argument = arguments[0]
    if name == "count" and isinstance(argument, exp.Star):
        return Term(f"count(*){suffix}", BIGINT)
    if name == "count_if":
        return Term(f"count(CASE WHEN {write.condition(argument)} THEN 1 END){suffix}", BIGINT)
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1 or name in _SPREADS:
            raise DiffersError
        argument = argument.expressions[0]
    term = write.term(argument)
    if name == "count":
        if distinct and term.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"count({'DISTINCT ' if distinct else ''}{term.sql}){suffix}", BIGINT)
    return _of_values(name, term, "DISTINCT " if distinct else "", suffix)


def _of_values(name: str, term: Term, distinct: str, suffix: str) -> Term:
    if name == "sum":
        return _sum(term, distinct, suffix)
    if name in ("avg", "mean"):
        if not (is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT")):
            raise DiffersError
        value = as_type(term, DOUBLE).sql
        return Term(f"(sum({distinct}{value}){suffix} / count({distinct}{value}){suffix})", DOUBLE)
    if name in _SPREADS:
        if not (is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT", "DECIMAL")):
            raise DiffersError
        return Term(f"{_SPREADS[name]}({as_type(term, DOUBLE).sql}){suffix}", DOUBLE)
    if name in ("min", "max"):
        if term.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"{name}({term.sql}){suffix}", term.known)
    if term.type != BOOLEAN:
        raise DiffersError
    return Term(f"{'bool_and' if name in ('bool_and', 'every') else 'bool_or'}({term.sql}){suffix}", BOOLEAN)


def _choice(name: str, value: Term, order: Term, suffix: str) -> Term:
    """The value of the row that is first or last by another column. Of rows that are alike by it Spark takes any; here
    it is always the same one, as an answer that is computed anew must not change by itself."""
    if order.known.name not in _ORDERED:
        raise DiffersError
    place = f"{{'a': {order.sql}, 'b': {value.sql}}}" if value.known.name in _ORDERED else order.sql
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
