"""What EXPLAIN tells of the operators below a finish, which are planned as if all rows were there already.

The view store answers them over the rows that it keeps. So a stream below looks bounded, and an operator as if it only
added rows: here is what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.nodes import Core, Filter, Finish, Project, Scan, Unnest, WindowAssign
from penstock.plan.relation import Mode

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.nodes import Node

_BY_ROWS = (Filter, Project, Unnest, WindowAssign)


def unbounded_scans(plan: LogicalPlan) -> tuple[Scan, ...]:
    """The relations of a query whose rows never end."""
    if plan.bounded:
        return ()
    scans = (node for node in (*plan.nodes(), *plan.subquery_nodes()) if isinstance(node, Scan))
    return tuple(scan for scan in scans if not scan.bounded or (plan.kept and _never_ends(scan)))


def _never_ends(scan: Scan) -> bool:
    return scan.kind in ("stream", "materialized view")


def shown_modes(root: Node) -> dict[int, Mode | None]:
    """How the rows of each operator change, by its id. None: the store answers it as a part of the finish above, and
    only that has changes."""
    found: dict[int, Mode | None] = {}
    _add(root, found, finished=False)
    return found


def _add(node: Node, found: dict[int, Mode | None], *, finished: bool) -> None:
    inside = finished or isinstance(node, Finish)
    for below in node.inputs:
        # What Spark runs by itself below is a plan of its own.
        _add(below, found, finished=inside and not isinstance(node, Core))
    found[id(node)] = _mode(node, found) if finished else node.mode


def _mode(node: Node, found: dict[int, Mode | None]) -> Mode | None:
    if isinstance(node, Scan):
        return node.changes
    if isinstance(node, Core):
        return Mode.APPEND
    if isinstance(node, _BY_ROWS) and all(found[id(below)] is Mode.APPEND for below in node.inputs):
        return Mode.APPEND
    return None
