"""OVER on streams: the rows of each window are ranked by Spark itself when the window closes.

    SELECT * FROM (
      SELECT …, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) AS rn FROM …
    ) WHERE rn <= 3

Spark has no ROW_NUMBER on a stream. A window is emitted whole, in one batch, so the rows of each window are collected,
sorted and numbered (see rank_trees), which is an aggregate Spark keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, UnsupportedError
from penstock.plan.block import Block, Item
from penstock.plan.context import RankLimit, Relation
from penstock.plan.kept_clock import is_random
from penstock.plan.nodes import Node, TopN
from penstock.plan.projection import select_tree
from penstock.plan.rank_trees import rank_tree
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE, EventTime, Field, Mode, State
from penstock.plan.scope import window_bound
from penstock.plan.session_rows import one_session
from penstock.plan.trees import column, nondeterministic_name
from penstock.plan.window_calls import WindowBinding
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit
from penstock.types import INT

if TYPE_CHECKING:
    from penstock.plan.windows import WindowSpec

_RANKS = frozenset({"row_number", "rank", "dense_rank"})


def check_partitions(block: Block) -> None:
    """Raises NONDETERMINISTIC_KEY where rows of a stream are put together by a value that is another one each time."""
    if block.node.bounded:
        return
    for item in block.items:
        for window in item.tree.find_all(exp.Window):
            for key in window.args.get("partition_by") or []:
                found = next((node for node in key.walk() if is_random(node)), None)
                if found is not None:
                    raise UnsupportedError(
                        "NONDETERMINISTIC_KEY",
                        f"{nondeterministic_name(found)} differs each time it is computed and cannot be a key of OVER",
                        hint="partition by a column, or by a function of columns",
                        span=span_of(found),
                    )


def window_ranks(block: Block, node: Node, limit: RankLimit | None, windows: dict[str, WindowSpec]) -> Relation | None:
    """The relation of a SELECT that ranks the rows of each window, or None where Spark does not keep them."""
    binding = _binding(block, windows)
    ranked = [item for item in block.items if isinstance(item.tree, exp.Window)]
    if binding is None or binding.spec.processing or node.mode is not Mode.APPEND or _shows_changes(block, limit):
        return None
    if not ranked or len(block.binder.over) != len(ranked) or not all(_rank_of(item.tree) for item in ranked):
        return None
    partition, order = _over(ranked[0].tree)
    if any(_over(item.tree) != (partition, order) for item in ranked) or not isinstance(order, exp.Order):
        return None
    parts = {part for key in partition if (part := _part(key, binding)) is not None}
    names = {key.name for key in partition if isinstance(key, exp.Column)}
    if not _one_window(block.node, binding.spec, parts, names):
        return None
    of_rank = limit is not None and any(item.field.name == limit.column for item in ranked)
    most = limit.limit if limit is not None and of_rank else None
    if most is not None and most < 1:
        return None
    keys = [key for key in partition if _part(key, binding) is None]
    return _relation(block, node, binding, ranked, keys, order, most)


def _shows_changes(block: Block, limit: RankLimit | None) -> bool:
    """Whether the ranks of open windows are asked for, too. What is asked of the SELECT that filters by a rank is asked
    of the one that ranks; whether an aggregate below shows its changes is its own matter."""
    context = block.context
    around = context.depth - (1 if limit is not None else 0)
    asked = context.emit if context.emit_depth in (context.depth, around) else None
    if asked is None and block.grouping is None and context.settings.emit_changes_always:
        return True
    return asked is Emit.CHANGES


def _binding(block: Block, windows: dict[str, WindowSpec]) -> WindowBinding | None:
    if block.grouping is not None:
        return block.grouping.window
    if len(windows) != 1:
        return None
    alias, spec = next(iter(windows.items()))
    return WindowBinding(spec, column(WINDOW_COLUMN, alias))


def _rank_of(tree: exp.Expr) -> str | None:
    """The name of a rank."""
    function = tree.this
    name = function.name.lower() if isinstance(function, exp.Anonymous) else ""
    return name if name in _RANKS else None


def _over(tree: exp.Expr) -> tuple[list[exp.Expr], exp.Expr | None]:
    return list(tree.args.get("partition_by") or []), tree.args.get("order")


def _part(key: exp.Expr, binding: WindowBinding) -> str | None:
    """Which part of the window a key is."""
    if key == binding.tree:
        return "window"
    parts = ("start", "end", "time")
    return next((part for part in parts if key == window_bound(binding.tree.copy(), part, binding.spec)), None)


def _one_window(node: Node, spec: WindowSpec, parts: set[str], keys: set[str]) -> bool:
    """Whether rows that are the same in these parts and keys are those of one window: the steps of a cumulating window
    have one start."""
    if spec.kind == "CUMULATE":
        return bool(parts & {"window", "end", "time"})
    return one_session(node, spec, parts, keys) if spec.kind == "SESSION" else bool(parts)


def _relation(
    block: Block,
    node: Node,
    binding: WindowBinding,
    ranked: list[Item],
    keys: list[exp.Expr],
    order: exp.Order,
    limit: int | None,
) -> Relation:
    shown = [item for item in block.items if item not in ranked]
    extra = [Item(Field(f"__p{i}", None), key, "") for i, key in enumerate(keys)]
    extra += [Item(Field(f"__o{i}", None), entry.this, "") for i, entry in enumerate(order.expressions)]
    extra.append(Item(Field(WINDOW_COLUMN, WINDOW_TYPE), binding.tree.copy(), ""))
    base = select_tree(block, [*shown, *extra])
    names = [item.field.name for item in shown]
    groups = [WINDOW_COLUMN, *(f"__p{i}" for i in range(len(keys)))]
    ranks = {item.field.name: _rank_of(item.tree) or "" for item in ranked}
    tree = rank_tree(base, names, ranks, order, groups, limit)
    fields = tuple(
        Field(item.field.name, INT, nullable=False) if item.field.name in ranks else item.field for item in block.items
    )
    fields += (Field(WINDOW_COLUMN, WINDOW_TYPE, hidden=True, window=True, nullable=False),)
    delay = block.node.event_time.delay_us if block.node.event_time else 0
    written = block.binder.over[0]
    top = TopN(
        fields=fields,
        inputs=(node,),
        event_time=EventTime(WINDOW_COLUMN, delay, of_window=True),
        state=State("the rows of each open window", "dropped when the watermark passes the end of the window"),
        window=binding.spec,
        functions=tuple(dict.fromkeys(name.upper() for name in ranks.values())),
        partition_by=tuple(format_tree(key) for key in written.args.get("partition_by") or []),
        order_by=tuple(format_tree(entry) for entry in _terms(written)),
        limit=limit,
    )
    return Relation(top, tree, binding.spec)


def _terms(written: exp.Window) -> list[exp.Expr]:
    order = written.args.get("order")
    return list(order.expressions) if isinstance(order, exp.Order) else []


def refuse_over(written: exp.Window, *, processing: bool) -> NotYetError:
    """The error for OVER on a stream that is no rank within a window."""
    function = written.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    name = function.name if isinstance(function, exp.Anonymous) else "OVER"
    if name.lower() in _RANKS:
        condition, what = "UPDATING_TOP_N", f"{name} over a stream"
        hint = (
            "rank within a window that closes: PARTITION BY window_start, window_end over a windowed aggregate, "
            "with ROW_NUMBER() and a filter rn <= N around it; the first row of a key to arrive is ROW_NUMBER() = 1 "
            "with ORDER BY PROCTIME()"
        )
    else:
        condition, what = "UPDATING_WINDOW_FUNCTION", f"{name} OVER (…) on a stream"
        hint = "aggregate in a window instead, or query a materialized view with OVER"
    if processing:
        hint = "keep the windows of processing time as a materialized view, and write OVER in a view over it"
    return NotYetError(condition, f"{what} is not there yet", hint=hint, span=span_of(written), mode=Mode.RETRACT.value)
