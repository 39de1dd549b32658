"""A query over streams beside materialized views that nobody keeps: its changes are handed out while somebody reads.

They wait in the log of a view that nobody sees. A slow reader holds nothing back, since the views below go on anyway;
what waits for it lies on disk, and goes when it has been read.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError
from penstock.plan.asked_order import answer_in_order
from penstock.runtime.change_rows import in_turn
from penstock.runtime.ephemeral_view import EphemeralView
from penstock.runtime.job_control import drain_job
from penstock.runtime.states import JobState

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine

_POLL: Final = 0.2
_TIDY_EVERY: Final = 20  # readings of the log after which what was read is let go of


class ViewQuery(EphemeralView):
    """A running query, as a live query is."""

    def __init__(self, engine: Engine, logical: LogicalPlan, plan: JobPlan, *, batch_rows: int) -> None:
        super().__init__(engine, plan)
        self._answer = answer_in_order(logical, plan, self.view)
        self._batch_rows = batch_rows
        self._left = plan.limit  # rows that are still to be handed out, of a query that ends
        self._upto = 0  # the last change that was read
        self._readings = 0
        self._ready: deque[pa.RecordBatch] = deque()

    def next_batch(self) -> pa.RecordBatch | None:
        """The next rows; None when the input has ended. JobFailed where the query fails."""
        store = self._engine.home.views
        while not self._ready:
            # before: what is in the log at that moment is still handed out
            state, done = self.job.state, self.ended or self._left == 0
            try:
                if not done and self._read():
                    continue
                if state is JobState.FAILED:
                    raise self.job.failure()
                if state is JobState.STOPPED or done:
                    return None
                store.wait_for(self.view, self._upto, _POLL)
            except PenstockError:
                if self.job.state is JobState.FAILED:  # its view went with one that it reads
                    raise self.job.failure() from None
                if not self.ended:
                    raise
        return self._ready.popleft()

    def _read(self) -> bool:
        """Take what is next in the log; whether there was anything."""
        store, plan = self._engine.home.views, self.job.spec.plan
        found = store.logged(self.view, self._upto, limit=self._batch_rows)
        if not found.seqs:
            return False
        self._upto = found.seqs[-1]
        self._readings += 1
        if self._readings % _TIDY_EVERY == 0:
            store.forget_changes(self.view, self._upto)
        only_added = plan.kind == "append" or plan.shows_closed
        rows = found.changes.after if only_added else in_turn(found.changes)
        if self._left is not None:
            rows = rows.slice(0, self._left)
            self._left -= rows.num_rows
        self._ready += rows.combine_chunks().to_batches(max_chunksize=self._batch_rows)
        return True

    def collect(self, timeout: float) -> pa.Table:
        """Read all there is now, close every window, and return the whole result, in the order that is asked for."""
        limit = self.job.spec.plan.limit
        drain_job(self.job, self._engine.clock, timeout)
        shown = "" if limit is None else f" LIMIT {limit}"
        return self._engine.home.views.read(f"{self._answer}{shown}").table
