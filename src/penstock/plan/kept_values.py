"""Aggregates that do not merge, read as the values they are made of and what is computed of those in the end."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.merge_plan import MergeHow
from penstock.plan.store_lists import HOW_MANY, PERCENTILE, SPREADS
from penstock.plan.trees import type_of

_HALF: Final = "0.5"


@frozen
class KeptValues:
    """The values of `argument` where `condition` holds, all of them or each once; `made` is the function over their
    list, with one more argument where it has one. Without a function the list is what is asked for."""

    argument: exp.Expr
    condition: exp.Expr | None
    how: MergeHow
    made: str | None
    more: tuple[exp.Expr, ...] = ()


def kept_values(tree: exp.Expr) -> KeptValues | None:
    """An aggregate as something that is made of its values; None where it is another one."""
    if isinstance(tree, exp.Cast) and _name(tree.this) == "size":  # COUNT(DISTINCT …), see rules/distinct_aggregates
        inner, condition = _unfiltered(tree.this.expressions[0])
        return KeptValues(inner.expressions[0], condition, "set", HOW_MANY)
    inner, condition = _unfiltered(tree)
    if isinstance(inner, exp.WithinGroup):
        return _ordered(inner, condition)
    name = _name(inner)
    arguments = inner.expressions if isinstance(inner, exp.Anonymous) else []
    if name == "percentile" and len(arguments) == 2 and _numeric(arguments[0]) and _share(arguments[1]):
        return KeptValues(arguments[0], condition, "list", PERCENTILE, (arguments[1],))
    if len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
        return None
    if name == "median" and _numeric(arguments[0]):
        return KeptValues(arguments[0], condition, "list", PERCENTILE, (exp.Literal.number(_HALF),))
    if name in SPREADS and _numeric(arguments[0]):
        return KeptValues(arguments[0], condition, "list", SPREADS[name])
    lists: dict[str, MergeHow] = {"collect_list": "list", "array_agg": "list", "collect_set": "set"}
    return KeptValues(arguments[0], condition, lists[name], None) if name in lists else None


def _unfiltered(tree: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    return (tree.this, tree.expression.this) if isinstance(tree, exp.Filter) else (tree, None)


def _name(tree: exp.Expr) -> str:
    return tree.name.lower() if isinstance(tree, exp.Anonymous) else ""


def _ordered(tree: exp.WithinGroup, condition: exp.Expr | None) -> KeptValues | None:
    call, (entry, *others) = tree.this, tree.expression.expressions
    if _name(call) != "percentile_cont" or others or entry.args.get("desc") or not _share(call.expressions[0]):
        return None
    value = entry.this
    return KeptValues(value, condition, "list", PERCENTILE, (call.expressions[0],)) if _numeric(value) else None


def _numeric(value: exp.Expr) -> bool:
    found = type_of(value)
    return found is not None and found.numeric


def _share(tree: exp.Expr) -> bool:
    """Whether a share is written out, and one of a whole."""
    return isinstance(tree, exp.Literal) and not tree.is_string and 0 <= float(tree.this) <= 1
