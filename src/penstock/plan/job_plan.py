"""From a planned query to what a job runs: Spark's text, the scans below it, and what the view store does.

Three kinds of job. `append`: Spark only adds rows. `merge`: Spark aggregates each batch and the view store, which holds
the state, merges it. `update`: Spark keeps the state, and its rows replace those of the same key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.fingerprint import state_of
from penstock.plan.job_dimensions import DimensionPlan
from penstock.plan.job_scans import JobScans, ScanPlan, job_scans
from penstock.plan.late_plan import late_text
from penstock.plan.merging import BATCH_VIEW, NotMergeableError, merged
from penstock.plan.nodes import Aggregate
from penstock.plan.refused import refuse
from penstock.plan.rules.distinct_aggregates import distinct_aggregates
from penstock.plan.running import Running, running
from penstock.plan.spark_blocks import length_us, relations, selects, window_call, window_key
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import aliased, call, number

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.merge_plan import MergePlan
    from penstock.types import SqlType

__all__ = ["BATCH_VIEW", "KEEP_COLUMN", "DimensionPlan", "JobKind", "JobPlan", "OutputColumn", "ScanPlan", "plan_job"]

JobKind = Literal["append", "merge", "update"]
KEEP_COLUMN: Final = "__keep"  # update: whether the row belongs to the view


@frozen
class OutputColumn:
    """A column of the result. None as type: the one that Spark finds for it."""

    name: str
    type: SqlType | None


@frozen
class JobPlan:
    """What a job runs.

    `core` is Spark SQL over the views of `scans`. Its columns: for `append` those of the result; for `merge` what
    `batch` needs (`batch` reads one batch of it under the name `__batch`); for `update` those of the result, then
    hidden keys (`__k0`, …), then `__keep` where rows can leave the view: a row for which it is not true does.

    A running aggregate without keys has one row, from the first row of its input on.
    """

    kind: JobKind
    scans: tuple[ScanPlan, ...]
    core: str
    batch: str | None
    merge: MergePlan | None
    key: tuple[str, ...]  # columns that tell rows apart (merge, update), hidden ones included; empty: one row
    columns: tuple[OutputColumn, ...]
    uses_event_time: bool  # windows close by the watermark
    spread_us: int  # a watermark so far past the largest event time, rounded up to milliseconds, closes every window
    late: str | None  # see late_plan.late_sql
    fingerprint: str
    state: str  # what the fingerprint stands for, as JSON; see fingerprint.describe_difference
    how: str  # for EXPLAIN: who keeps the state
    functions: tuple[str, ...] = ()  # of the user, that the text calls
    dimensions: tuple[DimensionPlan, ...] = ()


def plan_job(plan: LogicalPlan, *, state: str | None = None) -> JobPlan:
    """What runs for a continuous query; `state` = 'spark' keeps the state of running aggregates in Spark.

    Raises QUERY_NOT_YET for a query that this version does not run in a job.
    """
    refuse(plan)
    tree = plan.spark.copy()
    if plan.bounded:
        _keep_distinct(tree)
    found = job_scans(plan, tree)
    if any(isinstance(node, Aggregate) and node.window is None for node in plan.nodes()):
        return _running_job(plan, found, state)
    spread = spread_us(tree)
    how = "Spark; windows close there" if spread else "Spark; nothing is kept between batches"
    return _made(plan, found, "append", spark_sql(tree), uses_event_time=spread > 0, spread=spread, how=how)


def _keep_distinct(tree: exp.Expr) -> None:
    """A bounded relation is read as a stream by a job: its distinct aggregates in the shape that Spark keeps there."""
    for select in selects(tree):
        for item in select.expressions:
            distinct_aggregates(item)
        having = select.args.get("having")
        if having is not None:
            distinct_aggregates(having)


def _made(
    plan: LogicalPlan,
    found: JobScans,
    kind: JobKind,
    core: str,
    *,
    how: str,
    key: tuple[str, ...] = (),
    batch: str | None = None,
    merge: MergePlan | None = None,
    uses_event_time: bool = False,
    spread: int = 0,
) -> JobPlan:
    state = state_of(found, kind)
    return JobPlan(
        kind=kind,
        scans=found.scans,
        core=core,
        batch=batch,
        merge=merge,
        key=key,
        columns=tuple(OutputColumn(field.name, field.type) for field in plan.columns),
        uses_event_time=uses_event_time,
        spread_us=spread,
        late=late_text(found.tree) if uses_event_time else None,
        fingerprint=state.fingerprint,
        state=state.text,
        how=how,
        functions=plan.functions,
        dimensions=found.dimensions,
    )


def _running_job(plan: LogicalPlan, found: JobScans, state: str | None) -> JobPlan:
    block = running(found.tree)
    if block is None:
        raise NotYetError(
            "QUERY_NOT_YET",
            "a running aggregate over a value that differs each time it is computed is not there yet",
            hint="use the value once, or compute it when you read the view",
        )
    why = "state = 'spark' asks for it" if plan.root.kind not in ("sink", "topic") else "no view holds it"
    if state != "spark":
        try:
            parts = merged(block, plan.columns)
        except NotMergeableError as error:
            why = str(error)
        else:
            keys = next(node.group_by for node in plan.nodes() if isinstance(node, Aggregate))
            by = f" by {', '.join(keys)}" if keys else ""
            return _made(
                plan,
                found,
                "merge",
                spark_sql(parts.core),
                key=_key(block),
                batch=spark_sql(parts.batch),
                merge=parts.plan,
                how=f"Spark aggregates each batch, the view store merges{by}",
            )
    return _made(
        plan,
        found,
        "update",
        spark_sql(_update(block)),
        key=_key(block),
        how=f"Spark keeps the state (update mode): {why}",
    )


def _key(block: Running) -> tuple[str, ...]:
    """The columns that tell the rows of a running aggregate apart: its keys, under a hidden name if nobody sees one."""
    return tuple(_shown(block, key) or f"__k{place}" for place, key in enumerate(block.keys))


def _shown(block: Running, key: exp.Expr) -> str | None:
    return next((name for name, item in block.items if item == key), None)


def _update(block: Running) -> exp.Select:
    """The aggregate in Spark's update mode: every row with its key, and whether HAVING holds for it."""
    items: list[exp.Expr] = [aliased(item.copy(), name) for name, item in block.items]
    for place, key in enumerate(block.keys):
        if _shown(block, key) is None:
            items.append(aliased(key.copy(), f"__k{place}"))
    keep = block.keep.copy() if block.keep is not None else None
    if not block.keys:
        # Spark gives a row for no input at all
        some = exp.GT(this=call("count", exp.Star()), expression=number(0))
        keep = some if keep is None else exp.And(this=some, expression=exp.Paren(this=keep))
    if keep is not None:
        items.append(aliased(keep, KEEP_COLUMN))
    tree = block.block.copy()
    tree.set("having", None)
    tree.set("expressions", items)
    return tree


def spread_us(tree: exp.Expr) -> int:
    """How far behind the largest event time the last window of a query ends: the sum of windows along its longest path.

    A row of time t is in windows that end at t + size at the latest, a session that it is the last row of ends at
    t + gap, and the time of a closed window lies before its end: each window of a chain adds its own length. One that
    is grouped by the window of the query below it ends together with it and adds nothing.
    """
    if isinstance(tree, exp.SetOperation):
        return max(spread_us(tree.this), spread_us(tree.expression))
    if not isinstance(tree, exp.Select):
        return 0
    below = max((spread_us(inner) for inner in relations(tree).values()), default=0)
    key = window_key(tree)
    found = window_call(tree, key) if key is not None else None
    return below + (length_us(found[1]) if found is not None else 0)
