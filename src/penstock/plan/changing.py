"""Which windows with EMIT CHANGES the view store keeps, and what Spark does for them.

Spark reduces a batch to partial results by key and window, and keeps nothing; the store merges them into the rows of
the view. Both count the same rows as windows that close: one that comes behind the watermark counts in those of its
windows that are open, and in no other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.join_times import is_stand_in
from penstock.plan.merge_plan import MergeKey
from penstock.plan.merging import Merged, NotMergeableError, Pane, merged
from penstock.plan.nodes import Aggregate
from penstock.plan.pane_plan import END, START, TIME, TIME_BEFORE_END_US, WINDOW
from penstock.plan.panes import reads_window
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE
from penstock.plan.running import Running, running
from penstock.plan.scope import window_bound
from penstock.plan.spark_blocks import window_call, window_key
from penstock.plan.trees import call, dot, typed
from penstock.plan.windows_plan import ROW_TIME, WindowsPlan
from penstock.sql.statements import Emit
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.windows import WindowSpec


@frozen
class Changing:
    """The parts of a job whose windows the view store keeps."""

    parts: Merged
    plan: WindowsPlan


def changing_aggregate(plan: LogicalPlan) -> Aggregate | None:
    """The aggregate of a query whose windows show each change."""
    for node in plan.nodes():
        if isinstance(node, Aggregate) and node.window is not None and node.emit is Emit.CHANGES:
            return node
    return None


def changing_of(plan: LogicalPlan, found: JobScans, node: Aggregate) -> Changing:
    """The windows of a query as something to merge; NotMergeableError where Spark has to keep them."""
    spec = node.window
    assert spec is not None
    if node.grouping_sets:
        raise NotMergeableError("there are grouping sets")
    folded = running(found.tree.copy())
    key = window_key(folded.block) if folded is not None else None
    if folded is None or key is None:
        raise NotMergeableError("a value differs each time it is computed")
    keys = tuple(each for each in folded.keys if each != key and not is_stand_in(each))
    folded = folded.with_keys(keys)
    if spec.kind == "SESSION":
        return _sessions(plan, folded, key, spec)
    end = Pane(typed(dot(key.copy(), "end"), TIMESTAMP), window_bounds(key, spec), MergeKey(END, TIMESTAMP), True)
    parts = merged(folded, plan.columns, end)
    parts = replace(parts, plan=replace(parts.plan, derived=derived_bounds(spec)))
    return Changing(parts, WindowsPlan(END, 0, parts.shown))


def _sessions(plan: LogicalPlan, folded: Running, key: exp.Expr, spec: WindowSpec) -> Changing:
    """Sessions: a batch is reduced to the times of each key, of which the store makes sessions."""
    place = window_call(folded.block, key)
    if place is None:
        raise NotMergeableError("the window is not read as it is")
    time = place[1].expressions[0].copy()
    if isinstance(time, exp.Column) and time.name == WINDOW_COLUMN:
        raise NotMergeableError("they are sessions of windows")
    if isinstance(key, exp.Column):
        place[1].replace(time)
        time = key.copy()
    at = Pane(typed(time, TIMESTAMP), window_bounds(key, spec), MergeKey(ROW_TIME, TIMESTAMP), values=True)
    parts = merged(folded, plan.columns, at)
    if reads_window(parts.core, ROW_TIME):
        raise NotMergeableError("the window is read before its rows are aggregated")
    parts = replace(parts, plan=replace(parts.plan, derived=bounds_text(f'"{START}"')[1:]))
    return Changing(parts, WindowsPlan(ROW_TIME, spec.gap_us, parts.shown))


def window_bounds(key: exp.Expr, spec: WindowSpec) -> tuple[tuple[str, exp.Expr], ...]:
    """The trees that read a window above its aggregate, and the names under which the store has what they mean."""
    known = {START: "start", END: "end", TIME: "time"}
    bounds = [(name, typed(window_bound(key.copy(), part, spec), TIMESTAMP)) for name, part in known.items()]
    whole = key.copy()
    if spec.kind == "CUMULATE":
        start, end = (window_bound(key.copy(), part, spec) for part in ("start", "end"))
        whole = call("named_struct", exp.Literal.string("start"), start, exp.Literal.string("end"), end)
    return (*bounds, (WINDOW, typed(whole, WINDOW_TYPE)))


def derived_bounds(spec: WindowSpec) -> tuple[tuple[str, str], ...]:
    """The bounds of a window from its end, as DuckDB computes them."""
    end = f'epoch_us("{END}")'
    start = f"{end} - {spec.size_us}"
    if spec.kind == "CUMULATE":
        last, size = f"({end} - 1)", spec.size_us  # the end of a step belongs to the next one
        start = f"{last} - (({last} - {spec.offset_us}) % {size} + {size}) % {size}"
    return bounds_text(f"make_timestamp({start})")


def bounds_text(start: str) -> tuple[tuple[str, str], ...]:
    """Start, time and the window as a whole, from the text of the start and the column of the end."""
    return (
        (START, start),
        (TIME, f'make_timestamp(epoch_us("{END}") - {TIME_BEFORE_END_US})'),
        (WINDOW, f'struct_pack(start := {start}, "end" := "{END}")'),
    )
