"""How the groups of a view over rows that end change: by key, as those of a view over a stream.

Such rows come in batches as well, and the view has the answer so far after each. Only when it is read once, as a whole,
is there nothing that changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import NotYetError
from penstock.plan.relation import Mode

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan


def with_changes_of_groups(plan: LogicalPlan) -> LogicalPlan:
    """The plan of a view, with the change mode that its running groups have."""
    from penstock.plan.job_plan import plan_job

    if not plan.bounded or plan.kept or plan.mode is not Mode.APPEND:
        return plan
    try:
        job = plan_job(plan)
    except NotYetError:
        return plan  # told when the job is to run
    if job.kind not in ("merge", "update", "windows"):
        return plan
    shown = {field.name for field in plan.columns}
    if not {*job.key} <= shown:
        return replace(plan, root=replace(plan.root, mode=Mode.RETRACT, key=None))
    return replace(plan, root=replace(plan.root, mode=Mode.UPSERT, key=job.key))
