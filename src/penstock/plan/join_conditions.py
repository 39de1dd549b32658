"""What a join is by its words: its kind, its condition, and what USING and NATURAL make of columns of one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError, UnsupportedError
from penstock.plan.check_types import check_condition
from penstock.plan.scope import Leaf, field_tree
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from penstock.plan.expressions import ExpressionBinder


def join_kind(join: exp.Join) -> str:
    """inner, left, right, full, cross, semi or anti."""
    if join.args.get("kind") in ("SEMI", "ANTI"):
        if join.side == "RIGHT":
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE",
                f"RIGHT {join.kind} JOIN has no meaning here",
                hint=f"swap the two relations and write LEFT {join.kind} JOIN",
                span=span_of(join.this),
            )
        return str(join.kind).lower()
    if join.side:
        return str(join.side).lower()
    if join.args.get("match_condition") is not None:
        return "inner"
    if join.kind == "CROSS" or (
        join.args.get("on") is None and not join.args.get("using") and join.method != "NATURAL"
    ):
        return "cross"
    return "inner"


def join_condition(
    join: exp.Join, left: list[Leaf], right: Leaf, binder: ExpressionBinder
) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
    """The condition, bound, and the columns that both sides have in common from here on."""
    on = join.args.get("on")
    if on is not None:
        binder.aggregates_allowed = False
        condition = binder.bind(on)
        check_condition(condition, "ON")
        binder.aggregates_allowed = True
        return condition, {}
    names = [name.name if hasattr(name, "name") else str(name) for name in join.args.get("using") or []]
    if join.method == "NATURAL":
        names = [
            entry.name
            for entry in right.fields
            if not entry.hidden and any(leaf.matching(entry.name, quoted=False) for leaf in left)
        ]
    return _using(names, left, right, join, binder.scope.merged)


def _using(
    names: list[str], left: list[Leaf], right: Leaf, join: exp.Join, before: Mapping[str, exp.Expr]
) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
    """The equalities of USING, and what its columns are from here on.

    `before` are those of the joins in front, where an outer join may have the value of another relation than the first.
    """
    condition: exp.Expr | None = None
    merged: dict[str, exp.Expr] = {}
    for name in names:
        owners = [(leaf, found) for leaf in left for found in leaf.matching(name, quoted=False)]
        others = right.matching(name, quoted=False)
        if not owners or not others:
            raise ResolutionError(
                "UNKNOWN_COLUMN", f'column "{name}" of USING is not in both relations', span=span_of(join.this)
            )
        owner, entry = owners[0]
        earlier = before.get(name.casefold())
        first = field_tree(entry, owner.alias, owner.window) if earlier is None else earlier.copy()
        second = field_tree(others[0], right.alias, right.window)
        equal = exp.EQ(this=first, expression=second)
        condition = equal if condition is None else exp.And(this=condition, expression=equal)
        shown = {"RIGHT": second, "FULL": exp.Coalesce(this=first.copy(), expressions=[second.copy()])}.get(
            join.side, first
        )
        shown = shown.copy()
        shown.meta["penstock_type"] = entry.type
        merged[name.casefold()] = shown
    return condition, merged


def using_text(join: exp.Join) -> str | None:
    """USING as it is written, for EXPLAIN."""
    names = [getattr(name, "name", str(name)) for name in join.args.get("using") or []]
    return f"USING ({', '.join(names)})" if names else None
