"""What every job is made of: its scans, the text that Spark runs over them, and what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.closing import spread_us, waits
from penstock.plan.distinct_steps import distinct_steps
from penstock.plan.fingerprint import state_of
from penstock.plan.job_model import JobKind, JobPlan, OutputColumn
from penstock.plan.kept_state import kept_state
from penstock.plan.late_plan import late_text
from penstock.plan.spark_text import spark_sql

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.merge_plan import MergePlan, Reduction


def job_over(
    plan: LogicalPlan,
    found: JobScans,
    kind: JobKind,
    core: exp.Query,
    *,
    how: str,
    key: tuple[str, ...] = (),
    batch: str | None = None,
    reductions: tuple[Reduction, ...] = (),
    merge: MergePlan | None = None,
) -> JobPlan:
    """A job of this kind over the scans; `core` is what Spark runs, and `how` tells who does what."""
    state = state_of(found, kind)
    uses_event_time = waits(found.tree)
    text, steps = distinct_steps(core)
    return JobPlan(
        kind=kind,
        scans=found.scans,
        core=spark_sql(text),
        steps=steps,
        batch=batch,
        reductions=reductions,
        merge=merge,
        key=key,
        columns=tuple(OutputColumn(field.name, field.type) for field in plan.columns),
        uses_event_time=uses_event_time,
        spread_us=spread_us(found.tree) if uses_event_time else 0,
        late=late_text(found.tree) if uses_event_time else None,
        kept=kept_state(found.tree, running=kind == "update"),
        fingerprint=state.fingerprint,
        state=state.text,
        how=how,
        functions=plan.functions,
        dimensions=found.dimensions,
        static=found.static,
    )
