"""Aggregates of values that are kept one by one: what the view store makes of the list of them.

No user can write these names. The list has no NULLs in it, as none of these aggregates counts any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.plan.store_terms import DiffersError, Term
from penstock.types import BIGINT, DOUBLE

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.plan.store_expressions import StoreExpressions

HOW_MANY: Final = "__how_many"  # of values of which each is there once
PERCENTILE: Final = "__percentile"
SORTED_LIST: Final = "__sorted_list"  # these five are aggregates, see finish_lists
LIST_OF_ROWS: Final = "__list_of_rows"  # the same with NULLs
MAP_OF: Final = "__map_of"
SORTED_TEXT: Final = "__sorted_text"
AT_PLACE: Final = "__at_place"
_SPREADS: Final = {
    "stddev": "stddev_samp", "std": "stddev_samp", "stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop",
    "variance": "var_samp", "var_samp": "var_samp", "var_pop": "var_pop",
}  # fmt: skip
SPREADS: Final = {name: f"__{kind}" for name, kind in _SPREADS.items()}


def _how_many(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    return Term(f"CAST(len({writer.term(arguments[0]).sql}) AS BIGINT)", BIGINT)


def _percentile(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
    """Between the two values next to the place that is asked for, weighed as Spark does, to the last digit."""
    values, share = (writer.term(argument) for argument in arguments)
    if share.constant is None:
        raise DiffersError
    return percentile_of(f"list_sort({values.sql})", share.constant)


def percentile_of(values: str, share: str) -> Term:
    """The same of a text that gives them in order."""
    place = f"(CAST('{share}' AS DOUBLE) * (len(s) - 1))"
    low, high = f"floor({place})", f"ceil({place})"
    one, other = (f"CAST(s[CAST({at} AS BIGINT) + 1] AS DOUBLE)" for at in (low, high))
    between = f"({high} - {place}) * {one} + ({place} - {low}) * {other}"
    chosen = f"CASE WHEN len(s) = 0 THEN NULL WHEN {one} = {other} THEN {one} ELSE {between} END"
    return Term(f"list_transform([{values}], lambda s: {chosen})[1]", DOUBLE)


def value_at(values: str, share: str) -> str:
    """The first value in order that this share of all is not behind."""
    place = f"greatest(CAST(ceil(len(s) * CAST('{share}' AS DOUBLE)) AS BIGINT), 1)"
    return f"list_transform([{values}], lambda s: s[{place}])[1]"


def moment_of(name: str, values: str) -> Term:
    """SKEWNESS or KURTOSIS of all values of a text that lists them, as Spark defines them: NULL where none differs.
    They are summed in their order, so that no batch changes a digit."""

    def powers(exponent: int) -> str:
        return f"list_sum(list_transform(s, lambda x: power(x - m, {exponent})))"

    skewness = f"sqrt(len(s)) * {powers(3)} / power({powers(2)}, 1.5)"
    kurtosis = f"len(s) * {powers(4)} / power({powers(2)}, 2) - 3"
    found = f"list_transform([list_avg(s)], lambda m: {skewness if name == 'skewness' else kurtosis})[1]"
    there = f"list_sort(list_filter({values}, lambda x: x IS NOT NULL))"
    return Term(f"list_transform([{there}], lambda s: CASE WHEN s[1] <> s[len(s)] THEN {found} END)[1]", DOUBLE)


def _spread(name: str) -> Callable[[StoreExpressions, list[exp.Expr]], Term]:
    def write(writer: StoreExpressions, arguments: list[exp.Expr]) -> Term:
        values = f"list_transform({writer.term(arguments[0]).sql}, lambda x: CAST(x AS DOUBLE))"
        return Term(f"list_aggregate({values}, '{name}')", DOUBLE)

    return write


LIST_CALLS: Final = {HOW_MANY: _how_many, PERCENTILE: _percentile} | {
    f"__{kind}": _spread(kind) for kind in set(_SPREADS.values())
}
