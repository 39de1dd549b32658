"""Joins with one version of a row: ASOF, and FOR SYSTEM_TIME AS OF a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.argument_types import kind_of
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.asof_bounds import is_key_equality
from penstock.plan.joins import all_of, conjuncts_of
from penstock.plan.nodes import Aggregate, Deduplicate, Limit, Rank, Scan, Sort, TopN, all_nodes
from penstock.plan.relation import Mode
from penstock.plan.scope import same_name
from penstock.plan.trees import aliased, column, identifier, number, select, type_of
from penstock.plan.unnest import LateralJoin
from penstock.sql.format import format_tree
from penstock.sql.nodes import SystemTime
from penstock.sql.spans import span_of
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.context import PlanContext, Relation
    from penstock.plan.expressions import ExpressionBinder
    from penstock.plan.scope import Leaf, Scope

_CURRENT: Final = (
    "as of PROCTIME() a stream joins a dimension table, a materialized view, rows that replace each other, or a view "
    "of the latest row of each key"
)


def refuse_method(join: exp.Join) -> None:
    """Raises for a word before JOIN that has no meaning on a stream."""
    if join.method == "ASOF" and join.side in ("RIGHT", "FULL"):
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"ASOF {join.side} JOIN has no meaning here: each row in front meets one of the other side",
            hint="write ASOF LEFT JOIN, with the relation in front whose rows are all to be there",
            span=span_of(join.this),
        )
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


def refuse_outer_versions(join: exp.Join) -> None:
    """Raises for a join FOR SYSTEM_TIME that is to have the rows which no row in front meets."""
    system_time = join.this.args.get("system_time") if isinstance(join.this, exp.Table) else None
    if isinstance(system_time, SystemTime) and join.side in ("RIGHT", "FULL"):
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"{join.side} JOIN … FOR SYSTEM_TIME has no meaning: each row in front meets one version of the other side",
            hint="write LEFT JOIN, with the relation in front whose rows are all to be there",
            span=span_of(system_time) or span_of(join.this),
        )


def is_asof(join: exp.Join) -> bool:
    """Whether each row meets the last of those that the condition of a join allows."""
    return join.method == "ASOF" and join.kind in ("", "INNER", "OUTER")


def check_asof(join: exp.Join, condition: exp.Expr | None) -> None:
    """Raise INVALID_ARGUMENT where nothing, or more than one thing, says which of the rows is the last."""
    parts = conjuncts_of(condition) if condition is not None else []
    compared = [part for part in parts if isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE)]
    if len(compared) != 1:
        on, found = join.args.get("on"), "more than one" if compared else "none"
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"an ASOF join goes by one comparison, such as a.ts >= b.ts, and here is {found}",
            hint="write ASOF JOIN b ON a.key = b.key AND a.ts >= b.ts: each row of a meets the last such row of b; "
            "where there are more, MATCH_CONDITION (a.ts >= b.ts) says which one it is",
            span=(span_of(on) if on is not None else None) or span_of(join.this),
        )


def version_condition(
    context: PlanContext, join: exp.Join, relation: Relation, leaf: Leaf, scope: Scope, binder: ExpressionBinder
) -> exp.Expr | None:
    """The condition of a join FOR SYSTEM_TIME AS OF an event time: rows of a stream are versions, from their event
    time on. None where there is no such join, or each batch sees the latest version of a dimension."""
    system_time = join.this.args.get("system_time") if isinstance(join.this, exp.Table) else None
    if not isinstance(system_time, SystemTime):
        return None
    if _is_processing_time(system_time.this, scope):
        if (relation.node.bounded and not context.kept) or relation.open or _looked_up(relation):
            return None
        what = "a join as of PROCTIME() is not there yet in this query"
        hint = _CURRENT
        if not _is_current(relation):
            what = "rows of a stream that are only added have no version that is current"
            name = relation.node.relation if isinstance(relation.node, Scan) else leaf.alias
            hint = (
                f"say which row of a key is current: CREATE VIEW {name}_now AS SELECT DISTINCT ON (key) * FROM {name} "
                f"ORDER BY key, ts DESC, and JOIN {name}_now FOR SYSTEM_TIME AS OF PROCTIME(); or leave FOR "
                f"SYSTEM_TIME out to meet every row; {hint}"
            )
        elif not _meets_once(join):
            what = f"a {join.side or join.kind} JOIN as of PROCTIME() is not there yet, an inner one and LEFT JOIN are"
    else:
        asked = binder.bind(system_time.this)
        _check_is_time(asked, system_time)
        time = _version_time(relation)
        known = relation.open or _looked_up(relation)
        if not known and (time is None or _latest_alone(relation) is not None):
            raise _timeless(join, relation, leaf)
        if context.kept and time is not None and not known:
            return exp.GTE(this=asked, expression=column(time, leaf.alias))
        what, hint = "joins as of an event time are not there yet", _CURRENT
    raise NotYetError(
        "VERSIONED_JOIN",
        what,
        hint=hint,
        span=span_of(system_time) or span_of(join.this),
        mode="append",
    )


def _check_is_time(asked: exp.Expr, system_time: SystemTime) -> None:
    """A version holds from a time on, so that it is asked for by one."""
    given = type_of(asked)
    if kind_of(given) not in (None, "TIMESTAMP", "DATE"):
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"FOR SYSTEM_TIME AS OF takes a TIMESTAMP, and {format_tree(system_time.this)} is {given}",
            hint="name the event time of the relation in front, or CAST it; TIMESTAMP_MILLIS(x) reads a number",
            span=span_of(system_time.this),
        )


def as_of_event_time(join: exp.Join, scope: Scope) -> bool:
    """Whether a join is one FOR SYSTEM_TIME AS OF an event time."""
    system_time = join.this.args.get("system_time") if isinstance(join.this, exp.Table) else None
    return isinstance(system_time, SystemTime) and not _is_processing_time(system_time.this, scope)


def _version_time(relation: Relation) -> str | None:
    """The column with the time from which on a row holds."""
    if relation.versions is not None:
        return relation.versions.time
    event_time = relation.node.event_time
    return None if event_time is None or event_time.of_window else event_time.column


def _latest_alone(relation: Relation) -> str | None:
    """The source whose rows replace each other below a query: all that is known of those is the latest."""
    if isinstance(relation.node, Scan):
        return None
    scans = [node for node in all_nodes(relation.node) if isinstance(node, Scan)]
    return next((scan.relation for scan in scans if scan.changes is not Mode.APPEND), None)


def meets_current(context: PlanContext, join: exp.Join, relation: Relation, scope: Scope) -> bool:
    """Whether each row meets what is current on the right when it comes, once and for all: FOR SYSTEM_TIME AS OF
    PROCTIME() of rows that replace each other, or of materialized views."""
    system_time = join.this.args.get("system_time") if isinstance(join.this, exp.Table) else None
    if not context.kept or not isinstance(system_time, SystemTime) or not _is_processing_time(system_time.this, scope):
        return False
    return _is_current(relation) and _meets_once(join)


def _is_current(relation: Relation) -> bool:
    """Whether the rows of a relation are those of now: its sources' are, or its answer changes as rows come."""
    nodes = list(all_nodes(relation.node))
    scans = [node for node in nodes if isinstance(node, Scan)]
    changes = any(isinstance(node, Aggregate | Rank | TopN | Deduplicate | Limit) for node in nodes)
    return bool(scans) and (changes or all(map(_has_current, scans)))


