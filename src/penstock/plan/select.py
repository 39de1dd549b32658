"""Planning one SELECT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.model import SourceDefinition, ViewDefinition
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.block import Block
from penstock.plan.by_offset import with_places
from penstock.plan.check_types import check_condition
from penstock.plan.context import PlanContext, RankLimit, Relation, UnmergedSessionError
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.first_rows import first_rows
from penstock.plan.from_clause import plan_from, settle_joins
from penstock.plan.grouping import (
    Grouping,
    changes_at_source,
    check_grouped,
    plan_grouping,
    refuse_around,
    unmerged_session,
    updating_input,
)
from penstock.plan.hinted import note_advice
from penstock.plan.joined_windows import over_joined_rows
from penstock.plan.joins import conjuncts_of
from penstock.plan.kept_clock import clock_calls, stands_on_clock, with_row_clocks
from penstock.plan.kept_windows import grouped_by_table, shows_changes
from penstock.plan.met_front import with_front_apart
from penstock.plan.modifiers import plan_modifiers
from penstock.plan.moving_clock import moving_call, with_moving_clock
from penstock.plan.names import is_proctime
from penstock.plan.nodes import Filter, Node, Rank
from penstock.plan.projection import project
from penstock.plan.rank_limits import ranked_subquery
from penstock.plan.ranking import check_partitions, refuse_over, window_ranks
from penstock.plan.relation import (
    Mode,
)
from penstock.plan.rules.distinct_aggregates import distinct_aggregates
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.rules.pivots import with_columns_of_stars
from penstock.plan.scope import Scope
from penstock.plan.select_list import plan_select_list
from penstock.plan.store_unnest import makes_rows_of
from penstock.plan.timed_views import with_views_in_place
from penstock.plan.trees import (
    aggregate_text,
    column,
    nondeterministic_call,
    nondeterministic_name,
    own_nodes,
    select,
    subquery,
)
from penstock.plan.whole_rows import with_whole_rows
from penstock.plan.window_inputs import with_window_times, without_own_bounds
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall
from penstock.sql.spans import span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.plan.pending_joins import PendingJoin
    from penstock.plan.unnest import LateralJoin


_CLOCKS = frozenset({"now", "current_timestamp", "localtimestamp", "proctime", "current_date", "unix_timestamp"})


def plan_select(context: PlanContext, written: exp.Select, outer: Scope | None, limit: RankLimit | None) -> Relation:
    """A SELECT as operators and as Spark's tree."""
    _refuse_clauses(written)
    note_advice(context, written)
    written = with_places(context.catalog, written)
    written = with_columns_of_stars(written, lambda query: _scope_of(context, query, outer))
    written = with_whole_rows(written, lambda query: _scope_of(context, query, outer))
    written = with_window_times(context.catalog, written)
    windows = _grouping_windows(written)
    grace = next((call.args["grace"] for call in windows if call.args.get("grace") is not None), None)
    if any(call.args.get("retention") is not None for call in windows):
        context.warn("RETENTION changes nothing here: a view keeps its windows until it is dropped")
    if context.continuous:
        written = with_moving_clock(written, context.settings.dialect)
    if context.kept:
        written = _with_row_clocks(context, written)
    if context.kept:
        changing = context.open_windows or _changing_source(context, written) or _on_clock(context, written)
        if changing:
            written = over_joined_rows(written, lambda query: _scope_of(context, query, outer))
            written = without_own_bounds(context.catalog, written)
        if changing or shows_changes(context):
            written = grouped_by_table(written, sessions_only=not changing) or written
    if context.kept:
        written = with_front_apart(written, lambda query: _from_of(context, query, outer))
    scope = Scope(outer=outer)
    binder = _binder(context, scope)
    inner_limit = ranked_subquery(written)
    if inner_limit is not None:
        context = replace_bind(context, written, inner_limit)
    around, context.grace_us = context.grace_us, context.grace_us if grace is None else grace
    try:
        bound = plan_from(context, written, scope, binder)
    finally:
        context.grace_us = around
    block = Block(context, written, scope, binder, bound)
    _where(block)
    _group(block)
    plan_select_list(block)
    _having(block)
    _refuse_moving_clock(block)
    check_partitions(block)
    if binder.over and not block.node.bounded:
        return _ranked(block, limit)
    node = _operators(block)
    _keep_distinct(block)
    return plan_modifiers(context, written, project(block, node), binder, block.grouping)


