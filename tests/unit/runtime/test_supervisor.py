"""Who looks after jobs: a start that fails is tried again while what kept it from starting may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.clock import ManualClock
from penstock.errors import PenstockError, RuntimeFailure
from penstock.runtime.states import JobState
from penstock.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from penstock.runtime.job import Job

FULL = RuntimeFailure("STORAGE_FULL", "no space left")
DAMAGED = RuntimeFailure("CHECKPOINT_DAMAGED", "it cannot be read")


class Starting:
    """A job that begins to run once its troubles are used up."""

    name = "j"
    restarts = 1
    last = None
    run = None

    def __init__(self, *troubles: PenstockError) -> None:
        self.state = JobState.RESTARTING
        self.starts = 0
        self._troubles = list(troubles)

    def start(self, _: str) -> None:
        self.starts += 1
        if self._troubles:
            self.state = JobState.FAILED
            raise self._troubles.pop(0)
        self.state = JobState.RUNNING


def looked_after(job: Starting, seconds: float) -> None:
    """The supervisor at work on the job for so long."""
    clock = ManualClock()
    supervisor = Supervisor(lambda: (), clock, lambda: None)
    supervisor.start_soon(cast("Job", job))
    for _ in range(int(seconds / 0.1)):
        supervisor._look(cast("Job", job))  # one round of its thread
        clock.advance(seconds=0.1)


def test_a_restart_that_fails_is_tried_again() -> None:
    job = Starting(FULL, FULL)
    looked_after(job, 0.3)
    assert (job.starts, job.state) == (1, JobState.FAILED)
    job = Starting(FULL, FULL)
    looked_after(job, 2.0)
    assert (job.starts, job.state) == (3, JobState.RUNNING)


def test_what_lasts_is_not_tried_again() -> None:
    job = Starting(DAMAGED)
    looked_after(job, 100.0)
    assert (job.starts, job.state) == (1, JobState.FAILED)
