"""When the rows of an answer are emitted: once, when they are final, or with each change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedError
from penstock.plan.kept_windows import CLOSED_BY_CLOCK
from penstock.plan.nodes import Aggregate, Node, TopN, all_nodes
from penstock.plan.relation import Mode
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.context import PlanContext
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Query

_ENDLESS: Final = ("stream", "materialized view")


def note_emission(context: PlanContext, node: Node, query: Query) -> None:
    """Say when rows are emitted where the query does not."""
    if query.emit is None and _closing(node) and node.mode is Mode.APPEND:
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


def never_final(what: str, span: Span | None) -> UnsupportedError:
    """The error for EMIT FINAL where nothing ever ends."""
    return UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        f"EMIT FINAL needs a window: without one {what}",
        hint="group by a window, for example TUMBLE(ts, INTERVAL '1' MINUTE), or write EMIT CHANGES",
        span=span,
    )


def never_closing(span: Span | None) -> UnsupportedError:
    """The error for EMIT FINAL over a window whose rows may become others for ever."""
    return UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        "EMIT FINAL waits for windows that close, and a window over rows that change never does",
        hint="write EMIT CHANGES: the view shows each window as its rows change",
        span=span,
    )