def _binder(context: PlanContext, scope: Scope) -> ExpressionBinder:
    return ExpressionBinder(
        scope,
        context.user_function,
        lambda tree, inner: _expression_subquery(context, tree, inner),
        dialect=context.settings.dialect if context.settings.dialect != "penstock" else None,
        truncating_division=context.settings.truncating_division,
        read=context.read,
        warn=context.notice,
    )


def _scope_of(context: PlanContext, written: exp.Select, outer: Scope | None) -> Scope:
    return _from_of(context, written, outer)[0]


def _from_of(
    context: PlanContext, written: exp.Select, outer: Scope | None
) -> tuple[Scope, Node, list[PendingJoin | LateralJoin]]:
    """The relations of a FROM clause, the first operator and the joins: it is planned to know them and no more."""
    trial = replace(
        context, reads={}, readings={}, depends_on={}, functions={}, notices={}, warnings={}, cores={}, subqueries=[]
    )
    scope = Scope(outer=outer)
    bound = plan_from(trial, written.copy(), scope, _binder(trial, scope))
    return scope, bound.node, bound.pending


def _with_row_clocks(context: PlanContext, written: exp.Select) -> exp.Select:
    """Where all rows so far are kept, the clock is the time at which each of them came."""
    found = clock_calls(written)
    if not found:
        return written
    context.warn(
        f"{format_tree(found[0])} is the time of the batch that brought a row, of several rows that of the newest one; "
        "rows are not computed again as time goes on"
    )
    binder = ExpressionBinder(Scope(), context.user_function, lambda tree, _: tree)
    return with_row_clocks(with_views_in_place(context, written), binder.aggregates)


def _on_clock(context: PlanContext, written: exp.Select) -> bool:
    """Whether a query groups by a window over the times at which rows came."""
    calls, from_ = _grouping_windows(written), written.args.get("from_")

    def computed(table: exp.Table, name: str) -> bool:
        found = context.catalog.find(Name(table.name, quoted=True)) if isinstance(table.this, exp.Identifier) else None
        columns = found.columns if isinstance(found, SourceDefinition) else ()
        return any(entry.name == name and is_proctime(entry.computed) for entry in columns)

    return isinstance(from_, exp.From) and any(stands_on_clock(call, from_.this, computed) for call in calls)


def _grouping_windows(written: exp.Select) -> list[WindowCall]:
    group = written.args.get("group")
    return [key for key in group.expressions if isinstance(key, WindowCall)] if isinstance(group, exp.Group) else []


def replace_bind(context: PlanContext, written: exp.Select, limit: RankLimit) -> PlanContext:
    """The context, in which the ranked subquery of this SELECT is told how many rows of each rank are kept."""
    target = written.args["from_"].this.this
    plain = context.bind_query

    def bind(inner: PlanContext, tree: exp.Expr, outer: Scope | None, given: RankLimit | None) -> Relation:
        inner.bind_query = plain
        return plain(inner, tree, outer, limit if tree is target else given)

    context.bind_query = bind
    return context


def _refuse_clauses(written: exp.Select) -> None:
    if written.args.get("match") is not None:
        raise _match_recognize(written)
    from_ = written.args.get("from_")
    if isinstance(from_, exp.From) and from_.find(exp.MatchRecognize) is not None:
        raise _match_recognize(written)
    for clause, word in (
        ("pivots", "PIVOT"), ("connect", "CONNECT BY"), ("into", "SELECT INTO"), ("cluster", "CLUSTER BY"),
        ("distribute", "DISTRIBUTE BY"), ("sort", "SORT BY"), ("sample", "TABLESAMPLE"), ("locks", "FOR UPDATE"),
        ("hint", "an optimizer hint"), ("prewhere", "PREWHERE"), ("settings", "SETTINGS"), ("format", "FORMAT"),
    ):  # fmt: skip
        if written.args.get(clause):
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE", f"{word} has no meaning here", hint="leave it out", span=span_of(written)
            )


def _match_recognize(written: exp.Select) -> UnsupportedError:
    found = written.find(exp.MatchRecognize)
    return UnsupportedError(
        "MATCH_RECOGNIZE",
        "row pattern matching is not offered",
        hint="express the pattern with joins bounded in time, or with a session window",
        span=(span_of(found) if found is not None else None) or span_of(written),
    )


