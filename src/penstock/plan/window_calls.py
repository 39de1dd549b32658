"""TUMBLE, HOP and SESSION inside expressions, and their helpers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.scope import window_bound
from penstock.plan.trees import call, number, typed
from penstock.plan.windows import WindowSpec, duration_words, window_spec
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall, WindowPart
from penstock.sql.spans import span_of
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.expressions import ExpressionBinder


# Both spellings of a window's bounds: Spark's and Arroyo's, and that of the texts.
_BOUNDS: Final = {"start": "start", "end": "end", "window_start": "start", "window_end": "end"}


@dataclass(slots=True)
class WindowBinding:
    """The window of a grouped SELECT: its value, its tree in Spark, and how the user wrote it."""

    spec: WindowSpec
    tree: exp.Expr
    written: WindowCall | None = None
    names: frozenset[str] = frozenset({"window"})  # what the SELECT list calls it


def bind_window(binder: ExpressionBinder, node: WindowCall | WindowPart) -> exp.Expr:
    """A window or one of its helpers: the window of the GROUP BY, or a plain function of a row."""
    written = node.this if isinstance(node, WindowPart) else node
    span = span_of(node)
    spec = window_spec(written, span)
    if binder.window is None:
        return _scalar(binder, node, written, spec)
    _check_same(binder, written, spec, span)
    if isinstance(node, WindowCall):
        return typed(binder.window.tree.copy(), None)
    if node.part == "proctime":
        raise _processing_time(span)
    part = "time" if node.part == "rowtime" else node.part
    return typed(window_bound(binder.window.tree.copy(), part, binder.window.spec), TIMESTAMP)


def _check_same(binder: ExpressionBinder, written: WindowCall, spec: WindowSpec, span: Span | None) -> None:
    window = binder.window
    if window is None or window.written is None:
        return
    same_time = True
    time, group_time = written.args.get("time"), window.written.args.get("time")
    if time is not None and group_time is not None:
        same_time = binder.bind(time) == binder.bind(group_time)
    if spec != window.spec or not same_time:
        raise ResolutionError(
            "WINDOW_MISMATCH",
            f"{_written(written, spec)} is not the window of the GROUP BY, {_written(window.written, window.spec)}",
            hint="give the helper the same time column and the same durations as the GROUP BY",
            span=span,
        )


def _scalar(binder: ExpressionBinder, node: WindowCall | WindowPart, written: WindowCall, spec: WindowSpec) -> exp.Expr:
    """TUMBLE as a plain function of a row: floor to the size, NULL for NULL."""
    span = span_of(node)
    time = written.args.get("time")
    if binder.grouped and not binder.aggregate_depth:
        raise ResolutionError(
            "WINDOW_MISMATCH",
            f"{_written(written, spec)} is not in the GROUP BY",
            hint=f"add it: GROUP BY …, {_written(written, spec)}",
            span=span,
        )
    if spec.kind != "TUMBLE" or time is None:
        raise ResolutionError(
            "INVALID_WINDOW",
            f"{spec} can stand in a GROUP BY or in the FROM clause only",
            hint=f"add it to the GROUP BY: GROUP BY {_written(written, spec)}",
            span=span,
        )
    micros = call("unix_micros", binder.bind(time))
    shifted = exp.Sub(this=micros.copy(), expression=number(spec.offset_us)) if spec.offset_us else micros.copy()
    start = call("timestamp_micros", exp.Sub(this=micros, expression=call("pmod", shifted, number(spec.size_us))))
    size = exp.Interval(this=exp.Literal.string(str(spec.size_us)), unit=exp.var("MICROSECOND"))
    end = exp.Paren(this=exp.Add(this=start.copy(), expression=size))
    if isinstance(node, WindowCall):
        return call("named_struct", exp.Literal.string("start"), start, exp.Literal.string("end"), end)
    if node.part == "start":
        return typed(start, TIMESTAMP)
    if node.part == "end":
        return typed(end, TIMESTAMP)
    raise ResolutionError(
        "WINDOW_MISMATCH", f"{spec.kind}_{node.part.upper()} needs a window in the GROUP BY", span=span
    )


def _written(call_node: WindowCall, spec: WindowSpec) -> str:
    """A window as the user would write it, for messages."""
    time = call_node.args.get("time")
    durations = {
        "TUMBLE": [spec.size_us], "HOP": [spec.slide_us, spec.size_us],
        "SESSION": [spec.gap_us], "CUMULATE": [spec.step_us, spec.size_us],
    }[spec.kind]  # fmt: skip
    parts = [format_tree(time)] if time is not None else []
    parts += [duration_words(duration) for duration in durations]
    return f"{spec.kind}({', '.join(parts)})"


def window_reference(node: exp.Column, window: WindowBinding) -> exp.Expr | None:
    """`window`, `window.start`, `window_start` … in a SELECT that is grouped by a window function."""
    names = [part.name.casefold() for part in node.parts]
    direct = {"window_start": "start", "window_end": "end", "window_time": "time"}
    if len(names) == 1 and names[0] in direct:
        return typed(window_bound(window.tree.copy(), direct[names[0]], window.spec), TIMESTAMP)
    if names[0] not in window.names:
        return None
    if len(names) == 1:
        return typed(_whole(window), None)
    if len(names) == 2 and names[1] in _BOUNDS:
        return typed(window_bound(window.tree.copy(), _BOUNDS[names[1]], window.spec), TIMESTAMP)
    return None


def bind_window_field(binder: ExpressionBinder, node: exp.Dot, window: exp.Expr) -> exp.Expr:
    """`TUMBLE(…).window_start`: a window is a struct of its bounds, which have two names each."""
    part = _BOUNDS.get(node.expression.name.casefold())
    if part is None:
        raise ResolutionError(
            "UNKNOWN_COLUMN",
            f'a window has no field "{node.expression.name}"',
            hint="its fields are window_start and window_end",
            span=span_of(node),
        )
    grouped = binder.window
    if grouped is not None:
        return typed(window_bound(grouped.tree.copy(), part, grouped.spec), TIMESTAMP)
    return typed(exp.Dot(this=window, expression=exp.Identifier(this=part, quoted=True)), TIMESTAMP)


def _whole(window: WindowBinding) -> exp.Expr:
    """A window with both its bounds: what Spark keeps of a cumulating one has the right end only."""
    if window.spec.kind != "CUMULATE":
        return window.tree.copy()
    start, end = (window_bound(window.tree.copy(), part, window.spec) for part in ("start", "end"))
    return call("named_struct", exp.Literal.string("start"), start, exp.Literal.string("end"), end)


def _processing_time(span: Span | None) -> NotYetError:
    return NotYetError(
        "PROCESSING_TIME_WINDOW",
        "the processing time of a window is not there yet",
        hint="its time is window_time, or TUMBLE_ROWTIME; PROCTIME() is the time at which rows are read",
        span=span,
    )
