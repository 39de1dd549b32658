"""A query over streams that nobody keeps: it runs while somebody reads it and leaves nothing behind.

It is a job like any other, with a checkpoint in a directory of its own and an in-memory store in the place of the view
store. Its rows wait in a short queue: a slow reader holds the job back, and memory stays bounded.
"""

from __future__ import annotations

import queue
import shutil
import uuid
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError
from penstock.plan.asked_order import answer_in_order
from penstock.runtime.job import Job
from penstock.runtime.job_control import drain_job
from penstock.runtime.job_runs import start_positions
from penstock.runtime.job_statements import reader_spec
from penstock.runtime.runs import make_run
from penstock.runtime.states import JobState
from penstock.runtime.targets import ConsumerTarget
from penstock.stores.views import ViewStore

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine
    from penstock.runtime.run import Run
    from penstock.stores.views import CommitResult

_QUEUED: Final = 4
_POLL: Final = 0.2
_RESULT: Final = "result"


class EphemeralQuery:
    """A running query. `next_batch` hands out what it finds, `close` ends it and removes its files."""

    def __init__(
        self, engine: Engine, logical: LogicalPlan, plan: JobPlan, *, batch_rows: int, keep_rows: bool = False
    ) -> None:
        """`keep_rows`: keep everything for `collect`, instead of handing it out batch by batch."""
        self._engine = engine
        self._batch_rows = batch_rows
        self._keep_rows = keep_rows
        self._rows: queue.Queue[pa.RecordBatch | None] = queue.Queue(maxsize=_QUEUED)
        self._closing = Event()
        self._kept: list[pa.Table] = []
        self.name = f"query_{uuid.uuid4().hex[:8]}"
        self._updating = plan.kind != "append"
        self._read = answer_in_order(logical, plan, _RESULT)
        self._left = plan.limit  # rows that are still to be handed out, of a query that ends
        self._directory = engine.home.ephemeral / self.name
        self._store = ViewStore.open(None)
        self._store.ask_with(engine.to_ask)
        spec = reader_spec(engine, self.name, plan, _RESULT if self._updating else None)
        self.job = Job(spec, self._store, engine.clock, self._make_run, self._directory / "checkpoint")

    def start(self, timeout: float) -> None:
        """Start the query and wait for its first batch, unless a full queue stands in the way of that."""
        self._engine.watch(self.job)
        try:
            self.job.start()
            self.job.wait(lambda: self.job.last is not None or self._rows.full(), timeout, "the first batch")
        except BaseException:
            self.close()
            raise

    def next_batch(self) -> pa.RecordBatch | None:
        """The next rows; None when the input has ended. JobFailed where the query fails."""
        while True:
            # before: what is queued at that moment is still handed out
            state, ends, given = self.job.state, self._ends(), self._left == 0
            try:
                return self._rows.get(timeout=_POLL)
            except queue.Empty:
                if state is JobState.FAILED:
                    raise self.job.failure() from None
                if state is JobState.STOPPED or ends or given:
                    return None

    def collect(self, timeout: float) -> pa.Table:
        """Read all there is now, close every window, and return the whole result, in the order that is asked for."""
        limit = self.job.spec.plan.limit
        drain_job(self.job, self._engine.clock, timeout)
        if self._updating:
            shown = "" if limit is None else f" LIMIT {limit}"
            return self._store.read(f"{self._read}{shown}").table
        import pyarrow as pa

        if self._kept:
            return pa.concat_tables(self._kept).slice(0, limit)
        return self._empty()

    def _empty(self) -> pa.Table:
        run = self.job.run
        assert run is not None
        return run.empty_result()

    def close(self) -> None:
        """End the query and remove what it left."""
        self._closing.set()
        self._engine.unwatch(self.job)
        with suppress(queue.Empty):
            while True:
                self._rows.get_nowait()
        with suppress(PenstockError):
            if self.job.state.active:
                self.job.stop(JobState.STOPPED, "closed")
        self.job.close()
        self._store.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _ends(self) -> bool:
        """Whether nobody reads any more: the query is being closed, or the whole database."""
        return self._closing.is_set() or self._engine.closed

    def _make_run(self, job: Job, run_number: int) -> Run:
        return make_run(
            job.spec,
            spark=self._engine.home.spark(job.spec.jar_sets),
            store=self._store,
            checkpoint=job.checkpoint,
            state_path=self._engine.home.path,
            run_number=run_number,
            first=start_positions(self._engine.home, job.spec, job.checkpoint.parent),
            target=lambda types: ConsumerTarget(job.spec.plan, self._put, job.spec.view, self._changes, types),
            clock=self._engine.clock,
            functions=self._engine.functions,
            dimensions=self._engine.dimensions.of_job(job.spec, job.checkpoint),
            on_done=job.batch_done,
            on_end=lambda run: self._engine.run_ended(job, run),
            roots=self._engine.home.roots,
        )

    def _put(self, rows: pa.Table) -> None:
        """Queue rows in pieces; waits while the reader is busy."""
        if self._keep_rows:
            if not self._updating:
                self._kept.append(rows)
            return
        if self._left is not None:
            rows = rows.slice(0, self._left)
        for batch in rows.combine_chunks().to_batches(max_chunksize=self._batch_rows):
            while not self._ends():
                try:
                    self._rows.put(batch, timeout=_POLL)
                    break
                except queue.Full:
                    self.job.notify()
        if self._left is not None:
            self._left -= rows.num_rows

    def _changes(self, result: CommitResult) -> pa.Table | None:
        """The changes of one batch as rows with a leading `_op`: an update is a delete and an insert."""
        if self._keep_rows or not result.changes:
            return None
        import pyarrow as pa

        found = self._store.changes(_RESULT, result.first_seq - 1, limit=result.changes)
        operations: list[str] = []
        rows: list[dict[str, object]] = []
        for change in found:
            if change.before is not None:
                operations.append("delete")
                rows.append(change.before)
            if change.row is not None:
                operations.append("insert")
                rows.append(change.row)
        schema = self._store.read(f'SELECT * FROM "{_RESULT}" LIMIT 0').table.schema
        table = pa.Table.from_pylist(rows, schema=schema)
        if self.job.spec.plan.shows_closed:
            return table  # a window that closes is only added
        return table.add_column(0, "_op", pa.array(operations, pa.string()))
