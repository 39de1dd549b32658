"""A query that somebody reads, and that ends with the last of so many rows: LIMIT over rows that are only added.

    SELECT * FROM bids LIMIT 5  ->  SELECT * FROM bids, of which five rows are handed out

Spark has no LIMIT over a stream that would end it; whoever hands the rows out counts them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.plan.nodes import Limit

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan


def without_limit(plan: LogicalPlan) -> tuple[LogicalPlan, int] | None:
    """The plan of all its rows, and of how many of them the answer is; None where the query does not end so."""
    node = plan.root.inputs[0]
    if plan.root.kind != "result" or plan.kept or not isinstance(node, Limit) or node.bounded:
        return None
    tree = plan.spark.copy()
    if tree.args.get("limit") is None or node.offset is not None:
        return None
    tree.set("limit", None)
    return replace(plan, root=replace(plan.root, inputs=node.inputs), spark=tree), int(node.limit)
