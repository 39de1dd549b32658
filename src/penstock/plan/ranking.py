"""OVER on streams: the first N rows of each window are kept by Spark itself.

    SELECT * FROM (
      SELECT …, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) AS rn FROM …
    ) WHERE rn <= 3

Spark has no ROW_NUMBER on a stream. A window is emitted whole, in one batch, so the rows of each window are collected,
sorted and cut, which is an aggregate Spark keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.block import Block, Item
from penstock.plan.context import RankLimit, Relation
from penstock.plan.joins import conjuncts_of
from penstock.plan.nodes import Node, TopN
from penstock.plan.projection import select_tree
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE, EventTime, Field, Mode, State
from penstock.plan.scope import same_name, window_bound
from penstock.plan.trees import aliased, call, column, dot, identifier, number, select, subquery, whole_number
from penstock.plan.window_calls import WindowBinding
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.types import INT

if TYPE_CHECKING:
    from penstock.plan.windows import WindowSpec

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT}
_RANKS = frozenset({"row_number", "rank", "dense_rank"})


def ranked_subquery(written: exp.Select) -> RankLimit | None:
    """How many rows of a ranked subquery a SELECT keeps: `WHERE rn <= 3` around `ROW_NUMBER() … AS rn`."""
    from_ = written.args.get("from_")
    where = written.args.get("where")
    if not isinstance(from_, exp.From) or not isinstance(where, exp.Where) or written.args.get("joins"):
        return None
    inner = from_.this
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        return None
    ranked = [
        item.alias
        for item in inner.this.expressions
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Window)
    ]
    for conjunct in conjuncts_of(where.this):
        for name in ranked:
            limit = _limit(conjunct, name)
            if limit is not None:
                return RankLimit(name, limit)
    return None


def _limit(conjunct: exp.Expr, name: str) -> int | None:
    left, right = conjunct.args.get("this"), conjunct.args.get("expression")
    kind: type[exp.Expr] = type(conjunct)
    if isinstance(right, exp.Column) and isinstance(left, exp.Literal):
        left, right = right, left
        kind = _FLIPPED.get(kind, kind)
    value = whole_number(right)
    if value is None or not isinstance(left, exp.Column):
        return None
    if not same_name(name, left.name, quoted=bool(left.this.quoted)):
        return None
    if kind is exp.LTE:
        return value
    if kind is exp.LT:
        return value - 1
    return 1 if kind is exp.EQ and value == 1 else None


def window_top_n(block: Block, node: Node, limit: RankLimit | None, windows: dict[str, WindowSpec]) -> Relation | None:
    """The relation of a ranked SELECT over a window, or None where this is no window top-N."""
    binding = _binding(block, windows)
    ranked = [item for item in block.items if isinstance(item.tree, exp.Window)]
    if limit is None or limit.limit < 1 or binding is None or node.mode is not Mode.APPEND or len(ranked) != 1:
        return None
    over = ranked[0]
    tree = over.tree
    if len(block.binder.over) != 1 or over.field.name != limit.column or not _is_row_number(tree):
        return None
    partition = list(tree.args.get("partition_by") or [])
    keys = [key for key in partition if not _bound(key, binding)]
    order = tree.args.get("order")
    if len(keys) == len(partition) or not isinstance(order, exp.Order):
        return None
    ends = [window_bound(binding.tree.copy(), part, binding.spec) for part in ("end", "time")]
    if binding.spec.kind == "CUMULATE" and not any(key in (binding.tree, *ends) for key in partition):
        return None  # the start alone does not tell the steps of a cumulating window apart
    return _relation(block, node, binding, over, keys, order, limit.limit)


def _binding(block: Block, windows: dict[str, WindowSpec]) -> WindowBinding | None:
    if block.grouping is not None:
        return block.grouping.window
    if len(windows) != 1:
        return None
    alias, spec = next(iter(windows.items()))
    return WindowBinding(spec, column(WINDOW_COLUMN, alias))


def _is_row_number(tree: exp.Expr) -> bool:
    function = tree.this
    return isinstance(function, exp.Anonymous) and function.name.lower() == "row_number"


def _bound(key: exp.Expr, binding: WindowBinding) -> bool:
    bounds = [window_bound(binding.tree.copy(), part, binding.spec) for part in ("start", "end", "time")]
    return key == binding.tree or key in bounds


def _relation(
    block: Block, node: Node, binding: WindowBinding, over: Item, keys: list[exp.Expr], order: exp.Order, limit: int
) -> Relation:
    shown = [item for item in block.items if item is not over]
    extra = [Item(Field(f"__p{i}", None), key, "") for i, key in enumerate(keys)]
    extra += [Item(Field(f"__o{i}", None), entry.this, "") for i, entry in enumerate(order.expressions)]
    extra.append(Item(Field(WINDOW_COLUMN, WINDOW_TYPE), binding.tree.copy(), ""))
    base = select_tree(block, [*shown, *extra])
    tree = _top_tree(base, shown, over, order, [WINDOW_COLUMN, *(f"__p{i}" for i in range(len(keys)))], limit)
    fields = tuple(Field(over.field.name, INT, nullable=False) if item is over else item.field for item in block.items)
    fields += (Field(WINDOW_COLUMN, WINDOW_TYPE, hidden=True, window=True, nullable=False),)
    delay = block.node.event_time.delay_us if block.node.event_time else 0
    written = block.binder.over[0]
    top = TopN(
        fields=fields,
        inputs=(node,),
        event_time=EventTime(WINDOW_COLUMN, delay, of_window=True),
        state=State("the rows of each open window", "dropped when the watermark passes the end of the window"),
        window=binding.spec,
        partition_by=tuple(format_tree(key) for key in written.args.get("partition_by") or []),
        order_by=tuple(format_tree(entry) for entry in written.args["order"].expressions),
        limit=limit,
    )
    return Relation(top, tree, binding.spec)


def _top_tree(
    base: exp.Select, shown: list[Item], over: Item, order: exp.Order, groups: list[str], limit: int
) -> exp.Select:
    names = [item.field.name for item in shown] + [f"__o{i}" for i in range(len(order.expressions))]
    pairs: list[exp.Expr] = []
    for name in names:
        pairs += [exp.Literal.string(name), column(name, "__base")]
    collected = call("collect_list", call("named_struct", *pairs))
    top = call("slice", call("array_sort", collected, _comparator(order)), number(1), number(limit))
    grouped = select(
        [column(WINDOW_COLUMN, "__base"), aliased(top, "__top")],
        subquery(base, "__base"),
        group=exp.Group(expressions=[column(name, "__base") for name in groups]),
    )
    row = column("__row", "__ranked")
    columns: list[exp.Expr] = [aliased(dot(row.copy(), item.field.name), item.field.name) for item in shown]
    position = exp.Add(this=column("__position", "__ranked"), expression=number(1))
    columns.append(aliased(position, over.field.name))
    columns.append(column(WINDOW_COLUMN, "__grouped"))
    view = exp.Lateral(
        this=call("posexplode", column("__top", "__grouped")),
        view=True,
        alias=exp.TableAlias(this=identifier("__ranked"), columns=[identifier("__position"), identifier("__row")]),
    )
    return select(columns, subquery(grouped, "__grouped"), laterals=[view])


def _comparator(order: exp.Order) -> exp.Lambda:
    """(l, r) -> CASE … END, an order over structs with NULLs and directions as written."""
    branches: list[exp.Expr] = []
    for position, entry in enumerate(order.expressions):
        left, right = (dot(column(name), f"__o{position}") for name in ("__l", "__r"))
        first = -1 if entry.args.get("nulls_first") else 1
        down = bool(entry.args.get("desc"))
        no_left = exp.Is(this=left.copy(), expression=exp.Null())
        no_right = exp.Is(this=right.copy(), expression=exp.Null())
        one = exp.And(this=no_left, expression=exp.Not(this=no_right.copy()))
        other = exp.And(this=exp.Not(this=no_left.copy()), expression=no_right)
        for condition, value in (
            (one, first),
            (other, -first),
            (exp.LT(this=left.copy(), expression=right.copy()), 1 if down else -1),
            (exp.GT(this=left.copy(), expression=right.copy()), -1 if down else 1),
        ):
            branches.append(exp.If(this=condition, true=number(value)))
    body = exp.Case(ifs=branches, default=number(0))
    return exp.Lambda(this=body, expressions=[identifier("__l"), identifier("__r")])


def refuse_over(written: exp.Window) -> NotYetError:
    """The error for OVER on a stream that is no window top-N."""
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
    return NotYetError(condition, f"{what} is not there yet", hint=hint, span=span_of(written), mode=Mode.RETRACT.value)
