"""Which joins of windows the view store answers when they close, and what Spark does for them.

Spark would keep the groups of each side, and then the closed windows of each side until its join has seen the other.
Kept as panes, a side costs no state there: Spark reduces a batch to partial results by side, key and pane, and the
store joins the windows of all sides when the watermark closes them. Inner, outer, semi and anti joins are the same to
it, because a window that closes is complete on every side.

What has to hold: a materialized view; TUMBLE or HOP with EMIT FINAL; each side one stream and one GROUP BY that can be
kept as panes (see panes.py); each join by the window, or an inner one by the end of windows that differ: what ends at
the same time closes with the same watermark; above the sides nothing but joins,
projections and conditions that the store can compute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.finish_plan import SIDE
from penstock.plan.job_scans import job_scans
from penstock.plan.join_times import closing_together
from penstock.plan.joined_pane_plan import JoinedPanes, PaneSide, batch_column
from penstock.plan.merge_plan import MergeKey, MergePlan, Partial, Reduction
from penstock.plan.merging import BATCH_VIEW, Merged, NotMergeableError
from penstock.plan.nodes import Aggregate
from penstock.plan.pane_plan import PANE, PanePlan
from penstock.plan.panes import one_aggregate, pane_parts, pane_plan
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE, Field
from penstock.plan.spark_blocks import (
    aggregates,
    lengths_us,
    makes_rows,
    own_window_calls,
    relations,
    scans,
    selects,
    stream_joins,
    window_call,
    window_key,
)
from penstock.plan.store_terms import DiffersError, kept
from penstock.plan.store_text import kept_query
from penstock.plan.trees import aliased, call, column, dot, identifier, number, select, type_of, typed
from penstock.types import INT, TIMESTAMP, SqlType

if TYPE_CHECKING:
    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan

_JOINED: Final = frozenset({"expressions", "from_", "joins", "where"})
_ONE_GROUP: Final = "the view store joins windows of one GROUP BY over one stream each"
_ONE_SIDE: Final = frozenset({"semi", "anti"})


@frozen
class JoinOfPanes:
    """The parts of a job that joins windows when they close. `types` are those of the columns of the view."""

    core: exp.Query
    batch: exp.Select
    reductions: tuple[Reduction, ...]
    merge: MergePlan
    panes: PanePlan
    joined: JoinedPanes
    types: tuple[SqlType, ...]


def joined_panes(plan: LogicalPlan, found: JobScans) -> JoinOfPanes | None:
    """The parts of a job that joins windows in the view store; None where no windows are joined, NotMergeableError
    where Spark has to join them."""
    joins = [time for block in selects(found.tree) for _, time in stream_joins(block)]
    nodes = [node for node in plan.nodes() if isinstance(node, Aggregate) and node.window is not None]
    if plan.root.kind != "materialized view" or not joins or not nodes:
        return None
    if any(time.bound != "window" for time in joins):
        return None
    plans = {pane_plan(node.window) for node in nodes if node.window is not None}
    if any(node.grouping_sets for node in nodes):
        raise NotMergeableError("the view store joins windows without grouping sets")
    tree = found.tree.copy()
    sides = _Sides(frozenset(plans), frozenset(scan.view for scan in found.scans))
    sides.take(tree)
    _put_in_order(tree)
    try:
        text, columns = kept_query(tree, sides.types)
    except DiffersError as error:
        raise NotMergeableError("what stands above the windows is computed in a way that only Spark knows") from error
    return sides.made(text, _types(plan, columns))


def closes_together(plan: LogicalPlan) -> bool:
    """Whether the view store answers the joins of a query when their windows close, though Spark would keep their rows
    for ever."""
    if not any(time.ends is not None for block in selects(plan.spark) for _, time in stream_joins(block)):
        return False
    tree = closing_together(plan.spark.copy())
    assert isinstance(tree, exp.Query)
    try:
        return joined_panes(plan, job_scans(plan, tree)) is not None
    except (NotMergeableError, NotYetError):
        return False


def _types(plan: LogicalPlan, columns: list[tuple[str, SqlType | None]]) -> tuple[SqlType, ...]:
    found: list[SqlType] = []
    for (name, kind), field in zip(columns, plan.columns, strict=True):
        if kind is None or (field.type is not None and kept(field.type) != kind):
            raise NotMergeableError(f"the type of {name} is not known")
        found.append(kind)
    return tuple(found)


class _Sides:
    """The GROUP BYs of a tree, each of which becomes a relation of its own there."""

    def __init__(self, plans: frozenset[PanePlan], streams: frozenset[str]) -> None:
        """`plans` are those of the windows of all sides."""
        self.types: dict[str, dict[str, SqlType | None]] = {}
        self._plans = plans
        self._panes: list[PanePlan] = []
        self._streams = streams
        self._names: list[str] = []
        self._parts: list[Merged] = []

    def take(self, query: exp.Expr) -> None:
        """Take the sides out of a query, in place."""
        if not isinstance(query, exp.Select) or aggregates(query) or own_window_calls(query):
            raise NotMergeableError(_ONE_GROUP)
        if {name for name, value in query.args.items() if value} - _JOINED or any(map(_makes_rows, query.expressions)):
            raise NotMergeableError("above joined windows the view store computes columns and conditions")
        for alias, below in relations(query).items():
            if isinstance(below, exp.Select) and one_aggregate(below):
                place = exp.TableAlias(this=identifier(alias))
                below.parent.replace(exp.Table(this=identifier(self._add(below)), alias=place))  # type: ignore[union-attr]
            else:
                self.take(below)

    def _add(self, query: exp.Select) -> str:
        if sum(table.name in self._streams for table in scans(query)) != 1:
            raise NotMergeableError(_ONE_GROUP)
        fields = tuple(_field(item) for item in query.expressions)
        panes = _panes_of(query)
        if panes not in self._plans:
            raise NotMergeableError(_ONE_GROUP)
        parts = pane_parts(query, panes, fields)
        name = f"__closed_{len(self._names)}"
        columns = tuple(replace(entry, type=kept(entry.type)) for entry in parts.plan.columns)
        unknown = [each.name for each in columns if each.type is None]
        unknown += [each.name for each in parts.plan.keys if each.type is None]
        unknown += [each.name for each in parts.plan.partials if each.type is None]
        if unknown:
            raise NotMergeableError(f"the type of {unknown[0]} is not known")
        self.types[name] = {each.name: each.type for each in columns}
        self._names.append(name)
        self._panes.append(panes)
        self._parts.append(replace(parts, plan=replace(parts.plan, columns=columns)))
        return name

    def made(self, text: str, types: tuple[SqlType, ...]) -> JoinOfPanes:
        keys = [MergeKey(SIDE, INT), MergeKey(PANE, self._parts[0].plan.keys[0].type)]
        partials: list[Partial] = []
        reductions: list[Reduction] = []
        shown: list[exp.Expr] = []
        for place, parts in enumerate(self._parts):
            own = [key for key in parts.plan.keys if key.name != PANE]
            keys += [MergeKey(batch_column(place, key.name), key.type) for key in own]
            partials += [
                Partial(batch_column(place, part.name), part.type, part.how, part.function)
                for part in parts.plan.partials
            ]
            reductions += [
                Reduction(batch_column(place, each.partial), each.how, batch_column(place, each.argument))
                for each in parts.reductions
            ]
            results = {part.name for part in parts.plan.partials}
            shown += [_of_side(item, place) for item in parts.batch.expressions if item.alias_or_name in results]
        by: list[exp.Expr] = [column(key.name) for key in keys]
        source = exp.Table(this=column(BATCH_VIEW).this)
        batch = select([*by, *shown], source, group=exp.Group(expressions=[key.copy() for key in by]))
        sides = tuple(
            PaneSide(name, replace(panes, shown=parts.shown), parts.plan)
            for name, panes, parts in zip(self._names, self._panes, self._parts, strict=True)
        )
        return JoinOfPanes(
            core=self._core(),
            batch=batch,
            reductions=tuple(reductions),
            merge=MergePlan(tuple(keys), tuple(partials), ()),
            panes=min(self._panes, key=lambda each: each.pane_us),
            joined=JoinedPanes(sides, text),
            types=types,
        )

    def _core(self) -> exp.Query:
        """The rows of all sides, one below the other, each in columns of its own."""
        every = [
            (place, item.alias, item.unalias())
            for place, parts in enumerate(self._parts)
            for item in parts.core.expressions
            if item.alias != PANE
        ]
        made: exp.Query | None = None
        for side, parts in enumerate(self._parts):
            pane = next(item for item in parts.core.expressions if item.alias == PANE)
            items: list[exp.Expr] = [aliased(number(side), SIDE), pane.copy()]
            items += [
                aliased(value.copy() if place == side else exp.Null(), batch_column(place, name))
                for place, name, value in every
            ]
            block = parts.core.copy()
            block.set("expressions", items)
            made = block if made is None else exp.Union(this=made, expression=block, distinct=False)
        assert made is not None
        return made


def _panes_of(query: exp.Select) -> PanePlan:
    """How the windows of a side are cut into panes."""
    block = next(each for each in selects(query) if aggregates(each))
    key = window_key(block)
    found = window_call(block, key) if key is not None else None
    if found is None:
        raise NotMergeableError(_ONE_GROUP)
    size, slide, offset = (*lengths_us(found[1]), None, None)[:3]
    assert size is not None
    return PanePlan(size, slide or size, (offset or 0) % (slide or size))


def _field(item: exp.Expr) -> Field:
    value = item.unalias()
    if isinstance(value, exp.Column) and value.name == WINDOW_COLUMN:
        return Field(item.alias_or_name, WINDOW_TYPE)
    return Field(item.alias_or_name, type_of(value))


def _of_side(item: exp.Expr, place: int) -> exp.Expr:
    """A partial result of a side, over the columns of a batch of all sides."""
    made = item.unalias().copy()
    for node in list(made.find_all(exp.Column)):
        node.replace(column(batch_column(place, node.name)))
    return aliased(made, batch_column(place, item.alias_or_name))


def _makes_rows(item: exp.Expr) -> bool:
    return makes_rows(item) or item.find(exp.Window) is not None


def _put_in_order(tree: exp.Query) -> None:
    """Windows that close at once are shown one after the other."""
    block = next(each for each in selects(tree) if stream_joins(each))
    times = [time for _, time in stream_joins(block)]
    windows = [times[0].left, *(time.right for time in times if time.kind not in _ONE_SIDE)]
    ends = [
        typed(dot(column(name, alias), "end"), TIMESTAMP)
        for alias, name in dict.fromkeys(window for window in windows if window is not None)
    ]
    end = typed(call("coalesce", *ends), TIMESTAMP) if len(ends) > 1 else ends[0]
    block.set("order", exp.Order(expressions=[exp.Ordered(this=end, desc=False, nulls_first=False)]))
