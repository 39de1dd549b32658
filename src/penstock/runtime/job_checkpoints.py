"""The checkpoints of a job: its Spark batches.

Every batch is durable as a whole when it is in the ledger: offsets, state, event time and view belong to one number.
So a checkpoint is asked for by asking for one more batch, it is complete when that batch is in the ledger, and going
back to one takes Spark's checkpoint and everything that the view store holds of later batches back together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RuntimeFailure
from penstock.runtime.checkpoints import CheckpointInfo
from penstock.runtime.states import JobState
from penstock.spark.offset_log import committed_batches, roll_back

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job

_SECONDS: Final = 60.0
_LOOK_AGAIN: Final = 0.02
_POLL: Final = 0.01


class JobCheckpoints:
    """What a `CheckpointCoordinator` triggers, waits for and recovers from, for one job."""

    def __init__(self, engine: Engine, job: Job) -> None:
        if job.spec.plan.of_views:
            raise RuntimeFailure(
                "JOB_STATE",
                f"job {job.name} reads views alone and has no checkpoints of its own",
                hint=f"go back with a job below: {', '.join(job.spec.plan.views)}",
            )
        self._engine = engine
        self._job = job
        self._lock = RLock()
        self._asked: int | None = None

    def trigger(self) -> int:
        """Ask for one more batch; its number."""
        with self._lock:
            if self._asked is not None:
                self.wait(self._asked, _SECONDS)  # numbers are given in order
            self._job.wait_first_batch(_SECONDS)
            last = self._job.last
            assert last is not None
            self._asked = last.batch_id + 1
            self._job.nudge()
            return self._asked

    def wait(self, checkpoint_id: int, timeout_s: float) -> None:
        """Return when the batch is in the ledger and Spark has noted it as done: then it can be gone back to."""
        end = time.monotonic() + timeout_s
        asked = self._asked
        if not self._done(checkpoint_id):
            if asked is None or checkpoint_id > asked:
                raise _unknown(self._job.name, checkpoint_id)
            self._job.wait(lambda: self._done(checkpoint_id), timeout_s, f"checkpoint {checkpoint_id}")
        # Spark notes it a moment later, and tells nobody.
        while max(self._kept(), default=-1) < checkpoint_id:
            if time.monotonic() >= end:
                raise TimeoutError(
                    f"job {self._job.name}: checkpoint {checkpoint_id} took longer than {timeout_s:g} seconds"
                )
            time.sleep(_POLL)

    def _done(self, checkpoint_id: int) -> bool:
        entry = self._engine.home.views.ledger(self._job.name)
        return entry is not None and entry.batch_id >= checkpoint_id

    def recover(self, checkpoint_id: int) -> Mapping[str, Mapping[str, Any]]:
        """Go back to a batch and go on from there; what was kept with it."""
        job = self._job
        if job.spec.sinks:
            raise RuntimeFailure(
                "JOB_STATE",
                f"job {job.name} writes to a sink, which cannot go back with it",
                hint="only the job of a materialized view can be recovered from a checkpoint",
            )
        _refuse_followed(self._engine, job)
        if checkpoint_id not in self._kept():
            raise _unknown(job.name, checkpoint_id)
        with self._engine.turn, job.control:
            running = job.state.active
            if running:
                job.stop(JobState.STOPPED, f"recovery from checkpoint {checkpoint_id}")
            # The store first: a crash in between leaves Spark ahead, which the next start refuses instead of guessing.
            self._engine.home.views.rollback(job.name, checkpoint_id)
            roll_back(job.checkpoint, checkpoint_id)
            self._asked = None
            if running:
                job.start(f"recovered from checkpoint {checkpoint_id}")
                job.wait_first_batch(_SECONDS)
        return self._snapshots(checkpoint_id)

    def _snapshots(self, checkpoint_id: int) -> dict[str, dict[str, Any]]:
        entry = self._engine.home.views.ledger(self._job.name)
        found: dict[str, dict[str, Any]] = {self._job.name: {"batch_id": checkpoint_id}}
        for kept in entry.offsets if entry is not None else ():
            found.setdefault(kept.connector_id, {})[str(kept.partition)] = kept.offset
        return found

    def list(self) -> Sequence[CheckpointInfo]:
        """The batches that can be gone back to."""
        kept = set(self._kept())
        rows = self._engine.system_table("penstock.checkpoints").to_pylist()
        return [
            CheckpointInfo(
                row["batch_id"],
                "completed",
                int(row["started_at"].timestamp() * 1_000_000),
                int(row["completed_at"].timestamp() * 1_000_000),
                {self._job.name: True},
            )
            for row in rows
            if row["job"] == self._job.name and row["batch_id"] in kept
        ]

    def _kept(self) -> tuple[int, ...]:
        return committed_batches(self._job.checkpoint)


def _refuse_followed(engine: Engine, job: Job) -> None:
    """What cannot go back with the job's own view: views that it reads, and sinks that rows are only added to."""
    if job.spec.plan.views:
        raise RuntimeFailure(
            "JOB_STATE",
            f"job {job.name} reads {', '.join(job.spec.plan.views)} beside its stream, which cannot go back with it",
            hint="drop the view and create it again, which reads its input from the start",
        )
    for other in tuple(engine.jobs.values()):
        plan = other.spec.plan
        added = plan.kind == "append" or plan.shows_closed
        if other.spec.sink is not None and added and _stands_on(engine, plan.views, job.name):
            raise RuntimeFailure(
                "JOB_STATE",
                f"job {other.name} writes the rows of view {job.name} to a sink, which cannot go back with it",
                hint=f"drop {other.name} first, and create it again",
            )


def _stands_on(engine: Engine, views: tuple[str, ...], job: str) -> bool:
    """Whether one of these views is that of a job, or is made of its rows."""
    jobs = engine.jobs
    return any(view == job or (view in jobs and _stands_on(engine, jobs[view].spec.plan.views, job)) for view in views)


def _unknown(job: str, checkpoint_id: int) -> RuntimeFailure:
    return RuntimeFailure(
        "UNKNOWN_CHECKPOINT",
        f"job {job} has no checkpoint {checkpoint_id}",
        hint="SELECT batch_id FROM penstock.checkpoints lists those that are kept",
    )