def _expression_subquery(context: PlanContext, tree: exp.Expr, scope: Scope) -> exp.Expr:
    query = tree.this if isinstance(tree, exp.Subquery) else tree
    context.depth += 1
    relation = context.bind_query(context, query, scope, None)
    context.depth -= 1
    if not relation.node.bounded and not relation.open:
        raise NotYetError(
            "UPDATING_SUBQUERY",
            "a subquery over a stream inside an expression is not there yet",
            hint="write it as a join: an interval join, a window join, or a join with a dimension table",
            span=span_of(tree),
            mode=Mode.RETRACT.value,
        )
    if context.continuous and not context.kept and _of_own_array(relation.tree):
        raise NotYetError(
            "UPDATING_SUBQUERY",
            "a subquery over an array of each row of a stream is not there yet",
            hint="write CROSS JOIN UNNEST(…) beside the stream, or functions of arrays such as FILTER and TRANSFORM",
            span=span_of(tree),
            mode=Mode.RETRACT.value,
        )
    context.subqueries.append(relation.node)
    visible = [entry for entry in relation.fields if not entry.hidden]
    if len(visible) != len(relation.fields):
        inner_name = "__in"
        relation.tree = select(
            [column(entry.name, inner_name) for entry in visible], subquery(relation.tree, inner_name)
        )
    found = exp.Subquery(this=relation.tree)
    found.meta["penstock_type"] = visible[0].type if visible else None
    return found


def _of_own_array(tree: exp.Expr) -> bool:
    """Whether a query makes rows of an array that stands in front of it: Spark has no such subquery over a stream."""
    calls = [makes_rows_of(table) for table in tree.find_all(exp.Table)]
    return any(made is not None and made.find(exp.Column) is not None for made in calls)


def _where(block: Block) -> None:
    clause = block.written.args.get("where")
    conjuncts: list[exp.Expr] = []
    if isinstance(clause, exp.Where):
        block.binder.aggregates_allowed = False
        try:
            block.where = block.binder.bind(clause.this)
        except ResolutionError as error:
            error.hint = _output_in_where(block.written, clause, error) or error.hint
            raise
        check_condition(block.where, "WHERE")
        block.binder.aggregates_allowed = True
        conjuncts = conjuncts_of(block.where)
    settle_joins(block.context, block.bound, block.scope, conjuncts)
    for condition in block.bound.conditions:
        both = (exp.Paren(this=each) for each in (block.where, condition) if each is not None)
        block.where = condition if block.where is None else exp.And(this=next(both), expression=next(both))
    if isinstance(clause, exp.Where):
        _note_clock(block)
        _check_sessions(block)
        block.bound.node = _filtered(block.node, format_tree(clause.this))


def _output_in_where(written: exp.Select, clause: exp.Where, error: ResolutionError) -> str | None:
    """What to write where WHERE names a column of the SELECT list, which comes after it."""
    for found in clause.find_all(exp.Column) if error.condition == "UNKNOWN_COLUMN" else ():
        shown = alias_of(written, found) if span_of(found) == error.span else None
        if shown is not None and shown.find(exp.Window) is not None:
            return f"WHERE comes before the SELECT list: write QUALIFY {format_tree(clause.this)}, or filter around it"
        if shown is not None:
            return f"WHERE comes before the SELECT list: write {format_tree(shown)} again, or filter around it"
    return None


def _check_sessions(block: Block) -> None:
    """A filter leaves out rows of sessions, and holds none together: unless it leaves out whole ones, the sessions must
    be known before."""
    if not block.bound.unmerged or block.where is None:
        return
    for found in block.where.find_all(exp.Column):
        window = block.bound.windows.get(found.table)
        if window is not None and found.name not in window.keys:
            raise UnmergedSessionError(
                "CLAUSE_NOT_YET",
                "a filter over the rows of such sessions, which are found before it, is not there yet",
                hint="filter before: FROM SESSION(TABLE (SELECT … WHERE …) PARTITION BY …, …)",
                span=span_of(block.written.args["where"]),
            )


def _note_clock(block: Block) -> None:
    """A filter on the clock is taken once for each row."""
    called = nondeterministic_call(block.where) if block.where is not None else None
    if called is not None and not block.node.bounded and nondeterministic_name(called).lower() in _CLOCKS:
        block.context.warn(
            f"{nondeterministic_name(called)} in WHERE is the time of the batch that reads a row; "
            "rows are not taken out again as time goes on"
        )


def _refuse_moving_clock(block: Block) -> None:
    """Spark takes no row out again because time goes on: the view store does, which keeps the rows."""
    for tree in (block.where, block.having, *block.bound.joins):
        found = moving_call(tree)
        if found is not None and not block.node.bounded:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                "temporal filters, which take rows out again as time goes on, are not there yet for this query",
                hint="keep the rows in a materialized view, and filter when you read it",
                span=span_of(found),
                mode=Mode.RETRACT.value,
            )


