"""Aggregates of values in an order, in the form that the view store reads.

Spark has ARRAY_AGG(x ORDER BY y) as rows that are collected, sorted and taken apart again, and the order of LISTAGG and
PERCENTILE_CONT behind the call. Here each is one call: of the value, of what else it takes, and of its order.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.rules.distinct_aggregates import check_order
from penstock.plan.store_lists import AT_PLACE, LIST_OF_ROWS, MAP_OF, SORTED_LIST, SORTED_TEXT
from penstock.plan.trees import call, stand_in, type_of
from penstock.sql.spans import span_of
from penstock.types import STRING

_PERCENTILES: Final = frozenset({"percentile_cont", "percentile_disc"})
_MIDDLE: Final = "0.5"


def settle_lists(tree: exp.Expr) -> None:
    """Rewrites such aggregates of a tree, in place."""
    for node in list(tree.find_all(exp.WithinGroup, exp.Anonymous)):
        made = _call(node) if isinstance(node, exp.Anonymous) else None
        if isinstance(node, exp.WithinGroup):
            made = _within_group(node)
        if made is not None:
            made.meta.update(node.meta)
            named = _within(made)
            stand_in(named, _written(named) or node)
            node.replace(made)


def _written(made: exp.Expr) -> exp.Expr | None:
    """What Spark has no short words for, as the user wrote it."""
    if made.name == MAP_OF:
        return call("map_agg", *(each.copy() for each in made.expressions))
    if made.name not in (SORTED_LIST, LIST_OF_ROWS):
        return None
    value, *terms = (each.copy() for each in made.expressions)
    return call("array_agg", exp.Order(this=value, expressions=terms))


def _within_group(node: exp.WithinGroup) -> exp.Expr | None:
    inner, terms = node.this, node.expression.expressions
    if not isinstance(inner, exp.Anonymous):
        return None
    name, arguments = inner.name.lower(), list(inner.expressions)
    if name == "listagg":
        return _sorted_text(inner, terms)
    if name in _PERCENTILES and len(terms) == 1 and len(arguments) == 1:
        _check_number(inner, terms[0].this)
        return call(AT_PLACE, terms[0].this.copy(), arguments[0].copy(), exp.Literal.string(name), terms[0].copy())
    if name == "mode" and len(terms) == 1 and not arguments:
        return call("mode", terms[0].this.copy(), terms[0].copy())
    return None


def _sorted_text(node: exp.Anonymous, terms: list[exp.Expr]) -> exp.Expr:
    """DISTINCT holds all arguments of a call, and of these only the first is what must differ."""
    first, *others = node.expressions
    if isinstance(first, exp.Distinct):
        first, others = first.expressions[0], [*first.expressions[1:], *others]
        check_order(node, first, terms)
        # any further term only orders texts that are equal
        value, terms = exp.Distinct(expressions=[first.copy()]), terms[:1]
    else:
        value = first.copy()
    separator = others[0].copy() if others else exp.Literal.string("")
    return call(SORTED_TEXT, value, separator, *(term.copy() for term in terms))


def _call(node: exp.Anonymous) -> exp.Expr | None:
    name, arguments = node.name.lower(), node.expressions
    if name in ("median", "percentile") and arguments:
        return _percentile(node)
    if name == "element_at" and len(arguments) == 2:
        return _map(arguments[0])
    return _sorted_list(node) if name == "transform" and len(arguments) == 2 else None


def _check_number(node: exp.Anonymous, value: exp.Expr) -> None:
    """Spark reads a text as the number that it may be, row by row; between two texts of a group nothing lies. Of times
    it takes none."""
    kind = type_of(value)
    if kind is not None and (kind == STRING or kind.temporal):
        of_text = "CAST it, or write TRY_CAST(… AS DOUBLE), which is NULL for a text that is no number"
        of_time = "give it a number, such as UNIX_MICROS(ts), and make a time of what comes out"
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"function {node.name.upper()} takes numbers, not {kind}",
            hint=of_text if kind == STRING else of_time,
            span=span_of(value) or span_of(node),
        )


def _map(named: exp.Expr) -> exp.Expr | None:
    """What penstock.catalog.foreign_aggregates makes of MAP_AGG: `named` holds all pairs, sorted, as one element."""
    ordered = named.expressions[0].find(exp.Anonymous, bfs=True) if _is(named, "transform") else None
    if ordered is None or not _is(ordered, "array") or not _is(ordered.expressions[0], "sort_array"):
        return None
    around = ordered.expressions[0].expressions[0]
    collected = _within(around)
    given = collected.expressions[0] if _is(collected, "collect_set") else None
    if not _is(given, "if") or not _is(given.expressions[2], "named_struct"):
        return None
    _, key, _, value = given.expressions[2].expressions
    return _put_within(around, call(MAP_OF, key.copy(), value.copy()))


def _within(around: exp.Expr) -> exp.Expr:
    """The aggregate that FILTER and OVER stand behind."""
    while isinstance(around, exp.Filter | exp.Window):
        around = around.this
    return around


def _put_within(around: exp.Expr, made: exp.Expr) -> exp.Expr:
    """The same FILTER and OVER behind another aggregate."""
    if not isinstance(around, exp.Filter | exp.Window):
        return made
    copied = around.copy()
    copied.set("this", _put_within(around.this, made))
    return copied


def _is(node: object, name: str) -> TypeGuard[exp.Anonymous]:
    return isinstance(node, exp.Anonymous) and node.name == name


def _percentile(node: exp.Anonymous) -> exp.Expr | None:
    """MEDIAN or PERCENTILE. DISTINCT holds all arguments of a call, and of these only the first is what must differ."""
    first, *others = node.expressions
    distinct = isinstance(first, exp.Distinct)
    if isinstance(first, exp.Distinct):
        first, others = first.expressions[0], [*first.expressions[1:], *others]
    _check_number(node, first)
    if node.name.lower() == "median":
        others = [*others, exp.Literal.number(_MIDDLE)]
    if len(others) != 1:
        return None
    value = exp.Distinct(expressions=[first.copy()]) if distinct else first.copy()
    order = exp.Ordered(this=first.copy(), desc=False, nulls_first=True)
    return call(AT_PLACE, value, others[0].copy(), exp.Literal.string("percentile_cont"), order)


def _sorted_list(node: exp.Anonymous) -> exp.Expr | None:
    """What penstock.catalog.foreign_aggregates makes of ARRAY_AGG with an order."""
    ordered = node.expressions[0]
    if not isinstance(ordered, exp.Anonymous) or ordered.name not in ("sort_array", "array_sort"):
        return None
    around = ordered.expressions[0]
    collected = _within(around)
    if not isinstance(collected, exp.Anonymous) or collected.name not in ("collect_list", "collect_set"):
        return None
    given = collected.expressions[0]
    rows = given.expressions[2] if _is(given, "if") else given  # which keeps NULLs
    if not _is(rows, "named_struct"):
        return None
    parts = dict(zip((name.name for name in rows.expressions[::2]), rows.expressions[1::2], strict=True))
    value = parts.pop("v", None)
    if value is None:
        return None
    whole = len(ordered.expressions) == 2 and ordered.name == "sort_array"  # one direction for all
    terms = [
        exp.Ordered(this=key.copy(), desc=whole or name.endswith(("df", "dl")), nulls_first=_first(name, whole=whole))
        for name, key in parts.items()
    ]
    if collected.name == "collect_set":
        value = exp.Distinct(expressions=[value])
    return _put_within(around, call(LIST_OF_ROWS if rows is given else SORTED_LIST, value.copy(), *terms))


def _first(name: str, *, whole: bool) -> bool:
    return name.endswith("f") if name[-1].isalpha() else not whole
