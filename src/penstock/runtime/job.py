"""A job while the engine is open: its state, the query that runs for it, and how far it has come.

Everything that changes the state goes through here, and everything that waits for a job waits on its condition. The
query itself is one `Run`; a job has a new one each time it is started.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition, RLock
from typing import TYPE_CHECKING, Final

from penstock.clock import now_us
from penstock.connectors.nudges import Nudges
from penstock.errors import InternalError, JobFailed, PenstockError, RuntimeFailure
from penstock.runtime.backoff import transient
from penstock.runtime.failures import as_failure
from penstock.runtime.run import Run
from penstock.runtime.states import JobState, check_transition
from penstock.spark.offset_log import committed, committed_batches

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.runtime.batches import BatchDone
    from penstock.runtime.event_time import EventTimeTracker
    from penstock.runtime.job_spec import JobSpec
    from penstock.stores.views import ViewStore

START_SECONDS: Final = 180.0  # a job that does not run by then is given up by whoever waits for it
_NOTE_SECONDS: Final = 10.0  # it takes milliseconds; a query that ends in between never notes it


class Job:
    """One job. Any thread may use it."""

    def __init__(
        self,
        spec: JobSpec,
        store: ViewStore,
        clock: Clock,
        make_run: Callable[[Job, int], Run],
        checkpoint: Path,
        *,
        on_change: Callable[[Job, JobState, JobState, str], None] | None = None,
    ) -> None:
        self.spec = spec
        self.checkpoint = checkpoint
        self.state = JobState.CREATED
        self.error: PenstockError | None = None
        self.restarts = 0
        self.run_number = 0
        self.started_at_us: int | None = None
        self.last: BatchDone | None = None
        self.input_rows = 0
        self.control = RLock()  # one start, stop or drain at a time
        self._store = store
        self._clock = clock
        self._make_run = make_run
        self._on_change = on_change
        self._changed = Condition()
        self._run: Run | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def tracker(self) -> EventTimeTracker | None:
        """The event time of the job; None while it has never been started here."""
        return self._run.tracker if self._run is not None else None

    @property
    def run(self) -> Run | None:
        return self._run

    # states

    def move(self, after: JobState, reason: str, error: PenstockError | None = None) -> None:
        """Change the state; refuses what makes no sense."""
        with self._changed:
            before = self.state
            if before is after:
                return
            check_transition(self.name, before, after, self.error)
            self.state = after
            if error is not None or before is not JobState.RESTARTING or after is not JobState.STARTING:
                self.error = error  # of one that is tried again, what the last try ended with is told until it runs
            self._changed.notify_all()
        if self._on_change is not None:
            self._on_change(self, before, after, reason)

    def start(self, reason: str = "started", *, tried_again: bool = False) -> None:
        """Start the query; returns when Spark has it, not when its first batch is done.

        `tried_again`: a start that fails for a reason that may pass is tried again, so the job has not failed.
        """
        with self.control:
            # A number that no batch of a run before has, written down before the nudges of that run are forgotten.
            self.run_number += 1 + Nudges(self.checkpoint).count()
            self.move(JobState.STARTING, reason)
            self.started_at_us = self._clock.now_us()
            try:
                run = self._make_run(self, self.run_number)
                with self._changed:
                    self._run = run
                    self.last = None
                run.start()
            except Exception as error:
                failure = as_failure(f"job {self.name}", error)
                passes = tried_again and transient(failure)
                self.move(JobState.RESTARTING if passes else JobState.FAILED, failure.message, failure)
                if failure is error:
                    raise
                raise failure from error

    def batch_done(self, done: BatchDone) -> None:
        """A batch is in the ledger; called from its callback."""
        if self.state is JobState.STARTING:
            self.move(JobState.RUNNING, "the first batch is done")
        with self._changed:  # whoever waits for the batch finds the job running
            self.last = done
            self.input_rows += done.input_rows
            self._changed.notify_all()

    def notify(self) -> None:
        """Wake whoever waits: something about the job is different."""
        with self._changed:
            self._changed.notify_all()

    def stop(self, after: JobState, reason: str) -> None:
        """Stop the query at a batch boundary."""
        with self.control:
            if self.state is not after:
                check_transition(self.name, self.state, after, self.error)
            self._end_run()
            self.move(after, reason)

    def _end_run(self) -> None:
        if self._run is not None:
            self._run.stop()

    def due_us(self) -> int | None:
        """When the rows of its view are to come in or go out next though no input comes; None: never."""
        return None if self.spec.view is None else self._store.due(self.spec.view)

    def unwritten(self) -> bool:
        """Whether views below have changed what its sink has not been told yet."""
        view = self.spec.view
        return self.spec.follows_views and view is not None and self._store.last_seq(view) > self._store.handed(view)

    def nudge(self) -> None:
        """Ask for one more batch, with or without rows."""
        with self.control:
            if self._run is not None:
                self._run.nudge()

    # waiting

    def wait(
        self,
        until: Callable[[], bool],
        timeout: float,
        what: str,
        *,
        every: float = 1.0,
        whole: float | None = None,
    ) -> None:
        """Wait until something holds; JobFailed where the job fails first, TimeoutError where time runs out.

        What the job itself does not tell of is looked at `every` so many seconds. `whole`: the time that was given,
        where `timeout` is what is left of it.
        """
        end = time.monotonic() + timeout
        with self._changed:
            while not until():
                if self.state is JobState.FAILED:
                    raise self.failure()
                if self.state in (JobState.PAUSED, JobState.STOPPED):
                    raise RuntimeFailure(
                        "JOB_STATE", f"job {self.name} is {self.state}", hint=f"RESUME JOB {self.name} starts it again"
                    )
                left = end - time.monotonic()
                if left <= 0:
                    last = "" if self.error is None else f", and ended with: {self.error}"
                    given = timeout if whole is None else whole
                    raise TimeoutError(f"job {self.name}: {what} took longer than {given:g} seconds{last}")
                self._changed.wait(min(left, every))

    def wait_first_batch(self, timeout: float) -> None:
        """Wait until the job runs."""
        self.wait(lambda: self.last is not None, timeout, "the first batch")

    def wait_running(self, timeout: float) -> None:
        """Wait until the job that was just started runs; SINK_UNAVAILABLE where what it writes to takes nothing, which
        may last longer than anybody waits."""
        self.wait(lambda: self.last is not None or self._sink_error() is not None, timeout, "the first batch")
        error = self._sink_error()
        if self.last is None and error is not None:
            raise error

    def _sink_error(self) -> PenstockError | None:
        return self.error if self.error is not None and self.error.condition == "SINK_UNAVAILABLE" else None

    def wait_looked(self, timeout: float, whole: float | None = None) -> None:
        """Wait until the end of the input as of now is known."""
        since_us = now_us()
        self.wait(
            lambda: self._run is not None and self._run.looked(since_us),
            timeout,
            "a look at its input",
            every=0.02,
            whole=whole,
        )

    def wait_positions(self, timeout: float) -> dict[str, dict[int, int]]:
        """Where the input ends now; waits for a source that does not answer and may do so later."""
        end = time.monotonic() + timeout
        while True:
            if self.state is JobState.FAILED:
                raise self.failure()
            try:
                return self.current_positions()
            except PenstockError as error:
                if not transient(error) or time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def wait_reached(
        self, positions: Mapping[str, Mapping[int, int]], timeout: float, whole: float | None = None
    ) -> None:
        """Wait until input is committed up to these positions, and the windows closed that it ends."""
        goals: list[int | None] = []

        def done() -> bool:
            if not self.reached(positions) or self._run is None:
                return False
            if self.settled():
                return True
            # Where more rows keep coming, event time moves on with every batch, and none ever runs under all of it.
            # What these rows end is closed under the watermark of the moment in which they were found to be committed.
            # A bounded input comes to its end, and that moves event time once more: it is waited for.
            if not goals:
                goals.append(self._run.tracker.watermark_us)
            return not self.spec.bounded and self._read_beyond(positions) and self._closed_up_to(goals[0])

        self.wait(done, timeout, "reading its input", whole=whole)

    def wait_closed(self, timeout: float) -> None:
        """Wait until a batch ran under the watermark that event time has reached now."""
        goal = None if self._run is None else self._run.tracker.watermark_us
        self.wait(lambda: self._closed_up_to(goal), timeout, "a batch under the new watermark")

    def reached(self, positions: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether all input before these positions is in the ledger."""
        if self.last is None:
            return False
        for scan, wanted in positions.items():
            have = self.last.positions.get(scan, {})
            if any(have.get(partition, 0) < offset for partition, offset in wanted.items()):
                return False
        return True

    def _read_beyond(self, positions: Mapping[str, Mapping[int, int]]) -> bool:
        have = {} if self.last is None else self.last.positions
        return any(
            offset > positions.get(scan, {}).get(partition, 0)
            for scan, partitions in have.items()
            for partition, offset in partitions.items()
        )

    def settled(self) -> bool:
        """Whether the last batch ran under the watermark that event time has reached."""
        return self._run is not None and self._closed_up_to(self._run.tracker.watermark_us)

    def _closed_up_to(self, watermark_us: int | None) -> bool:
        if self.last is None:
            return False
        if not self.spec.plan.follows_time or watermark_us is None:
            return True
        return self.last.watermark_ms >= watermark_us // 1000

    def noted(self) -> bool:
        """Whether Spark, too, has written down that the last batch is done."""
        return self.last is not None and self.last.batch_id in committed_batches(self.checkpoint)

    def let_spark_note(self) -> None:
        """Wait a moment until Spark has written down the last batch: what it keeps is read as of that."""
        last, end = self.last, time.monotonic() + _NOTE_SECONDS
        while last is not None and self.state.active and time.monotonic() < end:
            noted = committed(self.checkpoint)
            if noted is not None and noted >= last.batch_id:
                return
            time.sleep(0.005)

    def failure(self) -> JobFailed:
        """The error of a failed job, for whoever waits for it."""
        error = self.error
        if error is None:
            raise InternalError(f"job {self.name} has failed without an error")
        return JobFailed(
            self.name,
            f"job {self.name} has failed: [{error.condition}] {error.message.removeprefix(f'job {self.name}: ')}",
            hint=error.hint,
            detail=error.detail,
        )

    # event time

    def move_time(self, move: Callable[[EventTimeTracker], object], *, wait: bool = True) -> bool:
        """Move event time between batches; durable when this returns. Whether the watermark moved.

        Without `wait` nothing happens while a batch runs: it may wait for a reader, and that for ever.
        """
        run = self._run
        if run is None:
            raise RuntimeFailure("JOB_STATE", f"job {self.name} does not run", hint=f"RESUME JOB {self.name}")
        moved = run.move_time(move, wait=wait)
        self.notify()
        return moved

    def current_positions(self) -> dict[str, dict[int, int]]:
        """Where the input of the job ends now."""
        if self._run is None:
            return {}
        return self._run.latest()

    def begin_no_batch(self) -> None:
        """The engine is about to close: a batch that is under way is the last one."""
        if self._run is not None:
            self._run.begin_no_batch()

    def close(self) -> None:
        """The engine closes: the query ends, the state that is kept stays what it is."""
        with self.control, contextlib.suppress(Exception):
            self._end_run()
