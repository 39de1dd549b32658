"""The operators of a query whose windows the view store joins when they close: the joins keep nothing of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from penstock.plan.nodes import Join, Node

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan

AnyNode = TypeVar("AnyNode", bound=Node)


def joined_by_store(plan: LogicalPlan) -> LogicalPlan:
    """The plan of such a query as its job runs it, for EXPLAIN; see joined_panes."""
    return replace(plan, root=_made(plan.root))


def _made(node: AnyNode) -> AnyNode:
    made = replace(node, inputs=tuple(_made(inner) for inner in node.inputs))
    if isinstance(made, Join) and made.strategy == "stream":
        made = replace(made, strategy="view store", state=None)
    return made