def _meets_once(join: exp.Join) -> bool:
    return join.side in ("", "LEFT") and join.kind in ("", "INNER", "OUTER")


def _has_current(scan: Scan) -> bool:
    """Whether the rows of a relation are those of now: changes replace them, or take them away."""
    return scan.kind == "materialized view" or scan.looked_up or scan.changes is not Mode.APPEND


def version_keys(
    join: exp.Join, kind: str, condition: exp.Expr | None, relation: Relation, leaf: Leaf
) -> tuple[exp.Expr | None, list[exp.Expr]]:
    """Of the condition of a join with versions, by which a version is found, and what is asked of the version then."""
    parts = conjuncts_of(condition) if condition is not None else []
    keys = [part for part in parts if is_key_equality(part)]
    wanted = _version_key(relation)
    if wanted:
        compared = {name: part for part in keys for name in _of_leaf(part, leaf) if name in wanted}
        missing = [name for name in wanted if name not in compared]
        if missing:
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f'a join as of a time with "{leaf.alias}" has to say of which key: nothing is compared with '
                f"{', '.join(missing)}",
                hint=f"write ON … = {leaf.alias}.{missing[0]}: a version is one of its key; the rest goes into WHERE",
                span=span_of(join.this),
            )
        keys = [part for part in keys if any(part is each for each in compared.values())]
    more = [part for part in parts if not any(part is key for key in keys)]
    if more and kind not in ("inner", "left"):
        raise NotYetError(
            "VERSIONED_JOIN",
            f"a {kind.upper()} JOIN as of an event time goes by the equalities of its key alone",
            hint="write an inner join or a LEFT JOIN, and choose the rows of it in a query around it",
            span=span_of(join.args["on"]) if join.args.get("on") is not None else span_of(join.this),
            mode="retract",
        )
    return all_of(keys), more


