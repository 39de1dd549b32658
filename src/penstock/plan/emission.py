"""When the rows of an answer are emitted: once, when they are final, or with each change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError, UnsupportedError
from penstock.plan.kept_windows import CLOSED_BY_CLOCK, shows_changes
from penstock.plan.nodes import Aggregate, Core, Node, Scan, TopN, WindowAssign, all_nodes
from penstock.plan.relation import Mode
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.context import PlanContext
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Query

_BOUND: Final = re.compile(r"\bwindow_(start|end|time)[`\"]?$", re.IGNORECASE)  # a key that is a bound of a window
KEEP_IT: Final = "store it as a materialized view, whose store answers over the latest rows"
_ENDLESS: Final = ("stream", "materialized view")


def note_emission(context: PlanContext, node: Node, query: Query) -> None:
    """Say when rows are emitted where the query does not."""
    opened = [] if shows_changes(context) else open_windows(context, node)
    if opened and query.emit is Emit.FINAL:
        raise _left_open(opened, query.emit_span)
    if query.emit is None and opened:
        others = "; other windows are emitted once, when they close (EMIT FINAL)" if _closing(node) else ""
        context.notice(f"windows over {' and '.join(opened)} show each change, also of late rows{others}")
    elif query.emit is None and _closing(node) and node.mode is Mode.APPEND:
        context.notice("windows are emitted once, when they close (EMIT FINAL)")
    elif query.emit is None and node.mode is not Mode.APPEND:
        context.notice("every change is emitted (EMIT CHANGES)")


def check_emission(plan: LogicalPlan, query: Query) -> None:
    """Raises where EMIT FINAL waits for what never comes: the rows change, for ever, and no window closes."""
    if query.emit is not Emit.FINAL or plan.mode is Mode.APPEND or _closing(plan.root):
        return
    if CLOSED_BY_CLOCK in plan.warnings:
        return
    if any(scan.kind in _ENDLESS for scan in plan.scans()):
        raise never_final("a row of this answer is never final", query.emit_span)


def _closing(node: Node) -> bool:
    return any(
        isinstance(inner, TopN) or (isinstance(inner, Aggregate) and inner.emit is Emit.FINAL)
        for inner in all_nodes(node)
    )


def open_windows(context: PlanContext, node: Node) -> list[str]:
    """What the windows stand over that the view store groups by: their rows meet others that change, or go by the rows
    around them, so that nothing closes them."""
    cores = {core.relation: core.node for core in context.cores.values()}
    found: dict[str, None] = {}
    pending = [node, *context.subqueries]
    while pending:
        each = pending.pop()
        if isinstance(each, Core):
            continue  # Spark closes its windows
        if isinstance(each, Aggregate) and each.bounded and any(_BOUND.search(key) for key in each.group_by):
            read = [cores.get(below.relation, below) for below in all_nodes(each) if isinstance(below, Core)]
            found |= dict.fromkeys(name for core in read for name in _in_windows(core))
        pending += each.inputs
    return list(found)


def _in_windows(core: Core) -> list[str]:
    """The streams whose rows are handed up with their windows."""
    nodes = list(all_nodes(core))
    if any(isinstance(each, Aggregate) for each in nodes) or not any(isinstance(each, WindowAssign) for each in nodes):
        return []
    return [each.relation for each in nodes if isinstance(each, Scan) and not each.bounded]


def _left_open(streams: list[str], span: Span | None) -> UnsupportedError:
    return UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        f"EMIT FINAL waits for windows that close, and nothing closes those over {' and '.join(streams)}: their rows "
        "meet others that change, or go by the rows around them",
        hint="group by the windows in a subquery over the stream alone, or write EMIT CHANGES",
        span=span,
    )


def never_final(what: str, span: Span | None) -> UnsupportedError:
    """The error for EMIT FINAL where nothing ever ends."""
    return UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        f"EMIT FINAL needs a window: without one {what}",
        hint="group by a window, for example TUMBLE(ts, INTERVAL '1' MINUTE), or write EMIT CHANGES",
        span=span,
    )


def never_closing(span: Span | None) -> NotYetError:
    """The error for EMIT FINAL over rows that change where the view store knows no moment for its windows to close."""
    return NotYetError(
        "UPDATING_INPUT",
        "EMIT FINAL waits for windows that close, and nothing closes these, whose rows change",
        hint="write EMIT CHANGES: the view shows each window as its rows change",
        span=span,
        mode=Mode.RETRACT.value,
    )
