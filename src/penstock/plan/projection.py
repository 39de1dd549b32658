"""The top of a SELECT: its columns, and the hidden ones that carry the event time to the query around."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.plan.block import Block, Item
from penstock.plan.context import Relation
from penstock.plan.grouping import Grouping
from penstock.plan.join_times import note_time
from penstock.plan.nodes import Node, Project
from penstock.plan.relation import (
    EVENT_TIME_COLUMN,
    WINDOW_COLUMN,
    WINDOW_TYPE,
    EventTime,
    Field,
    Mode,
)
from penstock.plan.trees import aliased, column, own_nodes, select, subquery
from penstock.plan.windows import WindowSpec

_HAVING = "__having"


def project(block: Block, node: Node) -> Relation:
    """The projection on top, with the hidden columns that carry the event time to the query around."""
    items = list(block.items)
    window: WindowSpec | None = None
    event_time: EventTime | None = None
    hidden: list[Item] = []
    grouping = block.grouping
    if grouping is not None:
        if grouping.window is not None and node.mode is Mode.APPEND:
            window = grouping.window.spec
            hidden.append(_hidden(WINDOW_COLUMN, grouping.window.tree.copy()))
            delay = block.node.event_time.delay_us if block.node.event_time else 0
            event_time = EventTime(WINDOW_COLUMN, delay, of_window=True)
    elif not node.bounded and block.bound.carrier is not None and node.event_time is not None:
        window, event_time = _carry(block, node, items, hidden)
    mode, key = _mode(node, grouping, items)
    if not any(item.field.name == WINDOW_COLUMN for item in hidden):
        for item in items:  # nothing carries the window further: its bounds are plain columns from here on
            item.field = replace(
                item.field, part=None, window=False, event_time=item.field.event_time and not item.field.part
            )
    fields = tuple(item.field for item in items) + tuple(item.field for item in hidden)
    texts = tuple(item.text if item.text == item.field.name else f"{item.text} AS {item.field.name}" for item in items)
    project = Project(
        fields=fields,
        inputs=(node,),
        mode=mode,
        key=key,
        event_time=None if node.bounded else event_time,
        bounded=node.bounded,
        columns=texts,
    )
    return Relation(
        project,
        note_time(select_tree(block, items + hidden), event_time.column if event_time is not None else None),
        window,
        _open(block),
        unmerged=grouping is None and block.bound.unmerged,
    )


def _open(block: Block) -> bool:
    return any(item.field.name == "*" for item in block.items)


def _hidden(name: str, tree: exp.Expr) -> Item:
    sql_type = WINDOW_TYPE if name == WINDOW_COLUMN else None
    return Item(Field(name, sql_type, hidden=True, window=name == WINDOW_COLUMN, nullable=False), tree, name)


def _carry(
    block: Block, node: Node, items: list[Item], hidden: list[Item]
) -> tuple[WindowSpec | None, EventTime | None]:
    carrier = block.bound.carrier
    event_time = node.event_time
    assert carrier is not None
    assert event_time is not None
    if isinstance(carrier, exp.Column) and carrier.name == WINDOW_COLUMN:
        hidden.append(_hidden(WINDOW_COLUMN, carrier.copy()))
        return block.bound.windows.get(carrier.table), event_time
    for item in items:
        if item.tree == carrier:
            return None, replace(event_time, column=item.field.name)
    if block.context.depth == 0:
        return None, None
    entry = Field(EVENT_TIME_COLUMN, None, hidden=True, event_time=True)
    hidden.append(Item(entry, carrier.copy(), EVENT_TIME_COLUMN))
    return None, replace(event_time, column=EVENT_TIME_COLUMN)


def _mode(node: Node, grouping: Grouping | None, items: list[Item]) -> tuple[Mode, tuple[str, ...] | None]:
    """The rows of an updating aggregate are told apart by its keys; unless all are shown, they are retracted."""
    if node.mode is Mode.APPEND:
        return Mode.APPEND, None
    if grouping is not None:
        if node.mode is Mode.RETRACT or grouping.sets:
            return Mode.RETRACT, None
        names: list[str] = []
        for key in grouping.keys:
            found = [item.field.name for item in items if item.tree == key]
            if not found and grouping.window is not None and key == grouping.window.tree:
                found = _window_shown(items, grouping.window.spec)
            if not found:
                return Mode.RETRACT, None
            names += found[:1]
        return Mode.UPSERT, tuple(dict.fromkeys(names))
    if node.key is None:
        return node.mode, None
    kept = []
    for name in node.key:
        shown = [i.field.name for i in items if isinstance(i.tree, exp.Column) and i.tree.name == name]
        if not shown:
            return Mode.RETRACT, None
        kept.append(shown[0])
    return node.mode, tuple(kept)


def _window_shown(items: list[Item], spec: WindowSpec) -> list[str]:
    """The output columns that tell windows of one kind apart: the window itself, or one of its bounds."""
    whole = [item.field.name for item in items if item.field.window]
    apart = ("end", "time") if spec.kind == "CUMULATE" else ("start", "end", "time")
    return whole or [item.field.name for item in items if item.field.part in apart][:1]


def select_tree(block: Block, items: list[Item]) -> exp.Select:
    """The block with these columns as Spark reads it."""
    clauses: dict[str, object] = {}
    columns = [aliased(item.tree.copy(), item.field.name) if item.field.name != "*" else exp.Star() for item in items]
    if block.bound.source is not None:
        clauses["from_"] = exp.From(this=block.bound.source)
    clauses["joins"] = block.bound.joins
    if block.where is not None:
        clauses["where"] = exp.Where(this=block.where)
    if block.grouping is not None:
        group = block.grouping.clause()
        if group is not None:
            clauses["group"] = group
    outside = block.having is not None and _uses_window_call(block)
    if block.having is not None and not outside:
        clauses["having"] = exp.Having(this=block.having)
    if outside:
        columns.append(aliased(block.having.copy(), _HAVING))  # type: ignore[union-attr]  # not None: see above
    tree = exp.Select(expressions=columns, **{key: value for key, value in clauses.items() if value})
    if not outside:
        return tree
    shown: list[exp.Expr] = [column(item.field.name, "__grouped") for item in items]
    return select(shown, subquery(tree, "__grouped"), where=exp.Where(this=column(_HAVING, "__grouped")))


def _uses_window_call(block: Block) -> bool:
    """Whether HAVING speaks of the window of the GROUP BY: Spark does not find a window call there."""
    window = block.grouping.window if block.grouping is not None else None
    if window is None or window.written is None or block.having is None:
        return False
    return any(node == window.tree for node in own_nodes(block.having))
