"""Joins of a FROM clause before WHERE is known, and the order in which those are joined that only commas part.

    FROM a, b, c WHERE a.k = c.k AND c.x = b.x

joins c before b: a and b have nothing in common until c is there. Any other join stays where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.plan.context import Relation
from penstock.plan.joins import connects
from penstock.plan.scope import Leaf
from penstock.plan.unnest import LateralJoin


@dataclass(slots=True)
class PendingJoin:
    """A join whose kind is known once WHERE is bound."""

    right: Relation
    leaf: Leaf
    tree: exp.Expr
    kind: str
    condition: exp.Expr | None
    written: exp.Join
    asof: bool = False  # each row meets the last of those that its condition allows
    once: bool = False  # each row meets what is there when it comes

    @property
    def of_comma(self) -> bool:
        """Whether nothing but WHERE says what it joins by."""
        return self.kind == "cross" and self.condition is None and not self.asof and not self.once


def connected_first(
    joins: Sequence[PendingJoin | LateralJoin], first: str, where: Sequence[exp.Expr]
) -> list[PendingJoin | LateralJoin]:
    """Joins behind the relation `first`, where of those with commas the next one is connected with what is joined."""
    ordered: list[PendingJoin | LateralJoin] = []
    joined = {first}
    waiting = list(joins)
    while waiting:
        free = 0  # so many may be next
        while free < len(waiting) and _moves(waiting[free]):
            free += 1
        connected = (
            place
            for place, each in enumerate(waiting[:free])
            if any(connects(condition, joined, {each.leaf.alias}) for condition in where)
        )
        chosen = waiting.pop(next(connected, 0))
        ordered.append(chosen)
        joined.add(chosen.leaf.alias)
    return ordered


def _moves(join: PendingJoin | LateralJoin) -> bool:
    return isinstance(join, PendingJoin) and join.of_comma
