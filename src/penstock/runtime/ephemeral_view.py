"""A view that nobody has named and nobody keeps: it is there while somebody reads its changes.

It stands in the store of the other views, because what is built on those is refreshed there, in the batches that change
them. Its job is one like any other, with a checkpoint in a directory of its own. A killed process leaves it behind; the
next opening finds facts of a job that nothing defines, and a view that nothing defines, and removes both.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, RuntimeFailure
from penstock.runtime.job import Job
from penstock.runtime.job_runs import start_positions
from penstock.runtime.job_spec import changes_view
from penstock.runtime.job_statements import reader_options, reader_spec
from penstock.runtime.runs import make_run
from penstock.runtime.states import JobState
from penstock.runtime.targets import ViewTarget
from penstock.runtime.view_run import ViewRun

if TYPE_CHECKING:
    from penstock.plan.job_plan import JobPlan
    from penstock.runtime.engine import Engine
    from penstock.runtime.home import Home
    from penstock.runtime.run import Run


class EphemeralView:
    """A view with its job, from `start` to `close`."""

    def __init__(self, engine: Engine, plan: JobPlan) -> None:
        self._engine = engine
        self._closed = False
        self.name = f"query_{uuid.uuid4().hex[:8]}"
        self.view = changes_view(self.name)
        self._directory = engine.home.ephemeral / self.name
        options = reader_options(engine, self.name)
        # Its changes are let go of when they are read, and not before: however long that takes.
        kept = {key: value for key, value in options.values.items() if key != "changelog_retention"}
        spec = reader_spec(engine, self.name, plan, self.view, replace(options, values=kept))
        self.job = Job(spec, engine.home.views, engine.clock, self._make_run, self._directory / "checkpoint")

    def start(self, timeout: float) -> None:
        """Make the view, and wait for the first batch that comes into it."""
        self._engine.home.views.save_job(self.name, state="starting")  # so that what a killed process leaves is found
        self._engine.watch(self.job)
        try:
            self.job.start()
            self.job.wait_first_batch(timeout)
        except BaseException:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether nobody reads any more: the view is being closed, or the whole database."""
        return self._closed or self._engine.closed

    def close(self) -> None:
        """End the job, and remove the view and its files."""
        self._closed = True
        self._engine.unwatch(self.job)
        with suppress(PenstockError):
            if self.job.state.active:
                self.job.stop(JobState.STOPPED, "closed")
        self.job.close()
        with suppress(PenstockError):  # of a closed database the next opening does it
            self._engine.home.views.drop_view(self.view)
            self._engine.home.views.forget_job(self.name)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make_run(self, job: Job, run_number: int) -> Run:
        engine, home, spec = self._engine, self._engine.home, job.spec
        if spec.plan.of_views:
            versions = engine.dimensions.newest_of_views
            return ViewRun(spec, home.views, engine.clock, job.batch_done, lambda: versions(spec.plan))
        return make_run(
            spec,
            spark=home.spark(spec.jar_sets),
            store=home.views,
            checkpoint=job.checkpoint,
            state_path=home.path,
            run_number=run_number,
            first=start_positions(home, spec, job.checkpoint.parent),
            target=lambda types: ViewTarget(self.view, spec.plan, types),
            clock=engine.clock,
            functions=engine.functions,
            dimensions=engine.dimensions.of_job(spec, job.checkpoint),
            on_done=job.batch_done,
            on_end=lambda run: engine.run_ended(job, run),
            roots=home.roots,
        )


def end_readers(home: Home, jobs: Iterable[Job], view: str) -> None:
    """A view goes: the jobs of views that nobody keeps fail where they read it, and what they are built on it first."""
    for job in tuple(jobs):
        if view not in job.spec.plan.views or job.spec.view is None:
            continue
        if job.run is not None:
            job.run.stop()
        if job.state.active:
            gone = RuntimeFailure("JOB_STATE", f'materialized view "{view}", which it reads, was dropped')
            job.move(JobState.FAILED, gone.message, gone)
        home.views.drop_view(job.spec.view)
