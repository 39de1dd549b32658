"""Who looks after jobs: a start that fails is tried again while what kept it from starting may pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from penstock.clock import ManualClock
from penstock.errors import PenstockError, RuntimeFailure
from penstock.runtime.backoff import transient
from penstock.runtime.job import Job
from penstock.runtime.states import JobState
from penstock.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from penstock.runtime.job_spec import JobSpec
    from penstock.runtime.run import Run
    from penstock.stores.views import ViewStore

FULL = RuntimeFailure("STORAGE_FULL", "no space left")
DAMAGED = RuntimeFailure("CHECKPOINT_DAMAGED", "it cannot be read")


class Starting:
    """A job that begins to run once its troubles are used up."""

    name = "j"
    restarts = 1
    last = None
    run = None

    def __init__(self, *troubles: PenstockError, settings: Mapping[str, object] | None = None) -> None:
        self.spec = SimpleNamespace(session=SimpleNamespace(settings=settings or {}))
        self.error: PenstockError | None = None
        self.state = JobState.RESTARTING
        self.starts = 0
        self._troubles = list(troubles)

    def start(self, _: str, *, tried_again: bool) -> None:
        assert tried_again
        self.starts += 1
        if self._troubles:
            trouble = self._troubles.pop(0)
            self.state = JobState.RESTARTING if transient(trouble) else JobState.FAILED
            raise trouble
        self.state = JobState.RUNNING

    def move(self, after: JobState, _: str, error: PenstockError | None = None) -> None:
        self.state, self.error = after, error


def looked_after(job: Starting, seconds: float) -> None:
    """The supervisor at work on the job for so long."""
    clock = ManualClock()
    supervisor = Supervisor(lambda: (), clock, lambda: None)
    supervisor.start_soon(cast("Job", job))
    for _ in range(int(seconds / 0.1)):
        supervisor._look(cast("Job", job))  # one round of its thread
        clock.advance(seconds=0.1)


def restarting(job: Starting) -> bool:
    return job.state is JobState.RESTARTING


def test_a_restart_that_fails_is_tried_again() -> None:
    job = Starting(FULL, FULL)
    looked_after(job, 0.3)
    assert (job.starts, job.state) == (1, JobState.RESTARTING)
    job = Starting(FULL, FULL)
    looked_after(job, 2.0)
    assert (job.starts, job.state) == (3, JobState.RUNNING)


def test_what_lasts_is_not_tried_again() -> None:
    job = Starting(DAMAGED)
    looked_after(job, 100.0)
    assert (job.starts, job.state) == (1, JobState.FAILED)


def test_sc11_three_attempts_a_second_apart() -> None:
    """SC11: `restart_attempts` and `restart_delay` bound how often a job is started again, and how fast."""
    settings = {"restart_attempts": 3, "restart_delay": timedelta(seconds=1)}
    clock = ManualClock()
    supervisor = Supervisor(lambda: (), clock, lambda: None)
    job = Starting(settings=settings)
    job.state, job.restarts = JobState.RUNNING, 0
    waits = []
    for _ in range(4):
        run = SimpleNamespace(failure=FULL, cause=FULL)
        job.run = run  # type: ignore[assignment]
        supervisor.ended(cast("Job", job), cast("Run", run))
        if job.state is JobState.FAILED:
            break
        begun = clock.monotonic()
        while restarting(job):
            clock.advance(seconds=0.01)
            supervisor._look(cast("Job", job))
        waits.append(round(clock.monotonic() - begun, 1))
    assert waits == [1.0, 1.0, 1.0]
    assert (job.state, job.error, job.restarts) == (JobState.FAILED, FULL, 3)


def test_a_function_that_ends_its_worker_again_and_again_has_failed() -> None:
    gone = RuntimeFailure("SPARK_FAILED", "job j: it failed", detail="Python worker exited unexpectedly (crashed)")
    plain = RuntimeFailure("SPARK_FAILED", "job j: Python worker exited unexpectedly (crashed)")
    assert transient(gone)

    def ends(job: Starting, supervisor: Supervisor, *errors: PenstockError) -> str:
        for error in errors:
            job.state = JobState.STARTING
            job.run = SimpleNamespace(failure=error, cause=error)  # type: ignore[assignment]
            supervisor.ended(cast("Job", job), cast("Run", job.run))
        return job.state.value

    def one(*functions: str) -> Starting:
        job = Starting()
        job.spec.plan, job.spec.sources = SimpleNamespace(functions=functions), ()
        return job

    supervisor = Supervisor(lambda: (), ManualClock(), lambda: None)
    job = one("f")
    assert ends(job, supervisor, gone, plain) == "restarting"
    assert ends(job, supervisor, FULL, gone, gone) == "restarting", "not in a row"
    job.last = SimpleNamespace()  # type: ignore[assignment]
    assert ends(job, supervisor, gone) == "restarting", "it had done a batch"
    job.last = None
    assert ends(job, supervisor, gone) == "restarting"
    assert ends(job, supervisor, plain) == "failed"
    assert job.error is not None
    assert job.error.condition == "FUNCTION_FAILED"
    assert job.error.message == "job j: a Python worker ended while it ran function f"
    assert ends(one(), Supervisor(lambda: (), ManualClock(), lambda: None), *[gone] * 9) == "restarting"


def test_a_start_that_fails_counts_as_an_attempt() -> None:
    job = Starting(*[FULL] * 9, settings={"restart_attempts": 2, "restart_delay": timedelta(seconds=1)})
    looked_after(job, 100.0)
    assert (job.starts, job.state) == (3, JobState.FAILED)


def test_closing_waits_for_an_end_that_is_being_written_down() -> None:
    """What is written down goes to a store that is closed next."""
    supervisor = Supervisor(lambda: (), ManualClock(), lambda: None)
    began, go_on = Event(), Event()

    class Slow(Starting):
        def move(self, after: JobState, reason: str, error: PenstockError | None = None) -> None:
            began.set()
            assert go_on.wait(60)
            super().move(after, reason, error)

    job, run = Slow(), SimpleNamespace(failure=DAMAGED, cause=DAMAGED)
    job.state, job.run = JobState.RUNNING, run  # type: ignore[assignment]
    ending = Thread(target=lambda: supervisor.ended(cast("Job", job), cast("Run", run)))
    closing = Thread(target=supervisor.close)
    ending.start()
    assert began.wait(60)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    go_on.set()
    closing.join(60)
    ending.join(60)
    assert (closing.is_alive(), job.state) == (False, JobState.FAILED)
    job.state = JobState.RUNNING
    job.notify = lambda: None  # type: ignore[attr-defined]
    supervisor.ended(cast("Job", job), cast("Run", run))
    assert not restarting(job)
    assert job.state.value == "running", "the end of a query that closing ends is no failure"


def test_why_a_job_is_tried_again_is_told_until_it_runs(tmp_path: Path) -> None:
    made = Job(
        cast("JobSpec", SimpleNamespace(name="j")),
        cast("ViewStore", None),
        ManualClock(),
        cast("Callable[[Job, int], Run]", None),
        tmp_path,
    )
    for state, error in (
        (JobState.STARTING, None),
        (JobState.RESTARTING, FULL),
        (JobState.STARTING, None),
    ):
        made.move(state, "", error)
    assert made.error is FULL
    made.move(JobState.RUNNING, "")
    assert made.error is None


def test_jobs_begin_a_few_at_a_time() -> None:
    """All jobs of a home that is opened again would start their processes at once, and time out together."""
    clock = ManualClock()

    class Slow(Starting):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name
            self.started_at_us: int | None = None

        def start(self, _: str, *, tried_again: bool) -> None:
            self.starts += 1
            self.state, self.started_at_us = JobState.STARTING, clock.now_us()

    jobs = [Slow(f"j{number}") for number in range(10)]
    supervisor = Supervisor(lambda: cast("list[Job]", jobs), clock, lambda: None)
    for job in jobs:
        supervisor.start_soon(cast("Job", job))

    def looked() -> int:
        for job in jobs:
            supervisor._look(cast("Job", job))
        return sum(job.starts for job in jobs)

    assert (looked(), looked()) == (4, 4)
    jobs[0].state = JobState.RUNNING
    assert looked() == 5, "the next one takes its turn"
    clock.advance(seconds=31)
    assert looked() == 9, "one that never comes up holds nobody up for ever"
