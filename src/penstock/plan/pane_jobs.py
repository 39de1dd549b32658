"""The jobs of windows that the view store keeps as panes, and closes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.plan.fingerprint import StateDescription
from penstock.plan.job_over import job_over
from penstock.plan.panes import best_panes
from penstock.plan.read_once import scans_read_once
from penstock.plan.spark_text import spark_sql
from penstock.plan.windows import duration_words

if TYPE_CHECKING:
    from penstock.plan.best_rows import BestRows
    from penstock.plan.job_model import JobPlan
    from penstock.plan.job_scans import JobScans
    from penstock.plan.joined_panes import JoinOfPanes
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.panes import Panes


def panes_job(plan: LogicalPlan, found: JobScans, panes: Panes) -> JobPlan:
    """Windows of one GROUP BY."""
    length, windows = duration_words(panes.plan.pane_us), panes.plan.windows
    how = f"Spark aggregates each batch by window of {length}, the view store keeps the windows until they close"
    if windows > 1:
        how = f"Spark aggregates each batch by pane of {length}, the view store keeps the panes and closes windows: "
        how += f"a row counts in one pane instead of {windows} windows"
    made = job_over(
        plan,
        found,
        "panes",
        panes.parts.core,
        batch=spark_sql(panes.parts.batch),
        reductions=panes.parts.reductions,
        merge=panes.parts.plan,
        how=how,
    )
    return replace(made, panes=panes.plan, kept=())


def joined_panes_job(plan: LogicalPlan, found: JobScans, parts: JoinOfPanes) -> JobPlan:
    """Windows of several GROUP BYs, which the view store joins when they close."""
    sides = len(parts.joined.sides)
    several = any(side.panes.windows > 1 for side in parts.joined.sides)
    lengths = " or ".join(dict.fromkeys(duration_words(side.panes.pane_us) for side in parts.joined.sides))
    kept = "makes windows of the panes" if several else "keeps the windows"
    core, found = scans_read_once(parts.core, found, plan)
    made = job_over(
        plan,
        found,
        "panes",
        core,
        batch=spark_sql(parts.batch),
        reductions=parts.reductions,
        merge=parts.merge,
        how=f"Spark aggregates each batch by {'pane' if several else 'window'} of {lengths}, the view "
        f"store {kept} of {'both' if sides == 2 else f'all {sides}'} sides of the join, and joins them when they close",
    )
    columns = tuple(replace(column, type=kind) for column, kind in zip(made.columns, parts.types, strict=True))
    return replace(made, panes=parts.panes, joined=parts.joined, columns=columns, kept=())


def best_rows_job(plan: LogicalPlan, found: JobScans, best: BestRows) -> JobPlan:
    """Windows that show the rows with their largest value, which the view store finds when they close."""
    panes = best_panes(plan, found, best)
    batch = spark_sql(panes.parts.batch)
    length = duration_words(panes.plan.pane_us)
    kept = "keeps of each batch the rows with" if best.rows else "aggregates each batch by pane of"
    made = job_over(
        plan,
        found,
        "panes",
        panes.parts.core,
        batch=batch,
        reductions=panes.parts.reductions,
        merge=panes.parts.plan,
        how=f"Spark {kept} {f'{best.words} of every {length}' if best.rows else length}, the view store closes windows "
        f"and shows of each the rows with {best.words}: both sides of the join are the same rows, which are read once",
    )
    if best.rows:  # what is kept depends on what is compared
        state = StateDescription(json.dumps({**json.loads(made.state), "answers": [batch]}, sort_keys=True))
        made = replace(made, state=state.text, fingerprint=state.fingerprint)
    return replace(made, panes=panes.plan, kept=())
