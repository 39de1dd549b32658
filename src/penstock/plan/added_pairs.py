"""Inner joins of rows that are only added: the answer only grows, by what the rows of each batch meet.

    SELECT b.price, a.category FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10

A new bid meets the auctions that have come so far, and a new auction the bids that came before it. No row that was
shown ever changes, so the view store keeps the rows of both sides and adds what the new ones make. That holds for any
number of relations and any condition, as long as each row of the answer is made of one row of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.moving_clock import reads_clock
from penstock.plan.nodes import Join, all_nodes
from penstock.plan.spark_blocks import aggregates, makes_rows, relations, scans
from penstock.plan.trees import own_nodes

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.plan.logical import LogicalPlan

_MORE: Final = ("distinct", "limit", "offset", "laterals", "order", "having", "group")
_OF_MANY: Final = (exp.Window, exp.Subquery, exp.Exists)


def joins_for_ever(plan: LogicalPlan) -> bool:
    """Whether Spark would keep every row of a join of streams."""
    joins = [node for node in all_nodes(plan.root) if isinstance(node, Join)]
    return any(node.strategy == "stream" and node.state is not None and node.state.bound is None for node in joins)


def only_adds_pairs(tree: exp.Query, added: Collection[str]) -> bool:
    """Whether each row of an answer is made of one row of each of several relations that rows are only added to;
    `added` are the names of such relations."""
    return len(scans(tree)) > 1 and not reads_clock(tree) and _of_one_of_each(tree, added)


def _of_one_of_each(query: exp.Expr, added: Collection[str]) -> bool:
    if not isinstance(query, exp.Select) or aggregates(query) or any(query.args.get(clause) for clause in _MORE):
        return False
    joins = query.args.get("joins") or []
    below = relations(query)
    if len(below) != len(joins) + 1 or not all(_is_inner(join) for join in joins):
        return False
    if any(makes_rows(item) for item in query.expressions):
        return False
    parts = [*query.expressions, query.args.get("where"), *(join.args.get("on") for join in joins)]
    if any(isinstance(node, _OF_MANY) for part in parts if part is not None for node in own_nodes(part)):
        return False
    return all(
        each.name in added if isinstance(each, exp.Table) else _of_one_of_each(each, added) for each in below.values()
    )


def _is_inner(join: exp.Join) -> bool:
    return not join.method and not join.side and join.kind.upper() in ("", "INNER", "CROSS")