def _filtered(node: Node, condition: str) -> Node:
    return Filter(
        fields=node.fields,
        inputs=(node,),
        mode=node.mode,
        key=node.key,
        event_time=node.event_time,
        bounded=node.bounded,
        condition=condition,
    )


def _group(block: Block) -> None:
    block.grouping = plan_grouping(block.context, block.written, block.bound, block.scope, block.binder)
    if block.grouping is not None:
        block.binder.window = block.grouping.window
        block.binder.grouped = True


def _changing_source(context: PlanContext, written: exp.Select) -> bool:
    """Whether a query reads a stream whose rows replace each other, itself or below."""
    from_ = written.args.get("from_")
    for table in from_.find_all(exp.Table) if isinstance(from_, exp.From) else ():
        if not isinstance(table.this, exp.Identifier):
            continue
        found = context.catalog.find(Name(table.name, quoted=bool(table.this.quoted)))
        if isinstance(found, SourceDefinition) and found.options.changes != "append":
            return True
        if isinstance(found, ViewDefinition) and any(
            _changing_source(context, inner) for inner in found.query.tree.find_all(exp.Select)
        ):
            return True
    return False


def _having(block: Block) -> None:
    clause = block.written.args.get("having")
    if isinstance(clause, exp.Having):
        copied = clause.copy()
        _replace_aliases(block, copied)
        block.having = block.binder.bind(copied.this)
        if block.grouping is None:
            block.grouping = Grouping.whole()
    if block.grouping is None:
        return
    for item in block.items:
        check_grouped(block.grouping, item.tree, block.scope)
        if not block.context.kept:
            refuse_around(block.context, item.tree, block.scope)
    if block.having is not None:
        check_grouped(block.grouping, block.having, block.scope)


def _replace_aliases(block: Block, clause: exp.Expr) -> None:
    """HAVING may name an output column; a column of the input of that name comes first, and a subquery has its own."""
    for node in list(own_nodes(clause)):
        if isinstance(node, exp.Column) and block.scope.find(node) is None:
            found = alias_of(block.written, node)
            if found is not None:
                node.replace(found.copy())


def _operators(block: Block) -> Node:
    node = block.node
    if block.grouping is not None:
        node = _aggregate(block, node)
        clause = block.written.args.get("having")
        if isinstance(clause, exp.Having):
            node = _filtered(node, format_tree(clause.this))
    elif node.mode is not Mode.APPEND and not node.bounded and changes_at_source(node):
        raise updating_input(block.written, node)
    if block.binder.over:
        over = tuple(format_tree(written) for written in block.binder.over)
        node = Rank(fields=node.fields, inputs=(node,), bounded=True, functions=over)
    return node


def _keep_distinct(block: Block) -> None:
    """Distinct aggregates in the shape that Spark keeps on a stream."""
    if block.grouping is None or block.node.bounded:
        return
    for item in block.items:
        item.tree = distinct_aggregates(item.tree)
    if block.having is not None:
        block.having = distinct_aggregates(block.having)


def _aggregate(block: Block, node: Node) -> Node:
    grouping = block.grouping
    assert grouping is not None
    texts: dict[str, None] = {}
    trees = [item.tree for item in block.items] + ([block.having] if block.having is not None else [])
    for tree in trees:
        for inner in own_nodes(tree):
            text = aggregate_text(inner)
            if text is not None:
                texts[text] = None
    return grouping.operator(block.context, block.written, node, tuple(texts), trees)


def _ranked(block: Block, limit: RankLimit | None) -> Relation:
    """OVER on a stream: the ranks of rows within a window, and the first to arrive of each key, are kept by Spark."""
    if block.bound.unmerged and block.grouping is None:
        raise unmerged_session(span_of(block.binder.over[0]))
    base = _operators_without_over(block)
    windows = block.bound.windows if block.grouping is None else {}
    plan = window_ranks(block, base, limit, windows) or first_rows(block, base, limit)
    if plan is None:
        processing = any(window.processing for window in block.bound.windows.values())
        raise refuse_over(block.binder.over[0], processing=processing)
    return plan


def _operators_without_over(block: Block) -> Node:
    over, block.binder.over = block.binder.over, []
    node = _operators(block)
    block.binder.over = over
    return node
