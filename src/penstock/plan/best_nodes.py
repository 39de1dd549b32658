"""The operators of a query whose windows are compared with their own largest value: the rows once, and no join."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from penstock.plan.best_rows import BestRows, best_rows
from penstock.plan.nodes import BestOfWindow, Join, Node
from penstock.plan.relation import State

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan

AnyNode = TypeVar("AnyNode", bound=Node)


def without_join(plan: LogicalPlan) -> LogicalPlan:
    """The plan of such a query as its job runs it, for EXPLAIN; see best_rows."""
    best = best_rows(plan.spark)
    return plan if best is None else replace(plan, root=_without(plan.root, best))


def _without(node: AnyNode, best: BestRows) -> AnyNode:
    return replace(node, inputs=tuple(_below(inner, best) for inner in node.inputs))


def _below(node: Node, best: BestRows) -> Node:
    if not isinstance(node, Join) or node.window is None:
        return _without(node, best)
    # of groups the aggregate below tells what is kept
    kept = State(f"of each open window the rows that may have {best.words}", "dropped when the window closes")
    return BestOfWindow(
        fields=node.fields,
        inputs=(node.inputs[0 if best.left else 1],),
        event_time=node.event_time,
        state=kept if best.rows else None,
        window=node.window,
        value=best.words,
        condition=node.condition,
    )
