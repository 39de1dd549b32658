"""Which windows over processing time a job keeps, and what Spark does for them.

The rows of a batch all have the time of the batch, so Spark aggregates it by its other keys alone. The view store is
told the windows of that time, and keeps them as panes where each is shown once, as windows that change otherwise;
sessions, which are not known before they end, always as windows that change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.changing import bounds_text, derived_bounds, window_bounds
from penstock.plan.join_times import is_stand_in
from penstock.plan.merge_plan import MergeKey
from penstock.plan.merging import Merged, NotMergeableError, Pane, merged
from penstock.plan.nodes import Aggregate, WindowAssign
from penstock.plan.pane_plan import END, PANE, START, PanePlan
from penstock.plan.panes import one_aggregate, reads_window
from penstock.plan.processing_plan import ProcessingPlan
from penstock.plan.running import running
from penstock.plan.spark_blocks import window_call, window_key
from penstock.plan.windows_plan import ROW_TIME, WindowsPlan
from penstock.sql.statements import Emit
from penstock.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.windows import WindowSpec


@frozen
class Processing:
    """The parts of a job over processing time: kept as panes, or as windows that change."""

    parts: Merged
    plan: ProcessingPlan
    panes: PanePlan | None
    windows: WindowsPlan | None


def over_processing_time(plan: LogicalPlan) -> Aggregate | None:
    """The aggregate of a query by a window over processing time; None where the query has no such window."""
    aggregates: list[Aggregate] = []
    assigned = False
    for node in plan.nodes():
        if isinstance(node, WindowAssign | Aggregate) and node.window is not None and node.window.processing:
            assigned = True
        if isinstance(node, Aggregate) and node.window is not None:
            aggregates.append(node)
    if not assigned:
        return None
    if len(aggregates) != 1 or aggregates[0].window is None or not aggregates[0].window.processing:
        raise _refused("they are not grouped, or there are several windows")
    return aggregates[0]


def processing_of(plan: LogicalPlan, node: Aggregate) -> Processing:
    """How the windows are kept; QUERY_NOT_YET where they are not."""
    try:
        return _processing(plan, node)
    except NotMergeableError as error:
        raise _refused(str(error)) from None


def _processing(plan: LogicalPlan, node: Aggregate) -> Processing:
    spec = node.window
    assert spec is not None
    tree = plan.spark.copy()
    if node.grouping_sets or not one_aggregate(tree):
        raise NotMergeableError("they are kept for one GROUP BY over rows that Spark does not keep")
    folded = running(tree)
    key = window_key(folded.block) if folded is not None else None
    place = window_call(folded.block, key) if folded is not None and key is not None else None
    if folded is None or key is None or place is None:
        raise NotMergeableError("the window is not read as it is")
    keys = tuple(each for each in folded.keys if each != key and not is_stand_in(each))
    shows_changes = node.emit is Emit.CHANGES
    if isinstance(key, exp.Column):
        place[1].replace(exp.Null())
    by = _key(spec, shows_changes=shows_changes)
    stamp = Pane(None, window_bounds(key, spec), by, functions=shows_changes and spec.kind != "SESSION", values=True)
    parts = merged(folded.with_keys(keys), plan.columns, stamp)
    if reads_window(parts.core, by.name):
        raise NotMergeableError("the window is read before its rows are aggregated")
    cumulates = spec.kind == "CUMULATE"
    slide = spec.step_us if cumulates else spec.slide_us or spec.size_us
    begins = spec.offset_us % (spec.size_us if cumulates else slide) if slide else 0
    if not shows_changes and spec.kind != "SESSION":
        panes = PanePlan(spec.size_us, slide, begins, parts.shown, cumulates)
        offset = begins if cumulates else begins % panes.pane_us
        found = ProcessingPlan(PANE, spec.size_us, panes.pane_us, offset, cumulates=cumulates)
        return Processing(parts, found, panes, None)
    derived = bounds_text(f'"{START}"')[1:] if spec.kind == "SESSION" else derived_bounds(spec)
    parts = replace(parts, plan=replace(parts.plan, derived=derived))
    found = ProcessingPlan(by.name, spec.size_us, slide, begins, spec.gap_us, cumulates)
    windows = WindowsPlan(by.name, spec.gap_us, parts.shown, final=not shows_changes)
    return Processing(parts, found, None, windows)


def _key(spec: WindowSpec, *, shows_changes: bool) -> MergeKey:
    if spec.kind == "SESSION":
        return MergeKey(ROW_TIME, TIMESTAMP)
    return MergeKey(END, TIMESTAMP) if shows_changes else MergeKey(PANE, BIGINT)


def _refused(why: str) -> NotYetError:
    return NotYetError(
        "PROCESSING_TIME_WINDOW",
        f"such windows over processing time are not there yet: {why}",
        hint="keep one GROUP BY in a materialized view, with COUNT, SUM, MIN, MAX, AVG, COUNT(DISTINCT), percentiles "
        "or STDDEV of one column; rank its rows in a view over it",
    )
