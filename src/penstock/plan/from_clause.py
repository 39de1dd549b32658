"""Planning a FROM clause: relations, windows over relations, joins and unnesting."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.append_cores import append_core
from penstock.plan.asof_bounds import as_lateral
from penstock.plan.assign_windows import assign_window
from penstock.plan.context import PlanContext, Relation
from penstock.plan.finish_plan import ONCE
from penstock.plan.join_conditions import join_condition, join_kind, using_text
from penstock.plan.join_times import note_join
from penstock.plan.join_versions import (
    as_of_event_time,
    check_asof,
    is_asof,
    meets_current,
    refuse_method,
    refuse_outer_versions,
    version_condition,
    version_keys,
    version_then,
    with_versions,
)
from penstock.plan.join_within import has_grace, with_time_bound
from penstock.plan.joins import (
    JoinRequest,
    PlannedJoin,
    Side,
    all_of,
    no_equal_nulls,
    plan_join,
    refuse_every_pair,
    written_condition,
)
from penstock.plan.kept_windows import (
    CLOSED_BY_CLOCK,
    never_closes,
    of_closed_windows,
    on_clock,
    shows_changes,
    stay_here,
    when_they_close,
    windowed_rows,
)
from penstock.plan.lateral import asked_once, beside_a_stream, lateral_query, reads_relations
from penstock.plan.leaves import as_leaf, carrier
from penstock.plan.met_front import names_inside, stands_in_front
from penstock.plan.nested_joins import NESTED, joined_columns, named_inside, unbracketed
from penstock.plan.nodes import Node, Values, WindowAssign, all_nodes
from penstock.plan.pending_joins import PendingJoin, connected_first
from penstock.plan.relation import Field
from penstock.plan.scans import read_table, renamed
from penstock.plan.scope import Leaf, Scope
from penstock.plan.trees import column
from penstock.plan.unnest import (
    LateralJoin,
    lateral_join,
    makes_rows_itself,
    plan_lateral_view,
    plan_unnest,
    unnest_as_source,
)
from penstock.plan.windows import WindowSpec
from penstock.sql.nodes import WindowTable
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.plan.expressions import ExpressionBinder


NAMELESS = "__subquery"


@dataclass(slots=True)
class Bound:
    """A planned FROM clause: the operators so far, and the Spark clauses that go with them."""

    node: Node
    source: exp.Expr | None = None
    joins: list[exp.Expr] = field(default_factory=list)
    windows: dict[str, WindowSpec] = field(default_factory=dict)
    pending: list[PendingJoin | LateralJoin] = field(default_factory=list)
    carrier: exp.Expr | None = None  # the column or window that carries the event time
    conditions: list[exp.Expr] = field(default_factory=list)  # that rows must meet besides those of WHERE
    unmerged: bool = False


def plan_from(context: PlanContext, tree: exp.Select, scope: Scope, binder: ExpressionBinder) -> Bound:
    """The FROM clause of a SELECT; every relation in it is added to the scope."""
    from_ = tree.args.get("from_")
    if not isinstance(from_, exp.From):
        return Bound(Values(fields=(), bounded=True, rows=1))
    first, joins = unbracketed(from_.this)
    joins += tree.args.get("joins") or []
    if makes_rows_itself(first):
        made, node = unnest_as_source(first, scope, binder)
        bound = Bound(node, made)
        return _rest(context, bound, tree, joins, scope, binder)
    context.in_front = stands_in_front(first)
    relation, leaf, source = _item(context, first, scope)
    context.in_front, leaf = False, named_inside(leaf, names_inside(first))
    bound = Bound(relation.node, source)
    _enter(bound, scope, leaf, relation, first)
    bound.carrier = carrier(leaf)
    return _rest(context, bound, tree, joins, scope, binder)


def _rest(
    context: PlanContext, bound: Bound, tree: exp.Select, joins: list[exp.Expr], scope: Scope, binder: ExpressionBinder
) -> Bound:
    """The joins and lateral views behind the first relation."""
    for join in joins:
        assert isinstance(join, exp.Join)
        _join(context, bound, join, scope, binder)
    for lateral in tree.args.get("laterals") or []:
        bound.pending.append(plan_lateral_view(lateral, scope, binder))
    return bound


def _joined_item(context: PlanContext, item: exp.Expr, scope: Scope) -> tuple[Relation, Leaf, exp.Expr]:
    """What a join joins with: a relation, or a join in brackets."""
    first, joins = unbracketed(item)
    inner = [first, *(join.this for join in joins)]
    if not joins or any(isinstance(each, exp.Lateral) or makes_rows_itself(each) for each in inner):
        return _item(context, item if joins else first, scope)
    trial = replace(context, reads={}, depends_on={}, notices={}, warnings={}, cores={}, subqueries=[])
    leaves = [_joined_item(trial, each, Scope(outer=scope.outer))[1] for each in inner]
    items, inside = joined_columns(leaves, joins)
    query = exp.Select(expressions=items, from_=exp.From(this=first.copy()), joins=[join.copy() for join in joins])
    context.depth += 1
    relation = context.bind_query(context, query, scope.outer, None)
    context.depth -= 1
    alias = f"{NESTED}{sum(bool(leaf.inside) for leaf in scope.leaves)}"
    leaf, tree = as_leaf(relation, alias)
    return relation, named_inside(leaf, inside), tree


def _item(context: PlanContext, item: exp.Expr, scope: Scope) -> tuple[Relation, Leaf, exp.Expr]:
    alias = _alias(item)
    if isinstance(item, exp.Table):
        _refuse_table_clauses(item)
        relation = read_table(context, item, alias)
    elif isinstance(item, WindowTable):
        relation = _window_table(context, item, scope)
    elif isinstance(item, exp.Subquery | exp.Query):
        context.depth += 1
        inner = item.this if isinstance(item, exp.Subquery) else item
        relation = context.bind_query(context, inner, scope.outer, None)
        context.depth -= 1
    elif isinstance(item, exp.Values):
        relation = context.bind_query(context, item, None, None)
    else:
        raise ResolutionError("SYNTAX_ERROR", "this cannot stand in a FROM clause", span=span_of(item))
    relation = _column_aliases(relation, item)
    return relation, *as_leaf(relation, alias)


def _alias(item: exp.Expr) -> str:
    if item.alias:
        return str(item.alias)
    if isinstance(item, exp.Table):
        return str(item.name)
    if isinstance(item, WindowTable):
        return _alias(item.this)
    return NAMELESS


def _enter(bound: Bound, scope: Scope, leaf: Leaf, relation: Relation, item: exp.Expr) -> None:
    if leaf.alias == NAMELESS and any(other.alias == leaf.alias for other in scope.leaves):
        raise ResolutionError(
            "DUPLICATE_ALIAS",
            "two subqueries of one FROM clause have no name",
            hint="give each a name with AS",
            span=span_of(item),
        )
    scope.add(leaf, span_of(item))
    bound.unmerged = bound.unmerged or relation.unmerged
    if relation.window is not None:
        bound.windows[leaf.alias] = relation.window


def _column_aliases(relation: Relation, item: exp.Expr) -> Relation:
    alias = item.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not columns:
        return relation
    visible = [entry for entry in relation.fields if not entry.hidden]
    if len(columns) > len(visible) and not relation.open:
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f'"{item.alias}" is given {len(columns)} column names and has {len(visible)} columns',
            span=span_of(columns[0]),
        )
    return renamed(relation, [name.name for name in columns])


def _refuse_table_clauses(table: exp.Table) -> None:
    if table.args.get("sample") is not None:
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            "TABLESAMPLE has no repeatable meaning on a stream",
            hint="filter on a hash of a column instead, for example WHERE pmod(hash(id), 100) < 10",
            span=span_of(table),
        )
    for clause, word in (("pivots", "PIVOT"), ("version", "a table version"), ("changes", "CHANGES")):
        if table.args.get(clause):
            raise NotYetError("CLAUSE_NOT_YET", f"{word} is not there yet", span=span_of(table))


def _window_table(context: PlanContext, item: WindowTable, scope: Scope) -> Relation:
    inner = item.this
    open_session = context.kept and item.args["window"].kind == "SESSION" and shows_changes(context)
    final = context.open_windows and context.emit is Emit.FINAL
    core = _windowed_core(context, item) if context.kept and not (open_session or final) else None
    if core is not None:
        return core
    cores = dict(context.cores)
    relation, leaf, _ = _item(context, inner, Scope(outer=scope.outer))
    made = assign_window(context, relation, leaf, item)
    endless = context.open_windows or never_closes(made.node)
    by_clock = context.emit is Emit.FINAL and on_clock(made.node)
    if context.kept and (open_session or endless):
        planned, context.cores = context.cores, cores  # those of the rows: they are planned anew
        kept = _kept_window(context, item, made, scope, closed=by_clock, final=context.emit is Emit.FINAL)
        if kept is not None:
            return kept
        context.cores = planned
    return made


def _kept_window(
    context: PlanContext, item: WindowTable, assigned: Relation, scope: Scope, *, closed: bool, final: bool
) -> Relation | None:
    """Rows that the store keeps with the bounds of their windows; None where it does not know them. `closed`: only
    those of windows that the clock has closed. `final`: else those of windows that a batch closes."""
    node = next(node for node in all_nodes(assigned.node) if isinstance(node, WindowAssign))
    time = item.args["window"].args.get("time")
    rows = windowed_rows(item, node.window, time) if time is not None else None
    if rows is None:
        return None
    if closed:
        rows = of_closed_windows(rows)
        context.notice(CLOSED_BY_CLOCK)
    context.depth += 1
    rows = stay_here(rows) if final and not closed else rows
    relation = context.bind_query(context, rows, scope.outer, None)
    context.depth -= 1
    return when_they_close(relation, node.window) if final and not closed else relation


def _windowed_core(context: PlanContext, item: WindowTable) -> Relation | None:
    """Where rows are kept, Spark puts them into their windows: they are those of a subquery that it runs by itself."""
    context.depth += 1
    every = exp.Select(expressions=[exp.Star()], from_=exp.From(this=item.copy()))
    core = append_core(context, every, lambda trial, tree: trial.bind_query(trial, tree, None, None))
    context.depth -= 1
    return core


# joins


def _join(context: PlanContext, bound: Bound, join: exp.Join, scope: Scope, binder: ExpressionBinder) -> None:
    item = join.this
    if isinstance(item, exp.Lateral) or makes_rows_itself(item):
        _lateral(context, bound, join, scope, binder)
        return
    if not (context.kept and is_asof(join)) and (
        join.args.get("method") or join.args.get("match_condition") is not None
    ):
        refuse_method(join)
    bounded = as_lateral(join) if is_asof(join) else None
    if bounded is not None:
        _lateral(context, bound, bounded, scope, binder)
        return
    refuse_outer_versions(join)
    context.all_versions = as_of_event_time(join, scope)
    relation, leaf, tree = _joined_item(context, item, scope)
    left_leaves = list(scope.leaves)
    once = meets_current(context, join, relation, scope)
    version = version_condition(context, join, relation, leaf, scope, binder) if not once else None
    if version is not None:
        relation = with_versions(relation)
    _enter(bound, scope, leaf, relation, item)
    _note_grace(context, join)
    join = with_time_bound(join, left_leaves, leaf)
    kind = join_kind(join)
    condition, merged = join_condition(join, left_leaves, leaf, binder)
    more: list[exp.Expr] = []
    if version is not None:
        condition, more = version_keys(join, kind, condition, relation, leaf)
        bound.conditions += more if kind == "inner" else []
    if version is None and join.args.get("match_condition") is not None:
        version = binder.bind(join.args["match_condition"])
    if version is not None:
        condition = version if condition is None else exp.And(this=condition, expression=version)
    _read_merged(context, merged, [*left_leaves, leaf])
    if is_asof(join):
        check_asof(join, condition)
    asof = version is not None or is_asof(join)
    then = all_of(more) if kind == "left" else None
    bound.pending.append(
        PendingJoin(relation, leaf, tree, kind, condition, join, asof=asof, once=once)
        if then is None or condition is None
        else version_then(relation, leaf, tree, condition, then)
    )
    scope.merged.update(merged)
    if kind in ("semi", "anti"):
        scope.hide(leaf)


def _read_merged(context: PlanContext, merged: Iterable[str], leaves: list[Leaf]) -> None:
    """Remembers that the columns of USING are read, of every relation that has them."""
    for name in merged:
        for side in leaves:
            for entry in side.matching(name, quoted=False):
                context.read_field(entry)


def _note_grace(context: PlanContext, join: exp.Join) -> None:
    if has_grace(join):
        context.warn(
            "GRACE PERIOD of WITHIN changes nothing here: the WATERMARK of each stream says how late rows may be"
        )


def _lateral(context: PlanContext, bound: Bound, join: exp.Join, scope: Scope, binder: ExpressionBinder) -> None:
    """A join with what is made of each row in front: the elements of an array, or the rows of a query."""
    item, outer = join.this, join.side == "LEFT"
    if join.side in ("RIGHT", "FULL") or join.kind in ("SEMI", "ANTI"):
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"{join.side or join.kind} JOIN has no meaning with what is made of each row in front",
            hint="write CROSS JOIN or LEFT JOIN",
            span=span_of(item),
        )
    left = list(scope.leaves)
    if not makes_rows_itself(item):
        bounded = bound.node.bounded and all(
            pending.right.node.bounded for pending in bound.pending if isinstance(pending, PendingJoin)
        )
        relation = lateral_query(context, item, scope, bounded=bounded)
        asked = asked_once(relation, scope) if reads_relations(relation) else None
        if asked is not None:
            relation = _column_aliases(asked.relation, item)
            leaf, tree = as_leaf(relation, _alias(item))
            _enter(bound, scope, leaf, relation, item)
            condition = _also(asked.condition(leaf.alias), _lateral_condition(join, left, leaf, scope, binder))
            kind = "left" if outer else "inner" if condition is not None else "cross"
            condition = exp.true() if condition is None and outer else condition
            bound.pending.append(PendingJoin(relation, leaf, tree, kind, condition, join))
            return
        if reads_relations(relation) and not bounded:
            raise beside_a_stream(item)
        made = lateral_join(_column_aliases(relation, item), item, scope, outer=outer)
    else:
        made = plan_unnest(item, scope, binder, outer=outer)
    bound.pending.append(made)
    own = _lateral_condition(join, left, made.leaf, scope, binder)
    if own is not None and outer:
        made.clause.set("on", own)
    elif own is not None:
        bound.conditions.append(own)


def _lateral_condition(
    join: exp.Join, left: list[Leaf], leaf: Leaf, scope: Scope, binder: ExpressionBinder
) -> exp.Expr | None:
    """What is written behind ON or USING; None where it is TRUE."""
    condition, merged = join_condition(join, left, leaf, binder)
    scope.merged.update(merged)
    return None if isinstance(condition, exp.Boolean) and condition.this else condition


def _also(one: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    if one is None or other is None:
        return one or other
    return exp.And(this=one, expression=exp.Paren(this=other))


def settle_joins(context: PlanContext, bound: Bound, scope: Scope, where: list[exp.Expr]) -> None:
    """Decides what each join is, now that the conjuncts of WHERE are known, and writes its clause."""
    base = scope.leaves[:1]
    for pending in connected_first(bound.pending, base[0].alias, where) if base else bound.pending:
        if isinstance(pending, LateralJoin):
            bound.joins.append(pending.clause)
            bound.node = pending.over(bound.node)
            base = [*base, pending.leaf]
            continue
        windows = {a: s for a, s in bound.windows.items() if any(b.alias == a for b in base)}
        left = Side(bound.node, base, windows, bound.carrier)
        right = Side(
            pending.right.node, [pending.leaf], {a: s for a, s in bound.windows.items() if a == pending.leaf.alias}
        )
        request = JoinRequest(
            pending.kind,
            pending.condition,
            where,
            written_condition(pending.written.args.get("on")) or using_text(pending.written),
            span_of(pending.written.this),
        )
        if context.kept and not (pending.asof or pending.once):
            refuse_every_pair(left, right, request)
        planned = plan_join(context, left, right, request)
        node = planned.node
        clause = _clause(planned, pending, bound)
        if pending.asof:
            clause.set("method", "ASOF")
        elif pending.once:
            clause.set("method", ONCE)
        bound.joins.append(note_join(clause, planned.time))
        bound.carrier = _carrier(planned, bound, pending.leaf)
        bound.node = replace(node, fields=_joined_fields(node.kind, bound.node.fields, pending.leaf.fields))
        base = [*base, pending.leaf]


def _joined_fields(kind: str, left: tuple[Field, ...], right: tuple[Field, ...]) -> tuple[Field, ...]:
    if kind in ("semi", "anti"):
        return left
    nullable_left = kind in ("right", "full")
    nullable_right = kind in ("left", "full")
    first = tuple(replace(entry, nullable=entry.nullable or nullable_left) for entry in left)
    return first + tuple(replace(entry, nullable=entry.nullable or nullable_right) for entry in right)


def _carrier(planned: PlannedJoin, bound: Bound, right: Leaf) -> exp.Expr | None:
    """The column that carries the event time of joined rows: of a bounded join one of the two that bound it."""
    node, time = planned.node, planned.time
    if node.kind == "full" and not node.bounded:
        return None
    from_right = node.static == "left" or (node.static is None and (bound.node.bounded or node.kind == "right"))
    side = time.right if from_right else time.left
    if side is not None:
        return column(side[1], side[0])
    return carrier(right) if from_right else bound.carrier


def _clause(planned: PlannedJoin, pending: PendingJoin, bound: Bound) -> exp.Join:
    kind, condition = planned.node.kind, planned.condition
    if kind == "anti" and planned.time.right is not None:
        # Spark has no anti join of streams: keep the left rows and filter those without a partner afterwards.
        alias, name = planned.time.right  # never NULL in a row of the stream
        bound.conditions.append(exp.Is(this=column(name, alias), expression=exp.Null()))
        return exp.Join(this=pending.tree, side="LEFT", on=condition)
    if kind == "full" and planned.time.of_streams:
        condition = no_equal_nulls(condition)
    sides = {"left": "LEFT", "right": "RIGHT", "full": "FULL"}
    if kind in ("semi", "anti"):
        return exp.Join(this=pending.tree, side="LEFT", kind=kind.upper(), on=condition)
    if kind == "cross":
        return exp.Join(this=pending.tree, kind="CROSS")
    return exp.Join(this=pending.tree, side=sides.get(kind), kind=None if kind in sides else "INNER", on=condition)
