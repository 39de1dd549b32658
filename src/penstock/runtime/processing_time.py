"""The clock of jobs with windows over processing time: what it stamps on rows, and when it closes windows.

A batch moves the clock to its own time where it has rows. Without rows the clock is moved from outside, at the moments
at which a window ends, so that windows close in a quiet stream too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.pane_plan import PANE
from penstock.plan.processing_plan import CLOCK

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.processing_plan import ProcessingPlan
    from penstock.runtime.job import Job


def stamped(rows: pa.Table, plan: ProcessingPlan, time_us: int) -> pa.Table:
    """The rows of a batch, once for each window or pane of its time, with the column that says which."""
    import pyarrow as pa

    kind = pa.int64() if plan.column == PANE else pa.timestamp("us", tz="UTC")
    made = [
        rows.append_column(plan.column, pa.repeat(pa.scalar(value, kind), rows.num_rows))
        for value in plan.stamps(time_us)
    ]
    return pa.concat_tables(made)


def close_by_clock(job: Job, now_us: int) -> None:
    """Move the clock of a job to now where a window has ended by it."""
    plan, tracker = job.spec.plan.processing, job.tracker
    if plan is None or tracker is None or tracker.watermark_us is None:
        return
    newest = max((each.max_event_time_us or 0 for each in tracker.partitions()), default=0)
    due = plan.due(tracker.watermark_us, newest)
    if due is not None and due <= now_us:
        job.move_time(lambda found: found.advance([CLOCK], now_us), wait=False)
