"""The engine: one open state directory, its catalog, and the jobs that run in it.

It does what analysed statements ask for and nothing else: texts are parsed and answered by the interfaces above, plans
are made below. One change of the catalog at a time; reading needs no turn.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final

from penstock.catalog.model import (
    DimensionDefinition,
    MaterializedViewDefinition,
    SinkDefinition,
    SourceDefinition,
)
from penstock.clock import SystemClock
from penstock.connectors.registry import source_of
from penstock.connectors.secret_values import forget_secrets, use_secrets
from penstock.errors import NotYetError, PenstockError, ResolutionError, RuntimeFailure
from penstock.runtime.asked import spark_to_ask
from penstock.runtime.catalog_writes import prepare, write_catalog
from penstock.runtime.dimension_refresh import Refresher
from penstock.runtime.dimensions import Dimensions
from penstock.runtime.ephemeral_view import end_readers
from penstock.runtime.failures import kept_failure, kept_text, not_made
from penstock.runtime.forgetting import forget_job, sweep
from penstock.runtime.functions import MISSING, Functions
from penstock.runtime.home import Home
from penstock.runtime.job import START_SECONDS, Job
from penstock.runtime.job_runs import run_of_job, start_positions
from penstock.runtime.job_spec import JobSpec, changes_view
from penstock.runtime.open_state import join_buffers, open_windows
from penstock.runtime.physical import physical_plan
from penstock.runtime.retention import retention_of
from penstock.runtime.runs import check_fingerprint
from penstock.runtime.secret_lookup import secret_of
from penstock.runtime.set_jobs import leave_targets
from penstock.runtime.sinks import reach_sink
from penstock.runtime.states import JobState
from penstock.runtime.supervisor import Supervisor
from penstock.runtime.system_rows import system_table
from penstock.spark.session import stop_session
from penstock.sql.statements import Name
from penstock.stores.load_catalog import load_session, typed_settings
from penstock.stores.views import JobTransition

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import Definition
    from penstock.clock import Clock
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session
    from penstock.runtime.run import Run

_LOG: Final = logging.getLogger(__name__)
# States in which a view that is built on others is not refreshed.
_STANDING: Final = frozenset({JobState.PAUSED, JobState.STOPPED, JobState.FAILED})
# Errors of the data, not of the query: the view is there, its job has failed.
_DATA_ERRORS: Final = frozenset({"BAD_RECORD", "LATE_ROW", "SOURCE_DATA_LOST"})


class Engine:
    """An open database. Making one opens the state directory and starts the jobs that ran when it was closed."""

    def __init__(self, state_path: Path, settings: Mapping[str, object], clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.home = Home(state_path, settings)
        self.turn = RLock()  # one statement that changes something at a time
        self.jobs: dict[str, Job] = {}
        self.functions = Functions(lambda: self.session.catalog, self.home.roots)
        self.to_ask = spark_to_ask(self.home, self.functions)
        self._watched: list[Job] = []  # jobs of queries that nobody keeps
        self.catalog_tables: dict[str, Callable[[Session], pa.Table]] = {}  # system tables that tell of the catalog
        self.closed = False
        self.dimensions = Dimensions(self)
        self._refresher = Refresher(self.dimensions, self.clock)
        self._supervisor = Supervisor(self.all_jobs, self.clock, self._upkeep)
        try:
            loaded = load_session(self.home.catalog)
            self.session: Session = replace(loaded, settings={**loaded.settings, **settings})
            self._object_settings = {item.key: typed_settings(item.settings) for item in self.home.catalog.objects()}
            self.notices: list[str] = list(self.home.catalog.concerns)
            use_secrets(self.home.path, lambda name: secret_of(self, name), self.home.roots)
            self.home.views.on_failed = self._view_failed
            self.home.views.ask_with(self.to_ask)
            self.dimensions.open()
            self._open_relations()
            self._open_jobs()
        except BaseException:
            self.home.close()
            raise
        _open_engines.add(self)
        self._supervisor.start()
        self._refresher.start()

    def close(self) -> None:
        """End every job at a batch boundary; those that run now are started again at the next opening."""
        with self.turn:
            if self.closed:
                return
            self.closed = True
            self._refresher.close()
            self._supervisor.close()
            for job in self.all_jobs():
                job.begin_no_batch()  # so that batches under way, which are waited for, end side by side
            for job in self.all_jobs():
                job.close()
            self.home.close()
            forget_secrets(self.home.path)
            _open_engines.discard(self)

    def check_open(self) -> None:
        """Refuses work on a closed database."""
        if self.closed:
            raise RuntimeFailure(
                "DATABASE_CLOSED", "the database is closed", hint="open it again with penstock.connect"
            )

    def all_jobs(self) -> list[Job]:
        """The jobs of the catalog and those of queries that nobody keeps."""
        return [*self.jobs.values(), *self._watched]

    def watch(self, job: Job) -> None:
        """Look after the job of a query that nobody keeps."""
        self._watched.append(job)

    def unwatch(self, job: Job) -> None:
        with suppress(ValueError):
            self._watched.remove(job)

    def run_ended(self, job: Job, run: Run) -> None:
        """The query of a job has ended."""
        self._supervisor.ended(job, run)

    def system_table(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """A system table as it is now; what is costly and not among `columns` is left out of it."""
        return system_table(self, name, columns)

    def view_definition(self, name: str) -> MaterializedViewDefinition:
        """The materialized view of this name, in any case of letters."""
        found = self.session.catalog.get(Name(name))
        if not isinstance(found, MaterializedViewDefinition):
            raise ResolutionError(
                "WRONG_OBJECT_KIND",
                f'"{found.name}" is a {found.kind}, and only a materialized view has changes to subscribe to',
                hint=f"CREATE MATERIALIZED VIEW … AS SELECT * FROM {found.name}",
            )
        return found

    def check_job(self, name: str) -> None:
        """Raises the error of the job of a view, where it has failed."""
        job = self._job_of_view(name)
        if job is not None and job.state is JobState.FAILED:
            raise job.failure()

    def _job_of_view(self, name: str) -> Job | None:
        return next((each for each in self.all_jobs() if each.spec.view == name), None)

    def open_windows(self, job: Job) -> pa.Table | None:
        """The live groups of the windows nearest to a job's input, from the view store or from Spark's state; None
        where neither has any."""
        if job.spec.plan.of_views:
            return None
        if job.spec.plan.closed_by_store and job.spec.view is not None:
            return self.home.views.open_windows(job.spec.view)
        if not self.home.spark_started:
            return None
        job.let_spark_note()
        return open_windows(self.home.spark(), job.checkpoint, job.spec.plan.kept)

    def join_buffers(self, job: Job) -> pa.Table | None:
        """The rows that the joins of a job keep, from Spark's state; None where it has none."""
        if not self.home.spark_started or job.spec.plan.of_views:
            return None
        job.let_spark_note()
        return join_buffers(self.home.spark(), job.checkpoint, job.spec.plan.kept)

    def physical_plan(self, plan: LogicalPlan) -> str:
        """Spark's plan of a query, as far as it is known before it runs."""
        return physical_plan(self, plan)

    # opening

    def _open_relations(self) -> None:
        """What one relation lacks must not keep the others from being used, nor itself from being dropped."""
        for definition in self.session.catalog.ordered():
            try:
                prepare(self.home, definition)
            except PenstockError as error:
                self.notices.append(f'"{definition.name}" cannot be used: [{error.condition}] {error.message}')
        for name in self.home.topics.names():
            try:
                self.notices += self.home.topics.open(name).repaired
            except PenstockError as error:
                self.notices.append(f"topic {name} cannot be used: [{error.condition}] {error.message}")

    def _open_jobs(self) -> None:
        """Make the jobs of the catalog and of stored INSERTs; those that ran before run again."""
        from penstock.runtime.job_statements import insert_spec, sink_spec, view_spec

        kept: set[str] = set()
        for definition in self.session.catalog.ordered():
            if isinstance(definition, MaterializedViewDefinition):
                kept.add(definition.name.text)
                self._open_job(view_spec(self, definition))
            elif isinstance(definition, SinkDefinition) and definition.query is not None:
                kept.add(definition.name.text)
                self._open_job(sink_spec(self, definition))
        for name in self.home.views.job_names():
            if name in kept:
                continue
            statement = self.home.views.job_facts(name).get("statement")
            if statement is None:
                self._forget_job(name, None)  # dropped, and killed before all of it was gone
            else:
                self._open_job(replace(insert_spec(self, str(statement)), name=name))
        sweep(self.home, self.jobs, {*kept, *map(changes_view, self.home.views.job_names())})

    def _open_job(self, spec: JobSpec) -> None:
        facts = self.home.views.job_facts(spec.name)
        try:
            job = self._new_job(spec)
        except PenstockError as error:
            # The others run; this one says what is wrong with it, and can be dropped.
            job = self._add_job(spec)
            self.session = self.session.with_job(spec.name)
            job.move(JobState.FAILED, error.message, error)
            self.notices.append(f"job {spec.name} cannot run: [{error.condition}] {error.message}")
            return
        self.session = self.session.with_job(spec.name)
        state = facts.get("state", "starting")
        job.restarts = int(facts.get("restarts", 0))
        job.run_number = int(facts.get("run", 0))
        waits = state == "failed" and MISSING in str(facts.get("error"))  # the function may be there now
        if state in ("paused", "stopped", "failed") and not waits:
            job.state = JobState(state)
            if state == "failed":
                job.error = kept_failure(facts.get("error"), facts.get("hint"))
        else:
            if state in ("running", "draining", "restarting"):
                # Whatever has ended the process: the history shows that it did.
                step = JobTransition(spec.name, self.clock.now_us(), str(state), job.state.value, "opened again")
                self.home.views.add_transition(step)
            self._supervisor.start_soon(job)

    def session_of(self, definition: Definition) -> Session:
        """The session with the settings that were in force when an object was created."""
        settings = self._object_settings.get(definition.object_key)
        return self.session if settings is None else replace(self.session, settings=settings)

    # the catalog

    def put_catalog(self, session: Session) -> None:
        """Make a session that a statement led to the one in force, on disk first."""
        self.notices += write_catalog(self.home, self.session, session)
        for item in session.catalog:
            if item.object_key not in self.session.catalog:
                _LOG.info("registered %s %s", item.kind, item.name)
        self.session = session

    def drop(self, session: Session) -> None:
        """Take out of the catalog what a DROP took out of its session, with jobs, rows and files."""
        gone = [item for item in self.session.catalog.ordered() if item.object_key not in session.catalog]
        leave_targets(self, {item.name.text for item in gone if item.object_key.space == "relation"})
        for item in reversed(gone):
            if isinstance(item, SourceDefinition | DimensionDefinition | SinkDefinition | MaterializedViewDefinition):
                # The jobs of INSERTs are not in the catalog: they go with what they read, and with what they write to.
                for job in [each for each in self.jobs.values() if each.spec.kind == "insert"]:
                    if job.spec.uses(item.name.text) or job.spec.writes(item.name.text):
                        self.drop_job(job.name)
            if item.name.text in self.jobs:
                self._stop_quietly(self.jobs[item.name.text])
        self.put_catalog(session)
        for item in reversed(gone):
            name = item.name.text
            if isinstance(item, MaterializedViewDefinition | SinkDefinition):
                self._forget_job(name, name if isinstance(item, MaterializedViewDefinition) else changes_view(name))
            if isinstance(item, SourceDefinition | DimensionDefinition):
                self.dimensions.forget(name)
            if isinstance(item, SourceDefinition) and not self._shared_topic(item):
                with suppress(NotYetError):
                    source_of(item.options.connector).forget(item, self.home.path, self.home.topics)

    def _shared_topic(self, gone: SourceDefinition) -> bool:
        """Whether another relation still stands on the same topic."""
        topic = str(gone.options.values.get("topic") or gone.name.text)
        return any(
            isinstance(other, SourceDefinition | SinkDefinition)
            and other.options.connector == gone.options.connector
            and str(other.options.values.get("topic") or other.name.text) == topic
            for other in self.session.catalog
        )

    # jobs

    def start_job(self, spec: JobSpec, *, statement: str | None = None) -> Job:
        """Start a new job and wait until it runs; one that cannot is taken back, with its error."""
        reach_sink(spec, self.home)
        job = self._new_job(spec, statement=statement)
        self.session = self.session.with_job(spec.name)
        _LOG.info("job %s: a pipeline over %s", spec.name, ", ".join(spec.inputs))
        try:
            job.start()
            job.wait_running(START_SECONDS)
            _LOG.info("job %s runs", spec.name)
        except (PenstockError, TimeoutError):
            if job.error is not None and job.error.condition in _DATA_ERRORS:
                return job
            if job.state is JobState.STOPPED:  # a bounded input that ended at once
                return job
            error = job.error
            self._stop_quietly(job)
            self._forget_job(spec.name, spec.view)
            if error is not None:
                raise not_made(error) from None
            raise
        return job

    def _new_job(self, spec: JobSpec, *, statement: str | None = None) -> Job:
        views = self.home.views
        facts = views.job_facts(spec.name)
        check_fingerprint(spec, facts.get("fingerprint"))
        if not facts:
            first = start_positions(self.home, spec, self.home.checkpoint(spec.name).parent)
            views.save_job(
                spec.name,
                fingerprint=spec.plan.state,
                first={
                    scan: {str(partition): offset for partition, offset in positions.items()}
                    for scan, positions in first.items()
                },
                statement=statement,
                state="starting",
                created_at_us=self.clock.now_us(),
            )
        return self._add_job(spec)

    def _add_job(self, spec: JobSpec) -> Job:
        job = Job(
            spec,
            self.home.views,
            self.clock,
            partial(run_of_job, self),
            self.home.checkpoint(spec.name),
            on_change=self._job_changed,
        )
        self.jobs[spec.name] = job
        return job

    def _job_changed(self, job: Job, before: JobState, after: JobState, reason: str) -> None:
        """Keep every change of state, so that the next opening goes on from it."""
        views = self.home.views
        if job.spec.plan.of_views and job.spec.view is not None and after in _STANDING:
            views.hold(job.spec.view)  # first: killed in between, the next opening finds a view to be filled again
        error = kept_text(job.error)
        views.add_transition(JobTransition(job.name, self.clock.now_us(), before.value, after.value, reason))
        views.save_job(
            job.name,
            state=after.value,
            error=error,
            hint=None if job.error is None else job.error.hint,
            restarts=job.restarts,
            started_at_us=job.started_at_us,
        )

    def _view_failed(self, view: str, error: PenstockError) -> None:
        """A view could not follow those that it is built on: they go on without it."""
        job = self._job_of_view(view)
        if job is not None and job.state.active:
            if job.run is not None:
                job.run.stop()
            job.move(JobState.FAILED, error.message, error)

    def find_job(self, name: str) -> Job:
        """The job of this name, in any case of letters."""
        self.check_open()
        for found in self.jobs.values():
            if found.name.casefold() == name.casefold():
                return found
        raise ResolutionError("UNKNOWN_JOB", f'there is no job "{name}"', hint="SHOW JOBS lists them")

    def _stop_quietly(self, job: Job) -> None:
        with suppress(PenstockError):
            if job.state is not JobState.STOPPED:
                job.stop(JobState.STOPPED, "dropped")
        job.close()

    def _forget_job(self, name: str, view: str | None) -> None:
        self.jobs.pop(name, None)
        self.session = replace(self.session, jobs=self.session.jobs - {name})
        if view is not None:
            end_readers(self.home, self._watched, view)
        forget_job(self.home, name, view)

    def drop_job(self, name: str) -> None:
        """End a job of an INSERT and forget it."""
        job = self.find_job(name)
        self._stop_quietly(job)
        self._forget_job(job.name, job.spec.view)

    def _upkeep(self) -> None:
        self.home.views.maintain(retention_of(self.session.settings))
        now = self.clock.now_us()
        for name in self.home.topics.names():
            self.home.topics.open(name).apply_retention(now)


def _close_all() -> None:
    """At the end of a program that forgot to: jobs end at a batch boundary, and then Spark ends."""
    for engine in tuple(_open_engines):
        with suppress(Exception):
            engine.close()
    with suppress(Exception):
        stop_session()


_open_engines: set[Engine] = set()
atexit.register(_close_all)
