"""Joins with bounded tables behind a join as of PROCTIME(), put in front of it.

    SELECT o.id, r.rate, c.name FROM orders o JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON r.cur = o.cur
    LEFT JOIN countries c ON c.code = o.country

What a row of orders meets in countries, which ends, is the same before it meets its rate and behind. In front Spark
joins the two, which sees such a table as a whole; behind, the view store would keep its rows as those of a stream,
and an answer would change with each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.core_rows import in_store, only_added
from penstock.plan.nested_joins import unbracketed
from penstock.plan.nodes import Core, Filter, Project, Scan, all_nodes
from penstock.plan.pending_joins import PendingJoin
from penstock.plan.trees import nondeterministic_call

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from penstock.plan.nodes import Node
    from penstock.plan.scope import Leaf
    from penstock.plan.unnest import LateralJoin


def with_tables_first(
    written: exp.Select,
    joins: Sequence[exp.Expr],
    pending: Sequence[PendingJoin | LateralJoin],
    leaves: Sequence[Leaf],
    first_node: Node,
) -> exp.Select | None:
    """The SELECT with its joins in such an order, and the columns of its list as they were; None where nothing moves.

    `pending` are the joins as they are planned, `leaves` what they join, `first_node` is the operator of the first one.
    """
    order = _order(joins, pending, leaves[0].alias) if _only_adds(first_node) else None
    items = _told_apart(written, leaves) if order is not None else None
    if order is None or items is None:
        return None
    made = written.copy()
    made.set("expressions", items)
    first, _ = unbracketed(made.args["from_"].this)
    made.set("from_", exp.From(this=first.copy()))
    made.set("joins", [joins[place].copy() for place in order])
    return made


def _order(joins: Sequence[exp.Expr], pending: Sequence[PendingJoin | LateralJoin], first: str) -> list[int] | None:
    """The places of the joins in their new order; None where it is the one that they have."""
    planned = [each for each in pending[: len(joins)] if isinstance(each, PendingJoin)]
    if len(planned) < len(joins) or any(_merges(join) for join in joins):
        return None  # a column of USING is one of all relations in front of it, so their order has a meaning
    met = next((place for place, each in enumerate(planned) if each.once), len(planned))
    if not all(_of_table(each) or _adds(each) for each in planned[:met]):
        return None  # rows in front that change are told apart by their keys
    front = {first, *(each.leaf.alias for each in planned[:met])}
    moved: list[int] = []
    for place, each in enumerate(planned):
        if each.kind in ("right", "full"):
            break  # it makes up rows, which meet what stands behind it
        if place > met and _of_table(each) and _asks(each, front):
            front.add(each.leaf.alias)
            moved.append(place)
    rest = [place for place in range(met, len(joins)) if place not in moved]
    return [*range(met), *moved, *rest] if moved else None


def _told_apart(written: exp.Select, leaves: Sequence[Leaf]) -> list[exp.Expr] | None:
    """The SELECT list with the columns of each relation in the place of *; None where that is not known."""
    items: list[exp.Expr] = []
    for item in written.expressions:
        if not isinstance(item, exp.Star):
            bare = [star for star in item.find_all(exp.Star) if not isinstance(star.parent, exp.Column)]
            if not all(_counts(star) for star in bare):
                return None
            items.append(item.copy())
            continue
        if any(item.args.values()) or any(leaf.inside or leaf.open or not leaf.alias for leaf in leaves):
            return None
        items += [exp.Column(this=exp.Star(), table=exp.to_identifier(leaf.alias, quoted=True)) for leaf in leaves]
    return items


def _counts(star: exp.Star) -> bool:
    return isinstance(star.parent, exp.Anonymous) and star.parent.name.casefold() == "count"


def _merges(join: exp.Expr) -> bool:
    return bool(join.args.get("using")) or join.args.get("method") == "NATURAL"


def _of_table(join: PendingJoin) -> bool:
    """Whether it is an inner or a left join with the rows of a bounded table that a job reads once."""
    nodes = list(all_nodes(join.right.node))
    scans = [node for node in nodes if isinstance(node, Scan)]
    return (
        join.kind in ("inner", "left")
        and not join.once
        and not join.asof
        and all(isinstance(node, Scan | Filter | Project) for node in nodes)
        and bool(scans)
        and all(scan.kind == "table" and not scan.looked_up for scan in scans)
    )


def _adds(join: PendingJoin) -> bool:
    """Whether rows are only added to what a join in front gives."""
    return join.kind in ("inner", "cross") and _only_adds(join.right.node)


def _only_adds(node: Node) -> bool:
    if isinstance(node, Filter | Project):
        return all(map(_only_adds, node.inputs))
    return isinstance(node, Core) or (isinstance(node, Scan) and not in_store(node) and only_added(node))


def _asks(join: PendingJoin, front: Collection[str]) -> bool:
    """Whether the condition of a join speaks of relations in front and of its own alone."""
    condition = join.condition
    if condition is None or condition.find(exp.Query) is not None or nondeterministic_call(condition) is not None:
        return False
    owners = {node.table for node in condition.find_all(exp.Column)} - {join.leaf.alias}
    return bool(owners) and owners <= {*front}
