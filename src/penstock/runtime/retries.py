"""RETRY DEAD LETTERS: records that could not be read are read again, after something was mended.

The job is asked for one more batch, and takes the records into it: what follows from them, and that they are no dead
letters any more, is part of the batch's own transaction. What still cannot be read stays a dead letter.
A run reads by the schema files that it began with. Where one of them is another now, the job starts again first: what
is read again and what comes later are both read by the new one.
"""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, Final

from penstock.connectors.schema_registry import look_again
from penstock.errors import NotYetError, PenstockError, RuntimeFailure
from penstock.runtime.queries import answer
from penstock.runtime.realtime import is_realtime
from penstock.runtime.states import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job
    from penstock.runtime.job_spec import JobSpec

_SECONDS: Final = 300.0
_OTHER_SCHEMA: Final = "RETRY DEAD LETTERS with another schema"

Place = tuple[str, int, int]  # stream, partition, offset


class Retry:
    """Dead letters that the next batch takes along; `done` is set when that batch is in the ledger."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)
        self.done = Event()


def retry_dead_letters(engine: Engine, name: str | None, chosen: LogicalPlan | None = None) -> None:
    """Read the dead letters of a job, or of all jobs, again; returns when they are taken.

    `chosen` finds the job, stream, partition and offset of those that are asked for; all of them without it. Where no
    job is named, those that cannot do it hold up no other one: a notice says which were left out, and why.
    """
    look_again()
    wanted = None if chosen is None else chosen_places(engine, chosen)
    for job in tuple(engine.jobs.values()):
        if name is not None and job.name.casefold() != name.casefold():
            continue
        places = engine.home.views.dead_places(job.name)
        if wanted is not None:
            places = [place for place in places if (job.name, *place) in wanted]
        if not places:
            continue
        try:
            _retry(engine, job, places)
        except (PenstockError, TimeoutError) as error:
            if name is not None:
                raise
            told = str(error) if isinstance(error, TimeoutError) else error.message
            engine.notices.append(f"dead letters of job {job.name} are left as they are: {told}")


def chosen_places(engine: Engine, chosen: LogicalPlan) -> set[tuple[str, str, int, int]]:
    """Job, stream, partition and offset of what a query over the dead letters finds."""
    found = answer(engine, chosen).table
    return set(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _refuse(spec: JobSpec) -> None:
    """Rows come to a job beside its stream where batches are ours, Spark keeps nothing and no watermark passes them."""
    plan = spec.plan
    if is_realtime(spec):
        raise NotYetError(
            "QUERY_NOT_YET",
            f"the dead letters of job {spec.name} cannot be read again: it runs in real-time mode, where Spark writes "
            "rows by itself and takes none but those of its stream",
            hint="create the job again without mode = 'realtime' to read everything from the start",
        )
    if len(plan.scans) != 1 or plan.kept or plan.steps or plan.uses_event_time:
        raise NotYetError(
            "QUERY_NOT_YET",
            f"the dead letters of job {spec.name} cannot be read again: it has windows, joins or keys that Spark keeps",
            hint="create the view again to read everything from the start",
        )


def _retry(engine: Engine, job: Job, places: Sequence[Place]) -> None:
    _refuse(job.spec)
    if job.state is not JobState.RUNNING or job.run is None:
        raise RuntimeFailure(
            "JOB_STATE",
            f"job {job.name} is {job.state} and reads nothing",
            hint="ask again once it runs" if job.state.active else f"RESUME JOB {job.name} first",
        )
    if job.run.schemas_differ():
        job.stop(JobState.STOPPED, _OTHER_SCHEMA)
        job.start(_OTHER_SCHEMA)
    end = time.monotonic() + _SECONDS
    asked = Retry(places)
    while not asked.done.is_set():
        job.wait_first_batch(max(0.001, end - time.monotonic()))
        # A run that broke may have taken some of them before it did.
        left = set(engine.home.views.dead_places(job.name))
        asked = Retry([place for place in asked.places if place in left])
        run = job.run
        if not asked.places or run is None:
            return
        run.callback.retry = asked
        job.nudge()
        taken = asked.done
        job.wait(
            lambda run=run, taken=taken: taken.is_set() or job.run is not run,  # type: ignore[misc]
            max(0.001, end - time.monotonic()),
            "its dead letters",
            every=0.05,
        )
