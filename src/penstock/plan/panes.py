"""Which windows the view store keeps as panes, and what Spark does for them.

Spark puts a row into each of its size / slide windows and keeps a group of every one. With panes it reduces a batch to
partial results by key and pane and keeps nothing; the store merges a window when it closes. Both give the same rows: a
row that comes behind the watermark counts in those of its windows that are open, and in no other. A window of TUMBLE is
one pane: there the gain is that no group goes through Spark's state (benchmarks/hop.py).

What has to hold: one window, TUMBLE or HOP with EMIT FINAL, over one stream, for a view, or for a sink of windows that
overlap much; aggregates that merge; nothing above them but projections and conditions that the store can compute;
nothing below them that reads the window itself.

Windows whose rows are compared with each other when they close are kept in the same way: see best_rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.best_rows import LARGEST, BestRows, split_conditions
from penstock.plan.closing import closes
from penstock.plan.merging import Compared, Merged, NotMergeableError, Pane, merged
from penstock.plan.nodes import Aggregate, Join
from penstock.plan.pane_plan import END, PANE, START, TIME, WINDOW, PanePlan
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE
from penstock.plan.running import Running, running
from penstock.plan.scope import window_bound
from penstock.plan.spark_blocks import (
    aggregates,
    is_window_call,
    makes_rows,
    relations,
    selects,
    stream_joins,
    window_call,
    window_key,
)
from penstock.plan.trees import call, number, typed
from penstock.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.relation import Field
    from penstock.plan.windows import WindowSpec

# The rows of a view go to the store anyway. Those of a sink can stay with Spark's executors, and do unless panes are
# several times fewer: a row has to be in so many windows.
FEWEST_WINDOWS_OF_A_SINK: Final = 3
# Results for which the view store can keep windows: a view, and a sink, which is handed what closes.
STORED: Final = frozenset({"materialized view", "sink", "topic"})
_CUT: Final = ("TUMBLE", "HOP")  # the windows that panes make up
_KINDS: Final = "panes are kept for TUMBLE and HOP"
_ABOVE: Final = frozenset({"expressions", "from_", "where"})
_GROUPED: Final = frozenset({"expressions", "from_", "where", "joins", "group", "having"})


@frozen
class Panes:
    """The parts of a job that keeps panes."""

    parts: Merged
    plan: PanePlan


def panes_of(plan: LogicalPlan, found: JobScans) -> Panes | None:
    """The panes of a query; None where it has no such windows, NotMergeableError where Spark has to keep them."""
    spec = _window(plan)
    if spec is None:
        return None
    made = pane_plan(spec)
    if plan.root.kind != "materialized view" and made.windows < FEWEST_WINDOWS_OF_A_SINK:
        return None
    return _panes(plan, found, made, None)


def best_panes(plan: LogicalPlan, found: JobScans, best: BestRows) -> Panes:
    """The panes of windows of which only the best rows are shown; NotMergeableError where Spark has to join them."""
    specs = [node.window for node in plan.nodes() if isinstance(node, Join) and node.window is not None]
    if len(specs) != 1:
        raise NotMergeableError(_KINDS)
    if any(isinstance(node, Aggregate) and node.grouping_sets for node in plan.nodes()):
        raise NotMergeableError("there are grouping sets")
    return _panes(plan, found, pane_plan(specs[0]), best)


def pane_plan(spec: WindowSpec) -> PanePlan:
    """How windows are cut into panes; NotMergeableError for those that are not made of panes of one length."""
    if spec.kind not in _CUT:
        raise NotMergeableError(_KINDS)
    slide = spec.slide_us or spec.size_us
    return PanePlan(spec.size_us, slide, spec.offset_us % slide)


def _panes(plan: LogicalPlan, found: JobScans, made: PanePlan, best: BestRows | None) -> Panes:
    if len(found.scans) != 1 or not one_aggregate(found.tree):
        raise NotMergeableError("panes are kept for one stream and one GROUP BY")
    parts = pane_parts(found.tree, made, plan.columns, best)
    return Panes(parts, replace(made, shown=parts.shown))


def pane_parts(tree: exp.Expr, made: PanePlan, fields: tuple[Field, ...], best: BestRows | None = None) -> Merged:
    """A grouped SELECT by pane, with the projections over it; NotMergeableError where Spark has to keep its windows."""
    folded = running(tree.copy())
    key = window_key(folded.block) if folded is not None else None
    place = window_call(folded.block, key) if folded is not None and key is not None else None
    if folded is None or key is None or place is None or place[1].name.lower() != "window":
        raise NotMergeableError("the window is not read as it is")
    pane = _pane(place[1].expressions[0], made)
    bounds = {
        START: window_bound(key.copy(), "start", None),
        END: window_bound(key.copy(), "end", None),
        TIME: window_bound(key.copy(), "time", None),
    }
    if isinstance(key, exp.Column):
        place[1].replace(pane)
        pane = key.copy()
    keys = tuple(each for each in folded.keys if each != key and each not in bounds.values())
    known = [(name, typed(bound, TIMESTAMP)) for name, bound in bounds.items()]
    stands_for = Pane(pane, (*known, (WINDOW, typed(key.copy(), WINDOW_TYPE))))
    folded, compared = (folded, None) if best is None else _compared(folded, best)
    parts = merged(folded.with_keys(keys), fields, stands_for, compared)
    if reads_window(parts.core, PANE):
        raise NotMergeableError("the window is read before its rows are aggregated")
    return parts


def _compared(folded: Running, best: BestRows) -> tuple[Running, Compared]:
    """The aggregate with the condition that its groups fulfil before they are compared, and the comparison."""
    assert folded.keep is not None
    before, marker, after = split_conditions(folded.keep)
    value, *by = marker.expressions
    return replace(folded, keep=before), Compared(value, tuple(by), after, marker.name == LARGEST, best.rows)


def _window(plan: LogicalPlan) -> WindowSpec | None:
    windows = [node for node in plan.nodes() if isinstance(node, Aggregate) and node.window is not None]
    if plan.root.kind not in STORED or len(windows) != 1 or windows[0].window is None:
        return None
    return windows[0].window if windows[0].window.kind in _CUT and not windows[0].grouping_sets else None


def one_aggregate(tree: exp.Expr) -> bool:
    """Whether a query is projections over one grouped SELECT, below which nothing is kept."""
    while isinstance(tree, exp.Select) and not aggregates(tree):
        below = list(relations(tree).values())
        used = {name for name, value in tree.args.items() if value}
        if len(below) != 1 or used - _ABOVE or any(_makes_rows(item) for item in tree.expressions):
            return False
        tree = below[0]
    if not isinstance(tree, exp.Select) or {name for name, value in tree.args.items() if value} - _GROUPED:
        return False
    blocks = selects(tree)
    return not any(aggregates(block) or closes(block) for block in blocks[1:]) and not any(map(stream_joins, blocks))


def _makes_rows(item: exp.Expr) -> bool:
    return makes_rows(item) or item.find(exp.Window) is not None


def _pane(time: exp.Expr, plan: PanePlan) -> exp.Expr:
    """The start of the pane that a time lies in."""
    micros = call("unix_micros", time.copy())
    length = plan.pane_us
    offset = plan.offset_us % length
    shifted = exp.Sub(this=micros.copy(), expression=number(offset)) if offset else micros.copy()
    return typed(exp.Paren(this=exp.Sub(this=micros, expression=call("pmod", shifted, number(length)))), BIGINT)


def reads_window(core: exp.Select, stands_in: str) -> bool:
    """Whether something in the rows of a batch looks at a window, in whose place the column `stands_in` is there."""
    handed_on = {id(item.unalias()) for block in selects(core) for item in block.expressions}
    for node in core.walk():
        if is_window_call(node):
            return True
        if isinstance(node, exp.Column) and node.name == WINDOW_COLUMN and id(node) not in handed_on:
            return True
    return any(
        item.unalias().name == WINDOW_COLUMN and item.alias != stands_in
        for item in core.expressions
        if isinstance(item.unalias(), exp.Column)
    )