def version_then(relation: Relation, leaf: Leaf, source: exp.Expr, found_by: exp.Expr, more: exp.Expr) -> LateralJoin:
    """A LEFT JOIN in which more is asked of a version, once it is found.

    A row whose version does not meet that has NULLs, and none of the versions before it is looked at:

        FROM o LEFT JOIN LATERAL (SELECT … FROM u WHERE u.id = o.id AND u.ts <= o.ts ORDER BY u.ts DESC LIMIT 1) AS u
        ON u.amount > 3
    """
    time = _version_time(relation)
    assert time is not None
    alias = leaf.alias
    shown = tuple(entry for entry in relation.fields if entry.part is None)
    latest = exp.Ordered(this=column(time, alias), desc=True, nulls_first=False)
    rows = select(
        [aliased(column(entry.name, alias), entry.name) for entry in shown],
        source,
        where=exp.Where(this=found_by),
        order=exp.Order(expressions=[latest]),
        limit=exp.Limit(expression=number(1)),
    )
    below = relation.node
    ordered = Sort(fields=shown, inputs=(below,), bounded=below.bounded, order_by=(f"{time} DESC",))
    clause = exp.Join(
        this=exp.Lateral(this=exp.Subquery(this=rows), alias=exp.TableAlias(this=identifier(alias))),
        side="LEFT",
        on=more,
    )
    nullable = replace(leaf, fields=tuple(replace(entry, nullable=True) for entry in leaf.fields))
    one = Limit(fields=shown, inputs=(ordered,), bounded=below.bounded, limit="1")
    return LateralJoin(clause, nullable, alias, one)


def _version_key(relation: Relation) -> tuple[str, ...]:
    """The columns whose rows are versions of one another; none: those that the join itself compares are."""
    if relation.versions is not None:
        return relation.versions.key
    node = relation.node
    if not isinstance(node, Scan) or node.changes is Mode.APPEND or node.event_time is None:
        return ()
    return tuple(name for name in node.key or () if name != node.event_time.column)


def _of_leaf(part: exp.Expr, leaf: Leaf) -> list[str]:
    """The columns of the joined relation that an equality compares as they are."""
    sides = (part.this, part.expression)
    return [side.name for side in sides if isinstance(side, exp.Column) and side.table == leaf.alias]


def _timeless(join: exp.Join, relation: Relation, leaf: Leaf) -> ResolutionError:
    node = relation.node
    name = node.relation if isinstance(node, Scan) else leaf.alias
    times = [entry.name for entry in node.visible if entry.type == TIMESTAMP]
    what = f'"{name}" has no event time, from which on a version of its rows holds'
    below = _latest_alone(relation)
    if below is not None:
        what = f'"{name}" stands on "{below}", whose rows replace each other, and shows the latest alone'
        hint = f'join "{below}" itself FOR SYSTEM_TIME AS OF the time, and compute and filter behind the join'
    elif not isinstance(node, Scan):
        hint = (
            "let its query show the event time of its stream; or let it choose the latest row of each key: SELECT … "
            "FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts DESC) AS rn FROM …) WHERE rn = 1"
        )
    elif node.kind == "materialized view" and node.changes is not Mode.APPEND:
        what = f'materialized view "{name}" holds the latest version of its rows alone, and none from before'
        hint = "join what it is built on as of the time, or a plain VIEW with its query; or join it AS OF PROCTIME()"
    elif node.kind == "materialized view":
        hint = "let it show the event time of its stream"
    else:
        hint = f"declare one in it: WATERMARK FOR {times[0] if times else 'ts'} AS …"
        hint += "" if times else ", of a column that is a TIMESTAMP"
    return ResolutionError("MISSING_EVENT_TIME", what, hint=hint, span=span_of(join.this))


def with_versions(relation: Relation) -> Relation:
    """The relation with every version of its rows: where they replace each other, those of one moment alone do."""
    node = relation.node
    if not isinstance(node, Scan) or node.changes is Mode.APPEND or not node.key or node.event_time is None:
        return relation
    key = (*node.key, node.event_time.column)
    return replace(relation, node=replace(node, key=tuple(dict.fromkeys(key)), version=None))


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
