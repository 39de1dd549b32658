"""What a continuous job does not run yet, told by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.closing import distinct_key, waits
from penstock.plan.job_dimensions import check_static, static_nodes, static_relations
from penstock.plan.job_scans import job_scans
from penstock.plan.join_times import time_output
from penstock.plan.nodes import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Limit,
    Node,
    Output,
    Project,
    Rank,
    Scan,
    SessionRows,
    SetOperation,
    Sort,
    TopN,
    Unnest,
    Values,
    WindowAssign,
    all_nodes,
)
from penstock.plan.relation import EVENT_TIME_COLUMN, Mode
from penstock.plan.spark_blocks import (
    aggregates,
    first_keys,
    group_keys,
    relations,
    scans,
    selects,
    window_call,
    window_key,
)
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.logical import LogicalPlan

_RUNS = (
    "today a job runs filters, projections, UNNEST, UNION ALL, windows that close and the first rows of each, joins of "
    "streams and with dimension tables, DISTINCT with the event time, the first row of each key that arrives, "
    "and GROUP BY without a window"
)
_BOUNDED_HINT = "store the result without it as a materialized view, and add it when you read the view"


def refuse(plan: LogicalPlan) -> None:
    """Raises QUERY_NOT_YET where a job cannot run the plan."""
    static = static_nodes(plan)
    if any(isinstance(node, SessionRows) for node in plan.nodes()) and _shows_changes(plan):
        hint = "leave EMIT CHANGES out, or keep them as a materialized view"
        raise _not_yet("rows of sessions that have not closed, in a job, are not there yet", hint, None)
    for node in plan.nodes():
        if id(node) in static:
            check_static(node)
        else:
            _check(node, plan)
    for node in plan.subquery_nodes():
        check_static(node)
    streams = {scan.relation for scan in plan.scans() if id(scan) not in static}
    _refuse_both(streams & static_relations(plan))
    if not streams:
        raise _not_yet("a job over no stream is not there yet", "read a stream or a bounded table", None)
    for select in selects(plan.spark):
        if all(table.name not in streams for table in scans(select)):
            continue  # over dimensions alone
        _check_select(select)
        if first_keys(select) and distinct_key(select) is None and waits(plan.spark):
            # Spark drops rows behind the watermark there, though their windows are still open.
            hint = "add the event time to the PARTITION BY or DISTINCT ON, so that old keys can be forgotten too"
            what = "the first rows of keys without the event time, beside something that waits for the watermark,"
            raise _not_yet(f"{what} in a job are not there yet", hint, None)
    _check_times(plan)
    _check_running(plan.root, covered=False)
    if any(isinstance(node, Aggregate) and _runs(node) and id(node) not in static for node in plan.nodes()):
        refuse_subqueries(plan.spark)


def _check_times(plan: LogicalPlan) -> None:
    """What waits for the watermark stands over rows that have a time by which they end."""
    joins = [node for node in plan.nodes() if isinstance(node, Join) and node.strategy == "stream"]
    if not joins:
        return
    for node in plan.nodes():
        closes = isinstance(node, TopN) or (isinstance(node, Aggregate) and node.window and node.emit is Emit.FINAL)
        if closes and any(_endless(below) for below in all_nodes(node)):
            hint = "bound the event times of the join: a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts"
            raise _not_yet("a window that closes, over a join without a time bound, is not there yet", hint, None)
    job_scans(plan, plan.spark.copy())


def _endless(node: Node) -> bool:
    """Whether a join of streams waits for ever for partners."""
    streams = isinstance(node, Join) and node.strategy == "stream"
    return streams and node.state is not None and node.state.bound is None


def _shows_changes(plan: LogicalPlan) -> bool:
    """Whether windows are to be shown before they close."""
    windows = [node for node in plan.nodes() if isinstance(node, Aggregate) and node.window is not None]
    return plan.emit is Emit.CHANGES or any(node.emit is Emit.CHANGES for node in windows)


def _runs(node: Aggregate) -> bool:
    """Whether the rows of an aggregate change."""
    return node.window is None or node.emit is Emit.CHANGES


def refuse_subqueries(tree: exp.Expr) -> None:
    """What stands at or above a running aggregate is computed by the view store, which has no dimensions."""
    block = tree
    while isinstance(block, exp.Select):
        where = None if aggregates(block) else block.args.get("where")
        parts = [*block.expressions, *group_keys(block), *filter(None, (block.args.get("having"), where))]
        if any(part.find(exp.Subquery) is not None for part in parts):
            raise NotYetError(
                "QUERY_NOT_YET",
                "a subquery in the SELECT list or HAVING of a running aggregate is not there yet",
                hint="put it into the WHERE below the aggregate, or into the query that reads the view",
            )
        below = list(relations(block).values())
        if aggregates(block) or len(below) != 1:
            return
        block = below[0]


def _refuse_both(both: set[str]) -> None:
    for relation in sorted(both):
        hint = "create a second table over the same source, and join with that"
        raise _not_yet(
            f'"{relation}" read as a stream and joined with as a table in one job is not there yet', hint, None
        )


def _check_select(select: exp.Select) -> None:
    """What only the tree shows: whether rows that are kept can be let go of again."""
    if select.args.get("distinct") is not None and not first_keys(select):
        key = distinct_key(select)
        if key is None or time_output(select) == EVENT_TIME_COLUMN:
            hint = "select the event time, or the bounds of a window, so that old rows can be forgotten"
            raise _not_yet("SELECT DISTINCT without the event time in a job is not there yet", hint, None)
    if _open_sessions_in_sets(select):
        hint = "write FROM SESSION(TABLE … PARTITION BY …, …), which says for which keys sessions are found"
        raise _not_yet("grouping sets over session windows in a job are not there yet", hint, None)
    if _sets_without_window(select):
        hint = "put the window into the GROUP BY beside the sets, or into each of them"
        raise _not_yet("a grouping set without the window in a job is not there yet", hint, None)


def _open_sessions_in_sets(select: exp.Select) -> bool:
    """Whether sessions are to be found for sets of keys: Spark finds them for one."""
    key, group = window_key(select), select.args.get("group")
    if key is None or group is None or all(entry in group_keys(select) for entry in group.expressions):
        return False
    found = window_call(select, key)
    return found is not None and found[1].name.lower() == "session_window"


def _sets_without_window(select: exp.Select) -> bool:
    """Whether GROUP BY has a window, and a set of keys without it: that group never ends."""
    key, group = window_key(select), select.args.get("group")
    if key is None or group is None or key in group.expressions:
        return False
    sets = [entry for entry in group.expressions if isinstance(entry, exp.GroupingSets)]
    # ROLLUP and CUBE have a set without any key
    return not any(all(_holds(entry, key) for entry in found.expressions) for found in sets)


def _holds(entry: exp.Expr, key: exp.Expr) -> bool:
    if isinstance(entry, exp.Tuple):
        return key in entry.expressions
    return entry == key or (isinstance(entry, exp.Paren) and entry.this == key)


def _check(node: Node, plan: LogicalPlan) -> None:
    if isinstance(node, Scan):
        _check_scan(node, plan.spark)
    elif isinstance(node, Aggregate):
        _check_aggregate(node, plan)
    elif isinstance(node, Join):
        if node.strategy == "batch":
            raise _not_yet("a join of bounded tables in a job is not there yet", _RUNS, _place(plan.spark, exp.Join))
    elif isinstance(node, SetOperation):
        if node.operator != "UNION ALL":
            raise _not_yet(f"{node.operator} in a job is not there yet", "UNION ALL keeps every row of both", None)
    elif isinstance(node, Values):
        hint = "INSERT INTO … VALUES writes rows to a stream or a sink once"
        if plan.root.kind == "materialized view":
            hint = (
                "a view of them keeps values whose types are known, CAST(NULL AS INT), and that stay what they are, "
                "which NOW() and RAND() do not; " + hint
            )
        raise _not_yet("rows that are written out cannot feed a job with this query yet", hint, None)
    else:
        _check_operator(node, plan.spark)


def _check_operator(node: Node, tree: exp.Expr) -> None:
    if isinstance(node, Sort | Limit):
        word = "ORDER BY" if isinstance(node, Sort) else "LIMIT"
        kind = exp.Order if isinstance(node, Sort) else exp.Limit
        raise _not_yet(f"{word} in a job is not there yet", _BOUNDED_HINT, _place(tree, kind))
    if isinstance(node, Rank):
        raise _not_yet("OVER in a job is not there yet", _BOUNDED_HINT, _place(tree, exp.Window))
    if not isinstance(node, Filter | Project | Unnest | WindowAssign | SessionRows | TopN | Deduplicate | Output):
        raise _not_yet(f"{node.label} in a job is not there yet", _RUNS, None)


def _check_scan(node: Scan, tree: exp.Expr) -> None:
    place = next((span_of(table) for table in scans(tree) if table.name == node.relation), None)
    if node.kind not in ("stream", "table"):
        if node.kind == "materialized view":
            hint = f'build on what "{node.relation}" is built on: put its query in the place of its name'
        else:
            hint = "join it with a stream, or query it with a plain SELECT"
        raise _not_yet(f'a job that reads {node.kind} "{node.relation}" is not there yet', hint, place)
    if node.mode is not Mode.APPEND:
        if node.key is None:
            hint = "add PRIMARY KEY (column) NOT ENFORCED to it, by which its rows replace each other"
        else:
            hint = "such rows are answered by the view store, which does not know all that is in this query"
        raise _not_yet(f'a job that reads "{node.relation}", whose rows change, is not there yet', hint, place)


def _check_aggregate(node: Aggregate, plan: LogicalPlan) -> None:
    if node.window is not None:
        return
    if node.grouping_sets:
        hint = "add a window to the GROUP BY, or write one query for each set"
        raise _not_yet("grouping sets without a window in a job are not there yet", hint, None)
    if plan.bounded and _distinct(plan.spark):
        hint = "group by a window, or use APPROX_COUNT_DISTINCT"
        raise _not_yet("distinct aggregates without a window in a job are not there yet", hint, None)


def _distinct(tree: exp.Expr) -> bool:
    return any(isinstance(node.parent, exp.Anonymous) for node in tree.find_all(exp.Distinct))


def _check_running(node: Node, *, covered: bool) -> None:
    """A running aggregate changes its rows: only projections and filters can stand above it."""
    if isinstance(node, Aggregate) and _runs(node):
        if covered:
            hint = "give the inner aggregate a window, or store it as a view and query the view"
            raise _not_yet("an operator over a running aggregate in a job is not there yet", hint, None)
        covered = True
    elif not isinstance(node, Output | Project | Filter):
        covered = True
    dimension = node.static_input if isinstance(node, Join) else None
    for inner in node.inputs:
        if inner is not dimension:
            _check_running(inner, covered=covered)


def _place(tree: exp.Expr, kind: type[exp.Expr]) -> Span | None:
    for found in tree.find_all(kind):
        span = span_of(found)
        if span is not None:
            return span
    return None


def _not_yet(message: str, hint: str, span: Span | None) -> NotYetError:
    return NotYetError("QUERY_NOT_YET", message, hint=hint, span=span)
