"""Aggregates for the view store, in the types that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.store_terms import DiffersError, Term, as_type, is_whole
from penstock.types import BIGINT, BOOLEAN, DOUBLE, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_expressions import StoreExpressions

AGGREGATES: Final = frozenset({"count", "count_if", "sum", "avg", "mean", "min", "max", "bool_and", "every", "bool_or",
                           "some", "any"})  # fmt: skip
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
    if len(arguments) != 1:
        raise DiffersError
    argument = arguments[0]
    if name == "count" and isinstance(argument, exp.Star):
        return Term(f"count(*){suffix}", BIGINT)
    if name == "count_if":
        return Term(f"count(CASE WHEN {write.condition(argument)} THEN 1 END){suffix}", BIGINT)
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1 or name in ("sum", "avg", "mean"):
            raise DiffersError
        argument = argument.expressions[0]
    term = write.term(argument)
    if name == "count":
        if distinct and term.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"count({'DISTINCT ' if distinct else ''}{term.sql}){suffix}", BIGINT)
    return _of_values(name, term, suffix)


def _of_values(name: str, term: Term, suffix: str) -> Term:
    if name == "sum":
        return _sum(term, suffix)
    if name in ("avg", "mean"):
        if not (is_whole(term.type) or term.known.name in ("DOUBLE", "FLOAT")):
            raise DiffersError
        value = as_type(term, DOUBLE).sql
        return Term(f"(sum({value}){suffix} / count({value}){suffix})", DOUBLE)
    if name in ("min", "max"):
        if term.known.name not in _ORDERED:
            raise DiffersError
        return Term(f"{name}({term.sql}){suffix}", term.known)
    if term.type != BOOLEAN:
        raise DiffersError
    return Term(f"{'bool_and' if name in ('bool_and', 'every') else 'bool_or'}({term.sql}){suffix}", BOOLEAN)


def _sum(term: Term, suffix: str) -> Term:
    known = term.known
    if is_whole(known):
        return as_type(Term(f"sum({term.sql}){suffix}", None), BIGINT)
    if known.name in ("DOUBLE", "FLOAT"):
        return as_type(Term(f"sum({as_type(term, DOUBLE).sql}){suffix}", None), DOUBLE)
    if known.name == "DECIMAL":
        precision, scale = known.parameters
        return as_type(Term(f"sum({term.sql}){suffix}", None), SqlType("DECIMAL", (min(38, precision + 10), scale)))
    raise DiffersError
