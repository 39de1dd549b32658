"""Planning a whole query: SELECTs, VALUES and set operations, nested as they are written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.append_cores import above_core, append_core, closing_core
from penstock.plan.context import EventTimeWantedError, PlanContext, RankLimit, Relation, UnmergedSessionError
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.grouping import unmerged_session
from penstock.plan.infer import assignable
from penstock.plan.kept_windows import stays_here
from penstock.plan.modifiers import plan_modifiers
from penstock.plan.nodes import Node, SetOperation, Values
from penstock.plan.relation import EVENT_TIME_COLUMN, WINDOW_COLUMN, EventTime, Field, Mode
from penstock.plan.rules.order import apply_rules
from penstock.plan.scope import Scope, field_tree
from penstock.plan.select import plan_select
from penstock.plan.store_terms import of_both
from penstock.plan.trees import aliased, call, column, select, subquery, type_of
from penstock.sql.spans import span_of
from penstock.sql.typenames import data_type
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.types import SqlType


def bind_query(context: PlanContext, tree: exp.Expr, outer: Scope | None, limit: RankLimit | None) -> Relation:
    """A query as operators and as Spark's tree; the rules have been applied to it.

    Where the rows of streams are kept, a subquery that Spark can run by itself is left to Spark.
    """
    if context.kept and outer is None:

        def bind(trial: PlanContext, inner: exp.Expr) -> Relation:
            return _bind(trial, inner, None, limit if inner is tree else None)

        core = None if stays_here(tree) else append_core(context, tree, bind)
        if core is not None:
            return core
        tree = above_core(context, tree, bind)
    elif context.kept:
        core = closing_core(context, tree, lambda trial, inner: _bind(trial, inner, None, limit))
        if core is not None:
            return core
    return _bind(context, tree, outer, limit)


def _bind(context: PlanContext, tree: exp.Expr, outer: Scope | None, limit: RankLimit | None) -> Relation:
    if isinstance(tree, exp.Select):
        return plan_select(context, tree, outer, limit)
    if isinstance(tree, exp.Subquery):
        relation = bind_query(context, tree.this, outer, limit)
        if any(tree.args.get(key) for key in ("order", "limit", "offset")):
            inner = "__inner"
            relation.tree = select(
                [column(entry.name, inner) for entry in relation.fields], subquery(relation.tree, inner)
            )
            return plan_modifiers(context, tree, relation)
        return relation
    if isinstance(tree, exp.SetOperation):
        return plan_modifiers(context, tree, _set_operation(context, tree, outer))
    if isinstance(tree, exp.Values):
        return _values(context, tree)
    if isinstance(tree, exp.Table):
        shown = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree.copy()))
        return plan_select(context, shown, outer, limit)
    raise ResolutionError("SYNTAX_ERROR", "this is not a query", span=span_of(tree))


def plan_query(make: Callable[[], PlanContext], tree: exp.Query) -> tuple[Relation, PlanContext]:
    """Plans a query with a fresh context, and again where a window asks for an event time that no stream declares, or
    where the rows of sessions are asked for."""
    assumed: dict[str, str] = {}
    closed_sessions = False
    while True:
        context = make()
        context.assumed_event_times.update(assumed)
        context.closed_sessions = closed_sessions
        try:
            relation = bind_query(context, apply_rules(tree), None, None)
            if relation.unmerged:
                raise unmerged_session(span_of(tree))
            return relation, context
        except UnmergedSessionError:
            if closed_sessions:
                raise
            closed_sessions = True
        except EventTimeWantedError as wanted:
            other = assumed.get(wanted.relation)
            if other == wanted.column:
                raise _timeless_view(wanted, tree) from None
            if other is not None:
                raise ResolutionError(
                    "MISSING_EVENT_TIME",
                    f'stream "{wanted.relation}" declares no event time, '
                    f'and windows stand on both "{other}" and "{wanted.column}"',
                    hint="declare one of them with WATERMARK FOR",
                    span=span_of(tree),
                ) from None
            assumed[wanted.relation] = wanted.column


def _timeless_view(wanted: EventTimeWantedError, tree: exp.Query) -> NotYetError:
    """The error for a window that would have to close over what takes no event time: a materialized view."""
    return NotYetError(
        "UPDATING_INPUT",
        f'windows that close over "{wanted.relation}", which has no event time, are not there yet',
        hint="write EMIT CHANGES: windows over the rows of a view show each change",
        span=span_of(tree),
        mode=Mode.RETRACT.value,
    )


def _values(context: PlanContext, tree: exp.Values) -> Relation:
    binder = ExpressionBinder(Scope(), context.user_function, _no_subquery, aggregates_allowed=False)
    rows: list[list[exp.Expr]] = []
    for row in tree.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
        rows.append([binder.bind(cell) for cell in cells])
        if len(rows[-1]) != len(rows[0]):
            raise ResolutionError(
                "COLUMN_COUNT_MISMATCH",
                f"row {len(rows)} of VALUES has {len(rows[-1])} values, the first has {len(rows[0])}",
                hint="give every row as many; NULL stands for a value that is not there",
                span=span_of(row),
            )
    fields = tuple(Field(f"col{i}", type_of(cell)) for i, cell in enumerate(rows[0], start=1))
    node = Values(fields=fields, bounded=True, rows=len(rows))
    bound = exp.Values(expressions=[exp.Tuple(expressions=row) for row in rows])
    source = bound
    source.set("alias", exp.TableAlias(this=exp.Identifier(this="__values", quoted=True)))
    return Relation(node, select([column(entry.name, "__values") for entry in fields], source))


def _no_subquery(tree: exp.Expr, scope: Scope) -> exp.Expr:
    del scope
    raise ResolutionError("SYNTAX_ERROR", "a subquery cannot stand in VALUES", span=span_of(tree))


def _set_operation(context: PlanContext, tree: exp.SetOperation, outer: Scope | None) -> Relation:
    context.depth += 1
    left = bind_query(context, tree.this, outer, None)
    right = bind_query(context, _named_like(tree.expression, left), outer, None)
    # What is NULL on one side has the type of the other one.
    if (typed_left := _with_typed_nulls(tree.this, left, right)) is not None:
        left = bind_query(context, typed_left, outer, None)
    if (typed_right := _with_typed_nulls(tree.expression, right, left)) is not None:
        right = bind_query(context, typed_right, outer, None)
    context.depth -= 1
    operator = _operator(tree)
    _check_columns(tree, left, right, operator)
    bounded = left.node.bounded and right.node.bounded
    if operator != "UNION ALL" and (context.kept or not bounded):
        _check_compared(tree, left, right, operator)
    if not bounded:
        _check_streams(tree, left.node, right.node, operator)
    carried = None if bounded else _carried(left, right)
    names = [entry.name for entry in left.node.visible]
    sides = [_side(left, names, carried, "__left"), _side(right, names, carried, "__right")]
    fields = tuple(
        replace(one, type=of_both(one.type, two.type), nullable=one.nullable or two.nullable, qualifier=None,
                source=None, part=None, window=False,
                event_time=carried is not None and one.event_time and two.event_time)
        for one, two in zip(left.node.visible, right.node.visible, strict=True)
    )  # fmt: skip
    if carried is not None:
        fields += (Field(EVENT_TIME_COLUMN, None, hidden=True, event_time=True),)
    node = SetOperation(
        fields=fields,
        inputs=(left.node, right.node),
        event_time=carried,
        bounded=bounded,
        operator=operator,
    )
    kind = type(tree)
    distinct = not operator.endswith("ALL")
    return Relation(node, kind(this=sides[0], expression=sides[1], distinct=distinct), None, left.open or right.open)


def _named_like(query: exp.Expr, other: Relation) -> exp.Expr:
    """The second side of a set operation; the columns have the names of the first, so its own may come twice."""
    items = query.expressions if isinstance(query, exp.Select) else []
    names = [item.alias_or_name.casefold() for item in items]
    if len(set(names)) == len(names) or len(names) != len(other.node.visible) or any(item.is_star for item in items):
        return query
    made = query.copy()
    shown = [aliased(item.unalias().copy(), entry.name) for item, entry in zip(items, other.node.visible, strict=True)]
    made.set("expressions", shown)
    return made


def _with_typed_nulls(query: exp.Expr, own: Relation, other: Relation) -> exp.Query | None:
    """The side of a set operation with its NULLs in the types of the other side; None where that changes nothing."""
    if own.open or other.open or len(own.node.visible) != len(other.node.visible):
        return None
    wanted = [
        (one.name, two.type if one.type is None else None)
        for one, two in zip(own.node.visible, other.node.visible, strict=True)
    ]
    made = query.copy()
    return made if isinstance(made, exp.Query) and _type_nulls(made, wanted) else None


def _type_nulls(query: exp.Expr, wanted: list[tuple[str, SqlType | None]]) -> bool:
    """Changes a query in place, whose columns have these names; whether there was something to change."""
    if isinstance(query, exp.SetOperation):
        return any([_type_nulls(query.this, wanted), _type_nulls(query.expression, wanted)])
    if isinstance(query, exp.Subquery):
        return _type_nulls(query.this, wanted)
    if not isinstance(query, exp.Select) or len(query.expressions) != len(wanted):
        return False
    found = False
    for item, (name, kind) in zip(query.expressions, wanted, strict=True):
        if kind is not None and isinstance(item.unalias(), exp.Null):
            item.replace(aliased(exp.Cast(this=exp.Null(), to=data_type(kind)), name))
            found = True
    return found


def _operator(tree: exp.SetOperation) -> str:
    word = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}[type(tree)]
    return word if tree.args.get("distinct") else f"{word} ALL"


def _check_columns(tree: exp.SetOperation, left: Relation, right: Relation, operator: str) -> None:
    if left.open or right.open:
        return
    one, two = left.node.visible, right.node.visible
    if len(one) != len(two):
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f"the sides of {operator} have {len(one)} and {len(two)} columns",
            hint="give both as many; NULL stands for a column that one of them lacks",
            span=span_of(tree.expression),
        )
    for a, b in zip(one, two, strict=True):
        if not assignable(a.type, b.type) and not assignable(b.type, a.type):
            raise ResolutionError(
                "TYPE_MISMATCH",
                f'column "{a.name}" of {operator} is {a.type} on one side and {b.type} on the other',
                hint="CAST one of them",
                span=span_of(tree.expression),
            )


def _check_compared(tree: exp.SetOperation, left: Relation, right: Relation, operator: str) -> None:
    """Rows that come later are compared with those that are there: a text is not the number that it may be read as."""
    if left.open or right.open:
        return
    for a, b in zip(left.node.visible, right.node.visible, strict=True):
        if a.type != b.type and STRING in (a.type, b.type) and None not in (a.type, b.type):
            raise ResolutionError(
                "TYPE_MISMATCH",
                f'column "{a.name}" of {operator} is {a.type} on one side and {b.type} on the other',
                hint="CAST one of them: rows are compared as they come, and a text is no number",
                span=span_of(tree.expression),
            )


def _check_streams(tree: exp.SetOperation, left: Node, right: Node, operator: str) -> None:
    if operator != "UNION ALL":
        message = f"{operator} over streams is not there yet"
        hint = "UNION ALL keeps every row of both" if operator == "UNION" else "write it as a join"
    elif left.bounded != right.bounded:
        message = "UNION ALL of a stream with a bounded table is not there yet"
        hint = "insert both into one stream: INSERT INTO s SELECT …"
    elif Mode.APPEND is not left.mode or Mode.APPEND is not right.mode:
        message = "UNION ALL over rows that change is not there yet"
        hint = "union the streams first and aggregate afterwards"
    else:
        return
    raise NotYetError(
        "UPDATING_SET_OPERATION", message, hint=hint, span=span_of(tree.expression), mode=Mode.RETRACT.value
    )


def _carried(left: Relation, right: Relation) -> EventTime | None:
    one, two = left.node.event_time, right.node.event_time
    if one is None or two is None:
        return None
    return EventTime(EVENT_TIME_COLUMN, max(one.delay_us, two.delay_us), declared=one.declared)


def _side(relation: Relation, names: list[str], carried: EventTime | None, alias: str) -> exp.Select:
    """One side of a set operation: the visible columns under the names of the first, and the event time as a column."""
    if relation.open:
        return select([exp.Star()], subquery(relation.tree, alias))
    columns: list[exp.Expr] = [
        aliased(field_tree(entry, alias, relation.window), name)
        for entry, name in zip(relation.node.visible, names, strict=True)
    ]
    if carried is not None:
        event_time = relation.node.event_time
        assert event_time is not None
        time: exp.Expr = column(event_time.column, alias)
        if event_time.of_window:
            time = call("window_time", column(WINDOW_COLUMN, alias))
        columns.append(aliased(time, EVENT_TIME_COLUMN))
    return select(columns, subquery(relation.tree, alias))
