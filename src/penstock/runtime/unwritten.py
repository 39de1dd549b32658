"""Sinks that read views beside streams: where a view changes what they have written, a batch without rows is asked for.

The view store has answered by then; the batch only takes the changes to the sink, under a number that the ledger knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.batches import BatchDone
    from penstock.runtime.job import Job


class UnwrittenChanges:
    """Looks after what views bring to sinks. One thread uses it."""

    def __init__(self) -> None:
        self._asked: dict[str, BatchDone | None] = {}  # by job, the batch behind which one more was asked for

    def look(self, job: Job) -> None:
        """Ask a running job for a batch, once, where there is something to write."""
        if job.unwritten() and self._asked.get(job.name) is not job.last:
            self._asked[job.name] = job.last
            job.nudge()
