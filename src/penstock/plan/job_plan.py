"""From a planned query to what a job runs; see `job_model` for the kinds of jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, bugs_told
from penstock.plan.best_rows import best_rows
from penstock.plan.changing import changing_aggregate, changing_of
from penstock.plan.closing import distinct_key
from penstock.plan.fingerprint import StateDescription
from penstock.plan.finish_jobs import finish_job
from penstock.plan.first_few import without_limit
from penstock.plan.job_dimensions import DimensionPlan, static_nodes
from penstock.plan.job_model import JobKind, JobPlan, OutputColumn
from penstock.plan.job_over import job_over
from penstock.plan.job_scans import JobScans, ScanPlan, job_scans
from penstock.plan.join_times import closing_together, note_stand_in
from penstock.plan.joined_panes import closes_together, joined_panes
from penstock.plan.kept_state import kept_state
from penstock.plan.lookups import LookupTexts, with_lookups
from penstock.plan.merging import BATCH_VIEW, NotMergeableError, merged
from penstock.plan.nodes import Aggregate
from penstock.plan.pane_jobs import best_rows_job, joined_panes_job, panes_job
from penstock.plan.panes import STORED, panes_of
from penstock.plan.processing import over_processing_time, processing_of
from penstock.plan.refused import refuse, refuse_subqueries
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.rules.distinct_aggregates import distinct_aggregates
from penstock.plan.running import Running, running
from penstock.plan.spark_blocks import (
    first_keys,
    group_keys,
    selects,
    stream_joins,
    window_call,
    window_key,
)
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import call, dot, number
from penstock.plan.ttl import job_with_ttl
from penstock.plan.update_mode import check_update, key_columns, update_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.logical import LogicalPlan

__all__ = [
    "BATCH_VIEW",
    "DimensionPlan",
    "JobKind",
    "JobPlan",
    "OutputColumn",
    "ScanPlan",
    "plan_job",
]


@bugs_told()
def plan_job(plan: LogicalPlan, *, state: str | None = None) -> JobPlan:
    """What runs for a continuous query; `state` = 'spark', here or in the plan, keeps all state in Spark.

    Raises QUERY_NOT_YET for a query that this version does not run in a job.
    """
    first = without_limit(plan)
    if first is None:
        job = job_with_ttl(plan, _plan_job(plan, state or plan.state))
        return replace(job, in_place=plan.in_place) if plan.in_place else job
    every, limit = first
    made = plan_job(every, state=state)
    return replace(made, limit=limit, how=f"{made.how}; it ends with the last of {limit} rows")


def _plan_job(plan: LogicalPlan, state: str | None) -> JobPlan:
    if plan.kept:
        return finish_job(plan, state)
    refuse(plan)
    timed = over_processing_time(plan)
    if timed is not None:
        return _processing_job(plan, timed, state)
    tree = plan.spark.copy()
    if plan.bounded:
        _keep_distinct(tree)
    _session_keys(tree)
    if state != "spark" and closes_together(plan):
        closing_together(tree)
    best = best_rows(tree) if state != "spark" and plan.root.kind in STORED else None
    why = ""
    if best is not None:
        try:
            return _with_lookups(job_scans(plan, best.tree.copy()), lambda found: best_rows_job(plan, found, best))
        except NotMergeableError as error:
            why = f"; the rows with {best.words} are found by a join: {error}"
    made = _with_lookups(job_scans(plan, tree), lambda found: _planned(plan, found, state))
    return replace(made, how=made.how + why)


def _with_lookups(found: JobScans, make: Callable[[JobScans], JobPlan]) -> JobPlan:
    """The job over these scans, with the text that asks for the rows of dimensions by calls, where there is one."""
    made = make(found)
    looked_up = with_lookups(found)
    if looked_up is None:
        return made
    other, lookups = looked_up
    texts = make(replace(found, tree=other))
    if texts.kind != made.kind:
        return made
    return replace(made, lookup=LookupTexts(texts.core, texts.steps, texts.late, lookups))


def _processing_job(plan: LogicalPlan, node: Aggregate, state: str | None) -> JobPlan:
    """Windows over processing time, which the view store keeps: the rows of a batch have the time of the batch."""
    if state == "spark":
        raise NotYetError(
            "PROCESSING_TIME_WINDOW",
            "windows over processing time that no view holds are not there yet",
            hint="keep them as a materialized view, without state = 'spark'",
        )
    refuse_subqueries(plan.spark)
    made = processing_of(plan, node)
    batch = spark_sql(made.parts.batch)
    found = job_scans(plan, made.parts.core)
    job = job_over(
        plan,
        found,
        "panes" if made.panes is not None else "windows",
        found.tree,
        key=(plan.root.key or ()) if made.panes is None else (),
        batch=batch,
        reductions=made.parts.reductions,
        merge=made.parts.plan,
        how="Spark aggregates each batch, whose rows have the time at which it was planned; the view store keeps the "
        f"windows of that time{made.parts.plan.how_values} and closes them by the clock",
    )
    facts = {"aggregates": [{"keys": [str(node.window), *node.group_by], "aggregates": [batch], "rows": [job.core]}]}
    kept = StateDescription(json.dumps(json.loads(job.state) | facts | {"kept by": "the view store"}, sort_keys=True))
    return replace(
        job,
        panes=made.panes,
        windows=made.windows,
        processing=made.plan,
        spread_us=made.plan.spread_us,
        state=kept.text,
        fingerprint=kept.fingerprint,
    )


def _planned(plan: LogicalPlan, found: JobScans, state: str | None) -> JobPlan:
    static = static_nodes(plan)
    changing = changing_aggregate(plan)
    if changing is not None:
        refuse_subqueries(found.tree)
        return _changing_job(plan, found, changing, state)
    if any(isinstance(node, Aggregate) and node.window is None and id(node) not in static for node in plan.nodes()):
        refuse_subqueries(found.tree)
        return _running_job(plan, found, state)
    no_panes = ""
    if state != "spark":
        try:
            joined = joined_panes(plan, found)
            if joined is not None:
                return joined_panes_job(plan, found, joined)
            panes = panes_of(plan, found)
            if panes is not None:
                return panes_job(plan, found, panes)
        except NotMergeableError as error:
            no_panes = f": {error}"
    return job_over(plan, found, "append", found.tree, how=f"Spark; {_kept(found.tree)}{no_panes}")


def _changing_job(plan: LogicalPlan, found: JobScans, node: Aggregate, state: str | None) -> JobPlan:
    """Windows that show each change: kept by the view store, or by Spark in its update mode."""
    why = _asked_for(plan)
    if state != "spark":
        try:
            windows = changing_of(plan, found, node)
        except NotMergeableError as error:
            why = str(error)
        else:
            parts = windows.parts
            made = job_over(
                plan,
                found,
                "windows",
                parts.core,
                key=plan.root.key or (),
                batch=spark_sql(parts.batch),
                reductions=parts.reductions,
                merge=parts.plan,
                how=f"Spark aggregates each batch, the view store merges by {', '.join(node.group_by)}"
                f"{parts.plan.how_values}, and forgets "
                "what it merges from when the watermark has passed the end of a window",
            )
            return replace(made, windows=windows.plan, kept=kept_state(parts.core, running=False))
    if node.window is not None and node.window.kind == "SESSION":
        raise NotYetError(
            "QUERY_NOT_YET",
            f"sessions with EMIT CHANGES that Spark keeps are not there yet: {why}",
            hint="leave EMIT CHANGES out; or keep them as a materialized view, grouped by the keys of PARTITION BY, "
            "with COUNT, SUM, MIN, MAX, AVG, COUNT(DISTINCT), percentiles or STDDEV, and filter before: "
            "SESSION(TABLE (SELECT … WHERE …), …)",
        )
    return _update_job(plan, found, why)


def _asked_for(plan: LogicalPlan) -> str:
    return "state = 'spark' asks for it" if plan.root.kind not in ("sink", "topic") else "no view holds it"


def _kept(tree: exp.Expr) -> str:
    """In words, what Spark keeps of a query that only adds rows."""
    blocks = selects(tree)
    joins = [time for block in blocks for _, time in stream_joins(block)]
    found = []
    if any(not time.closes for time in joins):
        found.append("every row of both streams of a join is kept there for ever")
    if any(time.closes for time in joins):
        found.append("joined rows are kept there until the watermark has passed their bound")
    if any(window_key(block) is not None for block in blocks):
        found.append("windows close there")
    if any(distinct_key(block) is not None for block in blocks):
        found.append("duplicates are forgotten there when the watermark passes them")
    if any(first_keys(block) and distinct_key(block) is None for block in blocks):
        found.append("every key is remembered there for ever")
    return ", ".join(found) or "nothing is kept between batches"


def _session_keys(tree: exp.Expr) -> None:
    """Gives sessions without a key one: Spark keeps no sessions over all rows at once, and folds constants away."""
    for block in selects(tree):
        key = window_key(block)
        found = window_call(block, key) if key is not None else None
        if key is None or found is None or found[1].name.lower() != "session_window" or len(group_keys(block)) > 1:
            continue
        time = found[1].expressions[0] if isinstance(key, exp.Anonymous) else dot(key.copy(), "start")
        if isinstance(time, exp.Column) and time.name == WINDOW_COLUMN:
            time = dot(time, "end")
        nothing = call("pmod", call("unix_micros", time.copy()), number(1))
        block.args["group"].append("expressions", note_stand_in(nothing))


def _keep_distinct(tree: exp.Expr) -> None:
    """A bounded relation is read as a stream by a job: its distinct aggregates in the shape that Spark keeps there."""
    for select in selects(tree):
        for item in select.expressions:
            distinct_aggregates(item)
        having = select.args.get("having")
        if having is not None:
            distinct_aggregates(having)


def _running_job(plan: LogicalPlan, found: JobScans, state: str | None) -> JobPlan:
    block = _running(found)
    why = _asked_for(plan)
    if state != "spark":
        try:
            parts = merged(block, plan.columns)
        except NotMergeableError as error:
            why = str(error)
        else:
            keys = next(node.group_by for node in plan.nodes() if isinstance(node, Aggregate))
            by = f" by {', '.join(keys)}" if keys else ""
            return job_over(
                plan,
                found,
                "merge",
                parts.core,
                key=key_columns(block),
                batch=spark_sql(parts.batch),
                reductions=parts.reductions,
                merge=parts.plan,
                how=f"Spark aggregates each batch, the view store merges{by}",
            )
    return _update_job(plan, found, why)


def _running(found: JobScans) -> Running:
    block = running(found.tree)
    if block is None:
        raise NotYetError(
            "QUERY_NOT_YET",
            "a running aggregate over a value that differs each time it is computed is not there yet",
            hint="use the value once, or compute it when you read the view",
        )
    return block


def _update_job(plan: LogicalPlan, found: JobScans, why: str) -> JobPlan:
    block = _running(found)
    check_update(found.tree, block.block)
    return job_over(
        plan,
        found,
        "update",
        update_tree(block),
        key=key_columns(block),
        how=f"Spark keeps the state (update mode): {why}",
    )
