"""The scans of a job: every reading of a source under a name of its own, with the columns that are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.closing import distinct_key, time_joins, waits
from penstock.plan.event_marks import settle_marks
from penstock.plan.job_dimensions import (
    DIMENSION_VIEW,
    DimensionPlan,
    StaticView,
    join_keys,
    narrowest,
    static_relations,
    static_views,
)
from penstock.plan.nodes import Scan
from penstock.plan.prune import columns_read, prune
from penstock.plan.relation import Mode
from penstock.plan.spark_blocks import origins, own_window_calls, relations, scans, selects
from penstock.plan.trees import column, identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.logical import LogicalPlan
    from penstock.plan.relation import EventTime
    from penstock.sql.statements import Option


@frozen
class ScanPlan:
    """One reading of a source. `view` is the temporary view under which the job's text reads it.

    `columns` are the declared columns that are needed, in declared order; none are for `SELECT COUNT(*)`. `event_time`
    is there where a window, a bounded join or DISTINCT stands over the scan: rows without it, or far ahead of it, are
    no rows for this job. `changes`: its rows replace each other, and the view also has what changed_rows names.
    `reading`: options that count for this reading, in the place of what the source says.
    """

    id: str  # the relation's name; `name#2`, … for further readings
    view: str
    relation: str
    columns: tuple[str, ...]
    event_time: EventTime | None
    changes: bool = False
    reading: tuple[Option, ...] = ()


@frozen
class JobScans:
    """The tree of a job, pruned and over its own views, its scans and its dimensions."""

    tree: exp.Query
    scans: tuple[ScanPlan, ...]
    dimensions: tuple[DimensionPlan, ...] = ()
    static: tuple[StaticView, ...] = ()  # what the tree reads beside the views of both


def job_scans(plan: LogicalPlan, tree: exp.Query, static: frozenset[str] | None = None) -> JobScans:
    """Names the scans of a tree, which is changed in place. `static`: relations that are no streams, where known."""
    prune(tree)
    known = {scan.relation: scan for scan in (*plan.nodes(), *plan.subquery_nodes()) if isinstance(scan, Scan)}
    if waits(tree):
        settle_marks(tree, {name: scan.event_time.column for name, scan in known.items() if scan.event_time})
    times = _event_times(tree, known)
    read = _columns(tree)
    static = static_relations(plan) if static is None else static
    found: list[ScanPlan] = []
    dimensions: list[DimensionPlan] = []
    seen: dict[str, int] = {}
    for table in scans(tree):
        relation = table.name
        seen[relation] = seen.get(relation, 0) + 1
        scan_id = relation if seen[relation] == 1 else f"{relation}#{seen[relation]}"
        columns = tuple(field.name for field in known[relation].fields if field.name in read[id(table)])
        if relation in static:
            columns = columns or narrowest(known[relation].fields)
            view = f"{DIMENSION_VIEW}{len(dimensions)}"
            dimensions.append(DimensionPlan(scan_id, view, relation, columns, join_keys(tree, table)))
        else:
            view = f"__scan_{len(found)}"
            changes = known[relation].changes is not Mode.APPEND
            time, reading = times.get(id(table)), known[relation].reading
            found.append(ScanPlan(scan_id, view, relation, columns, time, changes, reading))
        if not table.alias:
            table.set("alias", exp.TableAlias(this=identifier(relation)))
        table.set("this", identifier(view))
    return JobScans(tree, tuple(found), tuple(dimensions), static_views(tree, dimensions))


def _columns(tree: exp.Expr) -> dict[int, set[str]]:
    """The columns that are read of each table."""
    found: dict[int, set[str]] = {}
    inside = [query.this for query in tree.find_all(exp.Subquery) if not isinstance(query.parent, exp.From | exp.Join)]
    for select in (block for query in (tree, *inside) for block in selects(query)):
        read = columns_read(select)
        for alias, below in relations(select).items():
            if isinstance(below, exp.Table):
                found[id(below)] = read.get(alias, set())
    return found


def _event_times(tree: exp.Expr, known: Mapping[str, Scan]) -> dict[int, EventTime]:
    """The event time of each table that a window, a bounded join or DISTINCT stands over."""
    found: dict[int, EventTime] = {}
    for select in selects(tree):
        for value in _times_of(select):
            places = origins(select, value)
            if not places:
                raise NotYetError(
                    "QUERY_NOT_YET",
                    "a window, a bounded join or DISTINCT over a join without a time bound, in a job, is not there yet",
                    hint="bound the event times of the join: a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts",
                )
            for origin in places:
                found[id(origin.table)] = _declared(known[origin.table.name], origin.column)
    return found


def _times_of(select: exp.Select) -> list[exp.Expr]:
    """The times and windows that a SELECT itself goes by."""
    found: list[exp.Expr] = [*own_window_calls(select)]
    found += [column(name, alias) for _, time in time_joins(select) for alias, name in time.columns]
    distinct = distinct_key(select)
    return [*found, *([distinct] if distinct is not None else [])]


def _declared(scan: Scan, column: str) -> EventTime:
    declared = scan.event_time
    if declared is None or declared.column != column:
        raise NotYetError(
            "QUERY_NOT_YET",
            f'a window over "{column}", which is not the event time of "{scan.relation}", in a job is not there yet',
            hint=f"declare it: WATERMARK FOR {column}",
        )
    return declared
