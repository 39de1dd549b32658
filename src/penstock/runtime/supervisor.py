"""The thread that looks after jobs: idle partitions, restarts, the end of bounded input, upkeep of the stores."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError
from penstock.runtime.backoff import Backoff, transient
from penstock.runtime.lost_workers import LostWorkers
from penstock.runtime.passing_time import PassingTime
from penstock.runtime.processing_time import close_by_clock
from penstock.runtime.states import JobState
from penstock.runtime.unwritten import UnwrittenChanges

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.runtime.job import Job
    from penstock.runtime.run import Run

_LOG: Final = logging.getLogger(__name__)
_EVERY: Final = 0.1
_UPKEEP_EVERY: Final = 5.0
_FORGET_EVERY: Final = 1.0
_LOOKS_A_TTL: Final = 4
# Spark waits ten seconds for each Python process that it starts, and that cannot be changed. Jobs that all begin at
# once on a busy machine would fail together, and begin together again: so many begin at a time, until they run or have
# been given so long.
_TOGETHER: Final = 4
_TURN_US: Final = 30_000_000


class Supervisor:
    """Watches all jobs of an engine from one thread, and takes in what ends by itself."""

    def __init__(self, jobs: Callable[[], Iterable[Job]], clock: Clock, upkeep: Callable[[], None]) -> None:
        self._jobs = jobs
        self._clock = clock
        self._upkeep = upkeep
        self._closing = threading.Event()
        self._judging = threading.Lock()  # while it is held, the end of a query is being written down
        self._due: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._lost_workers = LostWorkers()
        self._told: set[str] = set()  # jobs that are broken for a reason that was told
        self._quiet: dict[str, tuple[object, float]] = {}  # the last batch of a job that forgets, and since when
        self._passing = PassingTime(clock)
        self._unwritten = UnwrittenChanges()
        self._next_upkeep = clock.monotonic() + _UPKEEP_EVERY
        self._thread = threading.Thread(target=self._loop, name="penstock-supervisor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread; no job is restarted after this."""
        self._closing.set()
        with self._judging:
            pass  # an end that was noticed before is written down; one that is noticed from here on is not
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(30)

    def ended(self, job: Job, run: Run) -> None:
        """The query of a job has ended. Whether by itself, its state tells."""
        error = run.failure
        cause = None if error is None else run.cause
        with self._judging:
            if self._closing.is_set() or error is None or job.run is not run:
                job.notify()
            elif cause is not None and transient(cause) and job.state.active:
                self._restart(job, error)
            elif job.state.active:
                job.move(JobState.FAILED, error.message, error)

    def _restart(self, job: Job, error: PenstockError) -> None:
        lasting = self._lost_workers.lasting(job, error)
        delay = self._delay(job) if lasting is None else None
        if delay is None:
            error = lasting or error
            job.move(JobState.FAILED, error.message, error)
            return
        self._due[job.name] = self._clock.monotonic() + delay
        if error.condition.endswith("_UNAVAILABLE"):
            self._tell(job, error)
        job.restarts += 1
        job.move(JobState.RESTARTING, error.message, error)

    def _tell(self, job: Job, error: PenstockError) -> None:
        """Once for an outage, which lasts until the job runs again: not with each try."""
        if job.name not in self._told:
            self._told.add(job.name)
            _LOG.warning("job %s: %s", job.name, error)

    def _delay(self, job: Job) -> float | None:
        """The job broke now: seconds until it is started again; None where that has been tried often enough."""
        settings = job.spec.session.settings
        backoff = self._backoffs.setdefault(job.name, _backoff(settings, self._clock))
        delay = backoff.next_delay()
        most = settings.get("restart_attempts")
        if not isinstance(most, int) or backoff.failures <= most:
            return delay
        del self._backoffs[job.name]  # whoever starts it now has mended something
        return None

    def start_soon(self, job: Job) -> None:
        """Start a job from the supervisor's own thread."""
        self._due[job.name] = self._clock.monotonic()

    def _loop(self) -> None:
        while not self._closing.wait(_EVERY):
            for job in tuple(self._jobs()):
                try:
                    self._look(job)
                except Exception:  # noqa: BLE001 - one job must not end the care for the others
                    _LOG.exception("looking after job %s", job.name)
            if self._clock.monotonic() >= self._next_upkeep:
                self._next_upkeep = self._clock.monotonic() + _UPKEEP_EVERY
                try:
                    self._upkeep()
                except Exception:  # noqa: BLE001 - it is tried again
                    _LOG.exception("upkeep of the stores")

    def _look(self, job: Job) -> None:
        due = self._due.get(job.name)
        if due is not None:
            if self._clock.monotonic() >= due and not self._crowded():
                del self._due[job.name]
                self._start(job)
            return
        if job.state is not JobState.RUNNING or job.last is None or job.run is None:
            return
        self._told.discard(job.name)
        if job.last.ended:
            job.stop(JobState.STOPPED, "its input has ended")
            return
        self._tick(job)
        self._forget(job)
        self._passing.look(job)
        self._unwritten.look(job)
        close_by_clock(job, self._clock.now_us())

    def _crowded(self) -> bool:
        """Whether enough other jobs are on their way up."""
        since = self._clock.now_us() - _TURN_US
        begun = [job for job in self._jobs() if job.state is JobState.STARTING and (job.started_at_us or 0) > since]
        return len(begun) >= _TOGETHER

    def _start(self, job: Job) -> None:
        if job.state not in (JobState.RESTARTING, JobState.CREATED, JobState.STOPPED, JobState.FAILED):
            return
        try:
            job.start("started again" if job.restarts else "started", tried_again=True)
        except PenstockError as error:
            self._tell(job, error)
            # What kept it from starting may pass as well.
            delay = self._delay(job) if transient(error) else None
            if delay is not None:
                self._due[job.name] = self._clock.monotonic() + delay
            elif job.state is JobState.RESTARTING:  # it has been tried as often as it may
                job.move(JobState.FAILED, error.message, error)

    def _forget(self, job: Job) -> None:
        """State is forgotten by the clock of batches: where no rows come, one without any is asked for."""
        ttl_us = job.spec.plan.ttl_us
        if ttl_us is None:
            return
        now = self._clock.monotonic()
        last, since = self._quiet.setdefault(job.name, (job.last, now))
        if last is not job.last:
            self._quiet[job.name] = (job.last, now)
        elif now - since >= max(_FORGET_EVERY, ttl_us / 1e6 / _LOOKS_A_TTL):
            self._quiet[job.name] = (job.last, now)
            job.nudge()

    def _tick(self, job: Job) -> None:
        """Partitions that have been silent for long no longer hold the watermark back."""
        tracker, now = job.tracker, self._clock.now_us()
        if tracker is None or (due := tracker.next_idle_us) is None or due > now:
            return
        try:
            if not job.reached(job.current_positions()):
                return  # rows are waiting: what looks silent may not be
        except PenstockError as error:
            if transient(error):
                return  # nobody can tell; the job itself says so if it lasts
            raise
        job.move_time(lambda found: found.tick(now), wait=False)


def _backoff(settings: Mapping[str, object], clock: Clock) -> Backoff:
    """How long a job waits: as long each time where `restart_delay` is set, else longer and longer."""
    delay = settings.get("restart_delay")
    if not isinstance(delay, timedelta):
        return Backoff(clock)
    seconds = delay.total_seconds()
    return Backoff(clock, first_s=seconds, factor=1.0, longest_s=seconds, spread=0.0)
