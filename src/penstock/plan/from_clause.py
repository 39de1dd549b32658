"""Planning a FROM clause: relations, windows over relations, joins and unnesting."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.assign_windows import assign_window
from penstock.plan.context import PlanContext, Relation
from penstock.plan.join_times import note_join
from penstock.plan.joins import JoinRequest, PlannedJoin, Side, no_equal_nulls, plan_join, written_condition
from penstock.plan.leaves import as_leaf, carrier
from penstock.plan.nodes import Node, Scan, Values, all_nodes
from penstock.plan.relation import Field
from penstock.plan.scans import read_table, renamed
from penstock.plan.scope import Leaf, Scope, field_tree, same_name
from penstock.plan.trees import column
from penstock.plan.unnest import LateralJoin, plan_lateral_view, plan_unnest, unnest_as_source
from penstock.plan.windows import WindowSpec
from penstock.sql.nodes import SystemTime, WindowTable
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from penstock.plan.expressions import ExpressionBinder


_NAMELESS = "__subquery"


@dataclass(slots=True)
class Bound:
    """A planned FROM clause: the operators so far, and the Spark clauses that go with them."""

    node: Node
    source: exp.Expr | None = None
    joins: list[exp.Expr] = field(default_factory=list)
    windows: dict[str, WindowSpec] = field(default_factory=dict)
    pending: list[PendingJoin | LateralJoin] = field(default_factory=list)
    carrier: exp.Expr | None = None  # the column or window that carries the event time
    anti: list[exp.Expr] = field(default_factory=list)
    unmerged: bool = False


@dataclass(slots=True)
class PendingJoin:
    """A join whose kind is known once WHERE is bound."""

    right: Relation
    leaf: Leaf
    tree: exp.Expr
    kind: str
    condition: exp.Expr | None
    written: exp.Join
    asof: bool = False  # each row meets the last of those that its condition allows


def plan_from(context: PlanContext, tree: exp.Select, scope: Scope, binder: ExpressionBinder) -> Bound:
    """The FROM clause of a SELECT; every relation in it is added to the scope."""
    from_ = tree.args.get("from_")
    if not isinstance(from_, exp.From):
        return Bound(Values(fields=(), bounded=True, rows=1))
    first = from_.this
    if isinstance(first, exp.Unnest | exp.Lateral):
        made, node = unnest_as_source(first, scope, binder)
        bound = Bound(node, made)
        return _rest(context, bound, tree, first, scope, binder)
    relation, leaf, source = _item(context, first, scope)
    bound = Bound(relation.node, source)
    _enter(bound, scope, leaf, relation, first)
    bound.carrier = carrier(leaf)
    return _rest(context, bound, tree, first, scope, binder)


def _rest(
    context: PlanContext, bound: Bound, tree: exp.Select, first: exp.Expr, scope: Scope, binder: ExpressionBinder
) -> Bound:
    """The joins and lateral views behind the first relation."""
    for join in [*(first.args.get("joins") or []), *(tree.args.get("joins") or [])]:
        _join(context, bound, join, scope, binder)
    for lateral in tree.args.get("laterals") or []:
        bound.pending.append(plan_lateral_view(lateral, scope, binder))
    return bound


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
    return _NAMELESS


def _enter(bound: Bound, scope: Scope, leaf: Leaf, relation: Relation, item: exp.Expr) -> None:
    if leaf.alias == _NAMELESS and any(other.alias == leaf.alias for other in scope.leaves):
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
    relation, leaf, _ = _item(context, inner, Scope(outer=scope.outer))
    return assign_window(context, relation, leaf, item)


# joins


def _join(context: PlanContext, bound: Bound, join: exp.Join, scope: Scope, binder: ExpressionBinder) -> None:
    item = join.this
    if isinstance(item, exp.Unnest | exp.Lateral):
        bounded = bound.node.bounded and all(
            pending.right.node.bounded for pending in bound.pending if isinstance(pending, PendingJoin)
        )
        outer = join.side == "LEFT"
        bound.pending.append(plan_unnest(context, item, scope, binder, outer=outer, bounded=bounded))
        return
    if not (context.kept and _is_asof(join)) and (
        join.args.get("method") or join.args.get("match_condition") is not None
    ):
        _refuse_method(join)
    relation, leaf, tree = _item(context, item, scope)
    left_leaves = list(scope.leaves)
    version = _version(context, join, relation, leaf, scope, binder)
    _enter(bound, scope, leaf, relation, item)
    kind = _kind(join)
    condition, merged = _condition(join, left_leaves, leaf, binder)
    if version is None and join.args.get("match_condition") is not None:
        version = binder.bind(join.args["match_condition"])
    if version is not None:
        condition = version if condition is None else exp.And(this=condition, expression=version)
    for name in merged:
        for side in (*left_leaves, leaf):
            for entry in side.matching(name, quoted=False):
                context.read_field(entry)
    asof = version is not None or _is_asof(join)
    bound.pending.append(PendingJoin(relation, leaf, tree, kind, condition, join, asof=asof))
    scope.merged.update(merged)


def settle_joins(context: PlanContext, bound: Bound, scope: Scope, where: list[exp.Expr]) -> None:
    """Decides what each join is, now that the conjuncts of WHERE are known, and writes its clause."""
    base = scope.leaves[:1]
    for pending in bound.pending:
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
            written_condition(pending.written.args.get("on")) or _using_text(pending.written),
            span_of(pending.written.this),
        )
        planned = plan_join(context, left, right, request)
        node = planned.node
        clause = _clause(planned, pending, bound)
        if pending.asof:
            clause.set("method", "ASOF")
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
        bound.anti.append(exp.Is(this=column(name, alias), expression=exp.Null()))
        return exp.Join(this=pending.tree, side="LEFT", on=condition)
    if kind == "full" and planned.time.of_streams:
        condition = no_equal_nulls(condition)
    sides = {"left": "LEFT", "right": "RIGHT", "full": "FULL"}
    if kind in ("semi", "anti"):
        return exp.Join(this=pending.tree, side="LEFT", kind=kind.upper(), on=condition)
    if kind == "cross":
        return exp.Join(this=pending.tree, kind="CROSS")
    return exp.Join(this=pending.tree, side=sides.get(kind), kind=None if kind in sides else "INNER", on=condition)


def _kind(join: exp.Join) -> str:
    if join.args.get("kind") in ("SEMI", "ANTI"):
        if join.side == "RIGHT":
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE",
                f"RIGHT {join.kind} JOIN has no meaning here",
                hint=f"swap the two relations and write LEFT {join.kind} JOIN",
                span=span_of(join.this),
            )
        return str(join.kind).lower()
    if join.side:
        return str(join.side).lower()
    if join.kind == "CROSS" or (
        join.args.get("on") is None and not join.args.get("using") and join.method != "NATURAL"
    ):
        return "cross"
    return "inner"


def _condition(
    join: exp.Join, left: list[Leaf], right: Leaf, binder: ExpressionBinder
) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
    on = join.args.get("on")
    if on is not None:
        binder.aggregates_allowed = False
        condition = binder.bind(on)
        binder.aggregates_allowed = True
        return condition, {}
    names = [name.name if hasattr(name, "name") else str(name) for name in join.args.get("using") or []]
    if join.method == "NATURAL":
        names = [
            entry.name
            for entry in right.fields
            if not entry.hidden and any(leaf.matching(entry.name, quoted=False) for leaf in left)
        ]
    return _using(names, left, right, join)


def _using(
    names: list[str], left: list[Leaf], right: Leaf, join: exp.Join
) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
    condition: exp.Expr | None = None
    merged: dict[str, exp.Expr] = {}
    for name in names:
        owners = [(leaf, found) for leaf in left for found in leaf.matching(name, quoted=False)]
        others = right.matching(name, quoted=False)
        if not owners or not others:
            raise ResolutionError(
                "UNKNOWN_COLUMN", f'column "{name}" of USING is not in both relations', span=span_of(join.this)
            )
        owner, entry = owners[0]
        first = field_tree(entry, owner.alias, owner.window)
        second = field_tree(others[0], right.alias, right.window)
        equal = exp.EQ(this=first, expression=second)
        condition = equal if condition is None else exp.And(this=condition, expression=equal)
        shown = {"RIGHT": second, "FULL": exp.Coalesce(this=first.copy(), expressions=[second.copy()])}.get(
            join.side, first
        )
        shown = shown.copy()
        shown.meta["penstock_type"] = entry.type
        merged[name.casefold()] = shown
    return condition, merged


def _using_text(join: exp.Join) -> str | None:
    names = [getattr(name, "name", str(name)) for name in join.args.get("using") or []]
    return f"USING ({', '.join(names)})" if names else None


def _refuse_method(join: exp.Join) -> None:
    if join.method == "ASOF" or join.args.get("match_condition") is not None:
        raise NotYetError(
            "VERSIONED_JOIN",
            "ASOF joins are not there yet",
            hint="join a dimension table for the latest version, or bound both event times with BETWEEN",
            span=span_of(join.this),
            mode="retract",
        )
    if join.method != "NATURAL":
        raise UnsupportedError("UNSUPPORTED_CLAUSE", f"{join.method} JOIN has no meaning here", span=span_of(join.this))


def _is_asof(join: exp.Join) -> bool:
    return join.method == "ASOF" and join.kind in ("", "INNER", "OUTER")


def _version(
    context: PlanContext, join: exp.Join, relation: Relation, leaf: Leaf, scope: Scope, binder: ExpressionBinder
) -> exp.Expr | None:
    """The condition of a join FOR SYSTEM_TIME AS OF an event time: rows of a stream are versions, from their event
    time on. None where there is no such join, or each batch sees the latest version of a dimension."""
    system_time = join.this.args.get("system_time") if isinstance(join.this, exp.Table) else None
    if not isinstance(system_time, SystemTime):
        return None
    event_time = relation.node.event_time
    if _is_processing_time(system_time.this, scope):
        if (relation.node.bounded and not context.kept) or relation.open or _looked_up(relation):
            return None
        what = "a stream has no version of its own to look up"
    else:
        asked = binder.bind(system_time.this)
        if context.kept and event_time is not None and not event_time.of_window and not _looked_up(relation):
            return exp.GTE(this=asked, expression=column(event_time.column, leaf.alias))
        what = "joins as of an event time are not there yet"
    raise NotYetError(
        "VERSIONED_JOIN",
        what,
        hint="join a dimension table as of PROCTIME(): each batch sees its latest version",
        span=span_of(system_time) or span_of(join.this),
        mode="append",
    )


def _looked_up(relation: Relation) -> bool:
    """Whether a relation is there to be joined with, in its latest version."""
    return all(node.looked_up or node.kind == "table" for node in all_nodes(relation.node) if isinstance(node, Scan))


def _is_processing_time(node: exp.Expr, scope: Scope) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.casefold() in ("proctime", "now", "current_timestamp")
    if isinstance(node, exp.CurrentTimestamp):
        return True
    if isinstance(node, exp.Column):
        found = scope.resolve(node)
        if found.leaf is not None and found.leaf.open:
            return same_name(node.name, "proc_time", quoted=False) or "proc" in node.name.casefold()
        return found.field.processing_time
    return False
