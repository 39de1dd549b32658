"""What users ask of the jobs of an engine: to pause, to go on, to be done with the input there is, to close windows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.connectors.metadata_columns import topic_name
from penstock.connectors.registry import sink_of
from penstock.connectors.sink import LaterSeenSink
from penstock.errors import PenstockError, RuntimeFailure
from penstock.runtime.job import START_SECONDS
from penstock.runtime.job_spec import WATERMARK_US
from penstock.runtime.runs import advance_kept
from penstock.runtime.states import JobState

if TYPE_CHECKING:
    from penstock.clock import Clock
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job

# It takes milliseconds; what takes longer is a transaction that somebody else has left open.
_SEEN_SECONDS: Final = 10.0


def pause(engine: Engine, name: str) -> None:
    """End a job at a batch boundary; it stays paused until it is resumed, also when the database is opened again."""
    engine.find_job(name).stop(JobState.PAUSED, "PAUSE JOB")


def stop(engine: Engine, name: str) -> None:
    """End a job at a batch boundary, with its windows open."""
    engine.find_job(name).stop(JobState.STOPPED, "STOP JOB")


def resume(engine: Engine, name: str) -> None:
    """Start a job that is paused, stopped or failed, and wait until it runs."""
    job = engine.find_job(name)
    job.start("RESUME JOB")
    job.wait_running(START_SECONDS)


def restart(engine: Engine, name: str) -> None:
    """Stop a job at a batch boundary and start it again."""
    job = engine.find_job(name)
    if job.state.active:
        job.stop(JobState.STOPPED, "RESTART JOB")
    job.start("RESTART JOB")
    job.wait_running(START_SECONDS)


def settle(engine: Engine, timeout: float) -> None:
    """Wait until every running job has committed the input there is now, and closed the windows it ends.

    What one job writes and another one reads counts as input of the other.
    """
    engine.check_open()
    deadline = engine.clock.monotonic() + timeout
    for job in writers_first(tuple(engine.jobs.values())):
        if job.state in (JobState.PAUSED, JobState.STOPPED):
            continue
        _settle(job, engine.clock, max(0.0, deadline - engine.clock.monotonic()), timeout)
        _let_be_seen(engine, job, deadline)


def _let_be_seen(engine: Engine, job: Job, deadline: float) -> None:
    """What a job has written counts as input of those that read it, so they must see it by now."""
    for definition in job.spec.sinks:
        sink = sink_of(definition.options.connector)
        if isinstance(sink, LaterSeenSink):
            left = max(0.0, deadline - engine.clock.monotonic())
            with suppress(PenstockError):  # the job itself tells of what it cannot reach
                sink.wait_until_seen(definition, engine.home.path, min(left, _SEEN_SECONDS))


def writers_first(jobs: Sequence[Job]) -> list[Job]:
    """Jobs in an order in which each comes after those whose rows it reads, as far as they read from none in turn."""
    found: dict[str, Job] = {}
    entered: set[str] = set()

    def visit(job: Job) -> None:
        if job.name in entered:
            return
        entered.add(job.name)
        read = {*job.spec.plan.views, *map(topic_name, job.spec.sources)}
        for other in jobs:
            if not read.isdisjoint({other.spec.view, *map(topic_name, other.spec.sinks)}):
                visit(other)
        found[job.name] = job

    for job in jobs:
        visit(job)
    return list(found.values())


def drain(engine: Engine, name: str, timeout: float) -> None:
    """Read what is there, close every open window, commit and stop."""
    job, deadline = engine.find_job(name), engine.clock.monotonic() + timeout
    drain_job(job, engine.clock, timeout)
    _let_be_seen(engine, job, deadline)


def settle_job(job: Job, clock: Clock, timeout: float) -> None:
    """Wait until one job has committed the input there is now."""
    _settle(job, clock, timeout, timeout)


def drain_job(job: Job, clock: Clock, timeout: float) -> None:
    """Drain one job."""
    deadline = clock.monotonic() + timeout
    with job.control:
        _settle(job, clock, timeout, timeout)
        if job.state is JobState.STOPPED:
            return
        if job.spec.plan.of_views:
            job.stop(JobState.STOPPED, "drained")
            return
        job.move(JobState.DRAINING, "drain")
        job.move_time(lambda tracker: tracker.drain(job.spec.plan.spread_us, whole_us=WATERMARK_US))
        try:
            left = max(0.001, deadline - clock.monotonic())
            # A query that is stopped before Spark has noted the last batch shows the state before it.
            job.wait(lambda: job.settled() and job.noted(), left, "closing its windows", every=0.02, whole=timeout)
        except TimeoutError:
            job.stop(JobState.STOPPED, "drain took too long")
            raise
        job.stop(JobState.STOPPED, "drained")


def advance_watermark(engine: Engine, stream: str, timestamp_us: int, timeout: float = 60.0) -> None:
    """Say that nothing older comes in a stream, to every job that reads it; returns after a batch ran under it."""
    engine.check_open()
    for job in tuple(engine.jobs.values()):
        ids = [scan.id for scan in job.spec.plan.scans if scan.relation == stream and scan.event_time is not None]
        if not ids:
            continue
        with job.control:
            if job.state in (JobState.PAUSED, JobState.STOPPED, JobState.FAILED):
                advance_kept(job.spec, engine.home.views, engine.clock, ids, timestamp_us)
                continue
        job.wait_first_batch(timeout)
        job.move_time(lambda tracker, ids=ids: tracker.advance(ids, timestamp_us))  # type: ignore[misc]
        job.wait_closed(timeout)


def _settle(job: Job, clock: Clock, timeout: float, whole: float) -> None:
    """Settle one job within `timeout`, what is left of the `whole` time that was given."""
    deadline = clock.monotonic() + timeout
    try:
        job.wait(lambda: job.run is not None and job.last is not None, timeout, "starting", whole=whole)
        job.wait_looked(max(0.001, deadline - clock.monotonic()), whole)
        positions = job.wait_positions(deadline - clock.monotonic())
        if job.unwritten():
            job.nudge()
        job.wait_reached(positions, max(0.001, deadline - clock.monotonic()), whole)
    except RuntimeFailure as error:
        if error.condition != "JOB_STATE" or job.state is not JobState.STOPPED:
            raise
        # A bounded input has ended meanwhile: everything is committed.
