"""Which time a window stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.context import EventTimeWantedError
from penstock.plan.emission import never_closing
from penstock.plan.names import is_proctime
from penstock.plan.relation import EVENT_TIME_COLUMN, WINDOW_COLUMN, EventTime, Mode
from penstock.plan.scope import shown_alias
from penstock.plan.trees import call, column, mark_nondeterministic
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.context import PlanContext
    from penstock.plan.nodes import Node
    from penstock.plan.scope import Leaf, Resolved, Scope

_KEPT_CLOCK = "penstock_kept_clock"


def window_time(
    context: PlanContext, node: Node, scope: Scope, written: exp.Expr | None, span: Span | None
) -> tuple[exp.Expr, str]:
    """The Spark tree of the time a window stands on, and the alias of the relation it comes from.

    `written` is the time column of the window, None for Arroyo's spelling, which means the event time of the input.
    Processing time is the time of the batch, for which `is_clock` holds.
    """
    if written is None:
        return _implicit(node, scope, span)
    if is_proctime(written):
        return _clock(context), scope.leaves[0].alias if scope.leaves else ""
    if isinstance(written, exp.Anonymous) and written.name.casefold() == "window_time" and written.expressions:
        written = written.expressions[0]  # the time of a window is what Spark takes of the window itself
    if not isinstance(written, exp.Column):
        raise ResolutionError(
            "MISSING_EVENT_TIME",
            "a window stands on a time column, not on an expression",
            hint="add a computed column to the stream and declare its WATERMARK",
            span=span_of(written) or span,
        )
    found = scope.resolve(written)
    context.read(found)
    leaf = found.leaf
    if leaf is None or found.path:
        raise _not_event_time(found, node, span_of(written))
    if found.field.processing_time:
        return (_kept_clock(found.tree) if context.kept else _clock(context)), leaf.alias
    if not found.field.window:
        _check_type(found, span_of(written))
    if node.bounded or leaf.open:
        return found.tree, leaf.alias
    if found.field.event_time or found.field.window:
        return _carried(leaf, node, found.tree), leaf.alias
    raise _without_time(context, found, leaf, node, span_of(written) or span)


def _without_time(context: PlanContext, found: Resolved, leaf: Leaf, node: Node, span: Span | None) -> Exception:
    """The error for a window over a column that is no event time. Of rows that change any time will do, and none lets
    it close: the view store answers them."""
    changes = node.mode is not Mode.APPEND and found.field.type == TIMESTAMP
    if changes and context.emit is Emit.FINAL and context.depth == context.emit_depth:
        return never_closing(context.emit_span or span)
    if found.field.source is not None and not _has_event_time(leaf) and not leaf.bounded:
        return EventTimeWantedError(*found.field.source)
    if not changes:
        return _not_event_time(found, node, span)
    return NotYetError(
        "UPDATING_INPUT",
        f"a window over rows of {shown_alias(leaf.alias)}, which change, is not there yet in this query",
        hint="keep it as a materialized view with EMIT CHANGES, which shows each window as its rows change",
        span=span,
        mode=Mode.RETRACT.value,
    )


def _clock(context: PlanContext) -> exp.Expr:
    """The time of a batch: the same whenever the batch is run, but not for a query over all rows so far."""
    now = call("current_timestamp")
    return mark_nondeterministic(now, "PROCTIME") if context.kept else now


def _kept_clock(time: exp.Expr) -> exp.Expr:
    """The time at which a row came, where all rows so far are kept, each with it."""
    time.meta[_KEPT_CLOCK] = True
    return time


def is_clock(time: exp.Expr) -> bool:
    """Whether the time of a window is processing time."""
    if time.meta.get(_KEPT_CLOCK):
        return True
    return isinstance(time, exp.Anonymous) and time.name.casefold() == "current_timestamp"


def _implicit(node: Node, scope: Scope, span: Span | None) -> tuple[exp.Expr, str]:
    for leaf in scope.leaves:
        for entry in leaf.fields:
            if entry.name == WINDOW_COLUMN and entry.hidden:
                return column(WINDOW_COLUMN, leaf.alias), leaf.alias
            if entry.event_time:
                return column(entry.name, leaf.alias), leaf.alias
        if leaf.open:
            return column("_timestamp", leaf.alias), leaf.alias
    names = ", ".join(shown_alias(leaf.alias) for leaf in scope.leaves)
    raise ResolutionError(
        "MISSING_EVENT_TIME",
        f"the window names no time column, and {names or 'the query'} has no event time",
        hint="declare one with WATERMARK FOR … or event_time_field, or name a column: TUMBLE(ts, INTERVAL '1' MINUTE)",
        span=span,
    )


def _carried(leaf: Leaf, node: Node, visible: exp.Expr) -> exp.Expr:
    """The column that Spark knows as the event time: behind `window_time` stands the hidden window itself."""
    for entry in leaf.fields:
        if entry.hidden and entry.name == WINDOW_COLUMN:
            return column(WINDOW_COLUMN, leaf.alias)
        if entry.hidden and entry.name == EVENT_TIME_COLUMN:
            return column(EVENT_TIME_COLUMN, leaf.alias)
    return visible


def _has_event_time(leaf: Leaf) -> bool:
    return any(entry.event_time for entry in leaf.fields)


def _check_type(found: Resolved, span: Span | None) -> None:
    sql_type = found.field.type
    if sql_type is None or sql_type.name == "TIMESTAMP":
        return
    if sql_type.integral:
        hint = "declare it as TIMESTAMP: an integer in a TIMESTAMP column is read as epoch milliseconds"
    else:
        hint = "a window needs a TIMESTAMP; add a computed column such as t AS CAST(x AS TIMESTAMP)"
    raise ResolutionError(
        "MISSING_EVENT_TIME",
        f'column "{found.field.name}" is {sql_type}, and a window needs a TIMESTAMP',
        hint=hint,
        span=span,
    )


def _not_event_time(found: Resolved, node: Node, span: Span | None) -> ResolutionError:
    alias = shown_alias(found.leaf.alias) if found.leaf is not None else "the input"
    known = [entry.name for entry in (found.leaf.fields if found.leaf else ()) if entry.event_time and not entry.hidden]
    if found.leaf is not None and found.leaf.bounded:
        hint = "a table that ends has no event time beside a stream; use the event time of the stream"
    elif found.field.part in ("start", "end"):
        hint = "window_time is the event time of windowed rows: use it instead"
    elif known:
        hint = f'the event time of {alias} is "{known[0]}"'
    else:
        hint = f"declare it in the stream with WATERMARK FOR {found.field.name}, and select it in every subquery"
    return ResolutionError(
        "MISSING_EVENT_TIME",
        f'column "{found.field.name}" is not the event time of {alias}',
        hint=hint,
        span=span,
    )


def default_event_time(context: PlanContext, relation: str) -> EventTime | None:
    """The event time that a window asked of a stream which declares none."""
    wanted = context.assumed_event_times.get(relation)
    if wanted is None:
        return None
    if context.grace_us is not None:
        return EventTime(wanted, context.grace_us)
    return EventTime(wanted, context.settings.default_watermark_delay_us, declared="default")
