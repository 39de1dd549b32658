"""DISTINCT, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.context import PlanContext, Relation
from penstock.plan.grouping import check_grouped
from penstock.plan.nodes import Aggregate, Deduplicate, Limit, Sort
from penstock.plan.relation import Mode, State
from penstock.plan.scope import same_name
from penstock.plan.trees import column, select, subquery, whole_number
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.plan.expressions import ExpressionBinder
    from penstock.plan.grouping import Grouping
    from penstock.plan.nodes import Node
    from penstock.plan.relation import Field
    from penstock.plan.windows import WindowSpec


def plan_modifiers(
    context: PlanContext,
    written: exp.Expr,
    relation: Relation,
    binder: ExpressionBinder | None = None,
    grouping: Grouping | None = None,
) -> Relation:
    """The relation with what stands behind its SELECT list."""
    if isinstance(written.args.get("distinct"), exp.Distinct) and isinstance(written, exp.Select):
        _distinct(context, written, relation)
    order = written.args.get("order")
    if isinstance(order, exp.Order):
        _order(order, relation, binder, grouping)
    offset = written.args.get("offset")
    limit = written.args.get("limit")
    if isinstance(offset, exp.Offset):
        if not relation.node.bounded:
            raise _top_n("OFFSET on a stream is not there yet", offset)
        relation.tree.set("offset", exp.Offset(expression=_count(offset.expression, "OFFSET")))
    if isinstance(limit, exp.Limit):
        _limit(limit, relation, offset)
        if context.kept and order is None:
            context.notice("LIMIT without ORDER BY keeps the first rows in the order of their columns")
    return relation


def _distinct(context: PlanContext, written: exp.Select, relation: Relation) -> None:
    node = relation.node
    state = None
    if not node.bounded:
        kept = any(_tells_apart(entry, relation.window) for entry in node.visible)
        if context.in_spark and node.mode is Mode.APPEND and not (kept or relation.open) and _has_equality(node):
            _grouped(relation)
            return
        if node.mode is not Mode.APPEND or not (kept or relation.open):
            raise NotYetError(
                "UPDATING_DISTINCT",
                "SELECT DISTINCT over a stream without its event time is not there yet",
                hint="select the event-time column or the bounds of a window too, so that old rows can be forgotten",
                span=span_of(written.expressions[0]) if written.expressions else span_of(written),
                mode=Mode.APPEND.value,
            )
        state = State("one row for each combination of values", "dropped when the watermark passes its event time")
    relation.node = Deduplicate(
        fields=node.fields,
        inputs=(node,),
        event_time=node.event_time,
        bounded=node.bounded,
        state=state,
    )
    relation.tree.set("distinct", exp.Distinct())


def _has_equality(node: Node) -> bool:
    """Whether rows can be equal: those with a map in them cannot."""
    return all(entry.type is None or entry.type.has_equality for entry in node.visible)


def _grouped(relation: Relation) -> None:
    """Makes distinct rows into groups of equal rows without an aggregate, which Spark keeps as it keeps any others."""
    node, rows = relation.node, "__rows"
    fields = tuple(replace(entry, event_time=False, part=None, window=False) for entry in node.visible)
    names = tuple(entry.name for entry in fields)
    relation.node = Aggregate(
        fields=fields,
        inputs=(node,),
        mode=Mode.UPSERT,
        key=names,
        group_by=names,
        aggregates=(),
        window=None,
        grouping_sets=False,
        state=State(f"one row for each group ({', '.join(names)})", None),
        emit=Emit.CHANGES,
    )
    keys: list[exp.Expr] = [column(name, rows) for name in names]
    relation.tree = select(
        [key.copy() for key in keys], subquery(relation.tree, rows), group=exp.Group(expressions=keys)
    )
    relation.window = None


def _tells_apart(entry: Field, window: WindowSpec | None) -> bool:
    """Whether a column says when its row can be forgotten; the start of a cumulating window is that of every step."""
    if entry.part == "start" and window is not None and window.kind == "CUMULATE":
        return False
    return entry.event_time or entry.part is not None or entry.window


def _order(order: exp.Order, relation: Relation, binder: ExpressionBinder | None, grouping: Grouping | None) -> None:
    node = relation.node
    if not node.bounded:
        if relation.open:
            return
        raise _top_n("ORDER BY on a stream, whose rows never end, is not there yet", order)
    terms = [_term(entry, relation, binder, grouping) for entry in order.expressions]
    relation.tree.set("order", exp.Order(expressions=terms))
    relation.node = Sort(
        fields=node.fields,
        inputs=(node,),
        bounded=True,
        order_by=tuple(format_tree(entry) for entry in order.expressions),
    )


def _term(
    entry: exp.Expr, relation: Relation, binder: ExpressionBinder | None, grouping: Grouping | None
) -> exp.Ordered:
    inner = entry.this if isinstance(entry, exp.Ordered) else entry
    flags = {key: entry.args.get(key) for key in ("desc", "nulls_first")} if isinstance(entry, exp.Ordered) else {}
    visible = relation.node.visible
    if isinstance(inner, exp.Literal) and not inner.is_string:
        position = whole_number(inner) or 0
        if not 1 <= position <= len(visible):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"ORDER BY {inner.this} is not a position of the SELECT list, which has {len(visible)}",
                span=span_of(inner),
            )
        return exp.Ordered(this=column(visible[position - 1].name), **flags)
    if isinstance(inner, exp.Column) and inner.args.get("table") is None:
        for field in visible:
            if same_name(field.name, inner.name, quoted=bool(inner.this.quoted)):
                return exp.Ordered(this=column(field.name), **flags)
    if binder is None or isinstance(relation.node, Deduplicate):
        raise ResolutionError(
            "UNKNOWN_COLUMN",
            f"ORDER BY {format_tree(inner)} is not a column of the result",
            hint="add it to the SELECT list",
            span=span_of(inner),
        )
    bound = binder.bind(inner)
    if grouping is not None:
        check_grouped(grouping, bound, binder.scope)
    return exp.Ordered(this=bound, **flags)


def _limit(limit: exp.Limit, relation: Relation, offset: exp.Expr | None) -> None:
    node = relation.node
    count = _count(limit.expression, "LIMIT")
    if not node.bounded and node.mode is not Mode.APPEND:
        raise _top_n("LIMIT over rows that change is not there yet", limit)
    relation.tree.set("limit", exp.Limit(expression=count))
    relation.node = Limit(
        fields=node.fields,
        inputs=(node,),
        event_time=node.event_time,
        bounded=node.bounded,
        state=None if node.bounded else State("the number of rows so far", "a single number"),
        limit=str(count.this),
        offset=str(offset.expression.this) if isinstance(offset, exp.Offset) else None,
    )


def _count(expression: exp.Expr | None, word: str) -> exp.Literal:
    value = whole_number(expression)
    if value is not None:
        return exp.Literal(this=str(value), is_string=False)
    raise ResolutionError(
        "INVALID_ARGUMENT",
        f"{word} needs a whole number",
        span=span_of(expression) if expression is not None else None,
    )


def _top_n(message: str, node: exp.Expr) -> NotYetError:
    return NotYetError(
        "UPDATING_TOP_N",
        message,
        hint="store the result as a materialized view and order or limit it when you read it",
        span=span_of(node),
        mode=Mode.RETRACT.value,
    )
