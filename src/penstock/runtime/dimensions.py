"""Dimension tables of an open database: their versions, and which of them the batches of each job see.

A new version is written first. Then every job that reads the dimension is told: while Spark plans no batch, the version
is pinned for the first batch that is not planned yet. So a batch sees one version, the same one when it runs again, and
no job is stopped for it. A job that was not told, because the program died in between, is told when it starts.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.dimensions import define_dimension, read_dimension
from penstock.catalog.model import DimensionDefinition, ObjectKey, SourceDefinition
from penstock.errors import InternalError, PenstockError, ResolutionError
from penstock.failpoints import hit
from penstock.runtime.bounded import bounded_table
from penstock.runtime.dimension_methods import JoinMethods, Looked
from penstock.runtime.dimension_rows import (
    columns_of_table,
    fitted_table,
    given_table,
    refuse_repeated,
)
from penstock.runtime.seen_versions import newest_versions
from penstock.runtime.states import JobState
from penstock.runtime.view_run import ViewRun
from penstock.spark.dimension_frames import DimensionFrames
from penstock.spark.offset_log import latest_batch, planned_batches
from penstock.sql.statements import Name
from penstock.stores.dimension_pins import pin, pinned, pins_file, read_pins, trim
from penstock.stores.dimensions import BATCH_ROWS, as_given

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.plan.job_plan import DimensionPlan, JobPlan
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job
    from penstock.runtime.job_spec import JobSpec
    from penstock.spark.dimension_frames import JoinMethod
    from penstock.stores.dimensions import DimensionVersion
    from penstock.stores.views import SeenVersion

# Up to so many rows one task reads a dimension.
_ONE_READER: Final = 2 * BATCH_ROWS


class Dimensions:
    """What an engine knows of dimensions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.home.dimensions
        self._lock = RLock()  # versions and pins change together
        self.join_methods = JoinMethods(self._store, lambda: engine.session.settings)
        self.reads: dict[str, int] = {}  # how often each table was read at its source
        self.errors: dict[str, str] = {}  # why a table could not be read again
        self._told: set[tuple[object, ...]] = set()

    # from the Python interface

    def register(self, name: str, data: Any, *, broadcast: bool = True, key: Sequence[str] = ()) -> int:
        """Make a dimension, or a new version of it; the number of the version in force."""
        engine = self._engine
        given = given_table(data)
        definition = define_dimension(_name(name), columns_of_table(given), broadcast=broadcast, key=tuple(key))
        table = fitted_table(given, definition.columns)
        with engine.turn:
            engine.check_open()
            catalog, notices = engine.session.catalog.put(definition, or_replace=True)  # refuses before it is written
            known = catalog.get(definition.name)
            assert isinstance(known, DimensionDefinition)
            refuse_repeated(known.name.text, table, known.primary_key)
            version = self._put(known.name.text, table, known.text, given.schema)
            engine.put_catalog(engine.session.with_catalog(catalog))
            engine.notices += notices
            self.announce(known.name.text)
            return version.number

    def update(self, name: str, data: Any) -> int:
        """A new version of a dimension; each job sees it from its next batch on. The number of the version."""
        engine = self._engine
        with engine.turn:
            engine.check_open()
            definition = self.definition(name)
            table = fitted_table(data, definition.columns)
            refuse_repeated(definition.name.text, table, definition.primary_key)
            given = data.schema if hasattr(data, "schema") and hasattr(data, "num_rows") else None
            before = self._store.versions(definition.name.text)
            version = self._put(definition.name.text, table, definition.text, given)
            if before and before[-1].number == version.number:
                engine.notices.append(f"dimension {definition.name} has these rows already: version {version.number}")
            self.announce(definition.name.text)
            return version.number

    def table(self, name: str) -> pa.Table:
        """The rows of the newest version."""
        return self._store.read(self.definition(name).name.text)

    def given(self, name: str) -> pa.Table:
        """The same rows in the types in which they were handed over."""
        known = self.definition(name).name.text
        return as_given(self._store.read(known), self._store.latest(known))

    def suits(self, name: str, max_bytes: int | None = None) -> bool:
        """Whether the newest version has at most so many bytes, and not more rows than are broadcast."""
        version = self._store.latest(self.definition(name).name.text)
        limit = self.join_methods.setting("broadcast_max_bytes") if max_bytes is None else max_bytes
        return version.bytes <= limit and version.rows <= self.join_methods.setting("broadcast_max_rows")

    def send(self, name: str) -> None:
        """Tell every job of the newest version, and ask it for one more batch."""
        known = self.definition(name).name.text
        self.announce(known)
        for job in self._engine.all_jobs():
            if job.spec.looks_up(known) and job.state.active:
                job.nudge()

    def definition(self, name: str) -> DimensionDefinition:
        """The dimension of this name; UNKNOWN_RELATION, WRONG_OBJECT_KIND where there is none."""
        found = self._engine.session.catalog.get(_name(name))
        if not isinstance(found, DimensionDefinition):
            raise ResolutionError(
                "WRONG_OBJECT_KIND",
                f'"{found.name}" is a {found.kind}, not a dimension',
                hint=f'db.register_dimension("{name}", …) makes one under another name',
            )
        return found

    def _put(self, name: str, table: pa.Table, text: str, given: pa.Schema | None) -> DimensionVersion:
        """A new version, or the newest one where it has the same rows."""
        with self._lock:
            before = self._store.versions(name)
            if before and before[-1].text == text and self._store.read(name).equals(table):
                return before[-1]
            hit("dimension.before_write")
            return self._store.add(name, table, self._engine.clock.now_us(), text=text, given=given)

    # opening and dropping

    def open(self) -> None:
        """Bring catalog and files together again: what a killed program has written of one and not of the other."""
        catalog = self._engine.session.catalog
        for item in tuple(catalog):
            if isinstance(item, DimensionDefinition) and (found := self._store.versions(item.name.text)):
                newest = found[-1]
                if newest.text and newest.text != item.text:
                    catalog, _ = catalog.put(read_dimension(item.name, newest.text), or_replace=True)
        if catalog is not self._engine.session.catalog:
            self._engine.put_catalog(self._engine.session.with_catalog(catalog))
        for name in self._store.names():
            if ObjectKey("relation", name) not in catalog:
                self._store.forget(name)

    def forget(self, name: str) -> None:
        """A relation was dropped."""
        with self._lock:
            self._store.forget(name)
            self.join_methods.forget(name)
            self.errors.pop(name, None)
            self.reads.pop(name, None)

    # jobs

    def of_job(self, spec: JobSpec, checkpoint: Path) -> tuple[DimensionFrames, ...]:
        """The dimensions of a job that is about to start; batches that are not planned yet see the newest versions."""
        self._read_tables(spec.plan)
        with self._lock:
            path = pins_file(checkpoint)
            methods = self._methods(spec.plan, checkpoint)
            found = self._frames(spec.plan, methods, path)
            for frames in found:
                pin(path, frames.plan.relation, _next_batch(checkpoint), frames.number)
        for plan in spec.plan.dimensions:
            self._tell(spec.name, plan)
        return found

    def explained(self, plan: JobPlan) -> tuple[DimensionFrames, ...]:
        """The dimensions of a query that is only looked at."""
        self._read_tables(plan)
        return self._frames(plan, self._methods(plan, None), None)

    def methods(self, plan: JobPlan) -> dict[str, JoinMethod]:
        """How a job would join its dimensions now, by their ids; those without rows are left out."""
        there = tuple(each for each in plan.dimensions if self._store.versions(each.relation))
        return self._methods(replace(plan, dimensions=there), None) if len(there) == len(plan.dimensions) else {}

    def _methods(self, plan: JobPlan, checkpoint: Path | None) -> dict[str, JoinMethod]:
        relations = {dimension.relation for dimension in plan.dimensions}
        definitions = {name: self._looked_up(name) for name in relations}
        return self.join_methods.of(plan, definitions, {name: self._seen(name, checkpoint) for name in relations})

    def _seen(self, name: str, checkpoint: Path | None) -> list[DimensionVersion]:
        """The versions that batches of a job may see: of one that may run again, and the newest."""
        newest = self._store.latest(name)
        last = latest_batch(checkpoint) if checkpoint is not None else None
        if checkpoint is None or last is None:
            return [newest]
        number = pinned(read_pins(pins_file(checkpoint)), name, last)
        return [each for each in self._store.versions(name) if each.number == number and each != newest] + [newest]

    def _read_tables(self, plan: JobPlan) -> None:
        for name in dict.fromkeys(dimension.relation for dimension in plan.dimensions):
            definition = self._looked_up(name)
            if isinstance(definition, SourceDefinition):
                self._read_again(definition)

    def _looked_up(self, relation: str) -> Looked:
        found = self._engine.session.catalog[ObjectKey("relation", relation)]
        if not isinstance(found, DimensionDefinition | SourceDefinition):
            raise InternalError(f"{relation} is looked up and is a {found.kind}")
        return found

    def _frames(
        self, plan: JobPlan, methods: Mapping[str, JoinMethod], path: Path | None
    ) -> tuple[DimensionFrames, ...]:
        lookups = {lookup.dimension.id: lookup for lookup in (plan.lookup.lookups if plan.lookup is not None else ())}
        found: list[DimensionFrames] = []
        for dimension in plan.dimensions:
            version = self._store.latest(dimension.relation)
            types = {column.name: column.type for column in self._looked_up(dimension.relation).columns}
            method = methods[dimension.id]
            if method == "lookup":
                self._store.index(dimension.relation, version.number, lookups[dimension.id].key)
            few = version.rows <= _ONE_READER
            found.append(
                DimensionFrames(
                    plan=dimension,
                    types=tuple((name, kind) for name in dimension.columns if (kind := types[name]) is not None),
                    directory=self._store.directory(dimension.relation),
                    pins=path,
                    number=version.number,
                    method=method,
                    readers=1 if few else self._engine.home.spark().sparkContext.defaultParallelism,
                    lookup=lookups[dimension.id] if method == "lookup" else None,
                )
            )
        return tuple(found)

    def _tell(self, job: str, plan: DimensionPlan) -> None:
        """Notices of a job and a version, each once: that it is not broadcast, that keys are repeated."""
        if plan.kept:
            return  # it is not joined by Spark
        definition, version = self._looked_up(plan.relation), self._store.latest(plan.relation)
        mark = (job, plan.id, version.number, definition.text)
        if mark in self._told:
            return
        self._told.add(mark)
        why = self.join_methods.why_shuffle(definition, version)
        if why is not None and why != "broadcast = False":
            self._engine.notices.append(f"job {job} joins dimension {plan.relation} by a shuffle: {why}")
        if definition.primary_key and set(definition.primary_key) <= set(plan.keys):
            return  # unique by declaration
        count = self.join_methods.repeated(plan.relation, version.number, plan.keys)
        if count:
            self._engine.notices.append(
                f"dimension {plan.relation}, version {version.number}: {count} "
                f"{'keys stand' if count > 1 else 'key stands'} in more than one row ({', '.join(plan.keys)}); "
                f"job {job} gives a row for each of them"
            )

    def announce(self, name: str) -> None:
        """Tell every job that reads a dimension of its newest version, and let go of versions that nobody needs."""
        hit("dimension.before_announce")
        readers = [job for job in self._engine.all_jobs() if job.spec.looks_up(name)]
        for job in readers:
            with job.control:
                self._announce(job, name)
        self._let_go(name)

    def _announce(self, job: Job, name: str) -> None:
        if job.spec.plan.of_views:
            if isinstance(job.run, ViewRun) and job.state.active:
                job.run.see(self.newest(job.spec.plan))
            return
        path = pins_file(job.checkpoint)
        if not path.exists():
            return  # it has never been started, and finds the newest version when it is
        run = job.run
        handle = run.handle if run is not None and job.state.active else None
        if run is not None and handle is not None and run.joins_otherwise(self._methods(job.spec.plan, job.checkpoint)):
            # The query that runs may not be right for the version: no batch of it may see it.
            job.stop(JobState.STOPPED, f"dimension {name} is joined in another way from here on")
            job.start(f"a new version of dimension {name}")
            return
        with self._lock:
            frames = self._frames(job.spec.plan, self._methods(job.spec.plan, job.checkpoint), path)
        number = next(each.number for each in frames if each.plan.relation == name)
        with handle.no_planning() if handle is not None else nullcontext(), self._lock:
            pin(path, name, _next_batch(job.checkpoint), number)
        for plan in job.spec.plan.dimensions:
            self._tell(job.name, plan)
        if handle is not None and any(plan.kept and plan.relation == name for plan in job.spec.plan.dimensions):
            job.nudge()  # the answer is another one, though no row comes

    def newest(self, plan: JobPlan) -> tuple[SeenVersion, ...]:
        """The newest versions of the dimensions of a view without batches."""
        with self._lock:
            return newest_versions(plan, self._store)

    def newest_of_views(self, plan: JobPlan) -> tuple[SeenVersion, ...]:
        """As `newest`, for a view that is about to follow: tables are read again."""
        self._read_tables(plan)
        return self.newest(plan)

    def _behind(self, job: Job, name: str) -> bool:
        """Whether a job was not told of the newest version."""
        if job.spec.plan.of_views:
            told = job.run.seen.get(name) if isinstance(job.run, ViewRun) and job.state.active else None
            return told is not None and told != self._store.latest(name).number
        entries = read_pins(pins_file(job.checkpoint)).get(name, ())
        return bool(entries) and entries[-1][1] != self._store.latest(name).number

    def in_force(self, name: str) -> DimensionVersion:
        """The newest version that every job at work has been told of: rows that come now see it, or a later."""
        newest = self._store.latest(name)
        told = [
            entries[-1][1]
            for job in self._engine.all_jobs()
            if job.state.active and job.spec.looks_up(name)
            if (entries := read_pins(pins_file(job.checkpoint)).get(name, ()))
        ]
        number = min(told, default=newest.number)
        return next((each for each in self._store.versions(name) if each.number == number), newest)

    def _let_go(self, name: str) -> None:
        with self._lock:
            used: set[int] = set()
            for job in self._engine.all_jobs():
                if not job.spec.looks_up(name):
                    continue
                path = pins_file(job.checkpoint)
                kept = planned_batches(job.checkpoint)
                if kept:
                    trim(path, kept[0])
                used |= {number for _, number in read_pins(path).get(name, ())}
            # The one before the newest may still be read by a query that has just begun.
            used |= {version.number for version in self._store.versions(name)[-2:]}
            self._store.keep_only(name, used)

    # tables over bounded sources

    def refresh(self, definition: SourceDefinition) -> None:
        """Read a table again; jobs see what has changed. An error leaves the version there is in force."""
        name = definition.name.text
        try:
            self._read_again(definition, strict=True)
        except PenstockError as error:
            self._failed(name, error)
            return
        # Also a job that has just started may have read a new version, and told nobody.
        if any(self._behind(job, name) for job in self._engine.all_jobs()):
            self.announce(name)

    def _read_again(self, definition: SourceDefinition, *, strict: bool = False) -> None:
        name = definition.name.text
        try:
            table = fitted_table(bounded_table(self._engine, definition), definition.columns)
            self.reads[name] = self.reads.get(name, 0) + 1
            refuse_repeated(name, table, definition.primary_key)
        except PenstockError as error:
            if strict or not self._store.versions(name):
                raise
            self._failed(name, error)
            return
        self.errors.pop(name, None)
        self._put(name, table, definition.text, None)

    def _failed(self, name: str, error: PenstockError) -> None:
        if self.errors.get(name) != error.message:
            number = self._store.latest(name).number
            self._engine.notices.append(
                f"table {name} could not be read again, version {number} stays: {error.message}"
            )
        self.errors[name] = error.message

    def refreshed_tables(self) -> list[SourceDefinition]:
        """The tables with the option `refresh` that a job reads."""
        used = {plan.relation for job in self._engine.all_jobs() for plan in job.spec.plan.dimensions}
        return [
            item
            for item in self._engine.session.catalog
            if item.name.text in used
            and isinstance(item, SourceDefinition)
            and item.options.values.get("refresh") is not None
        ]


def _name(name: str) -> Name:
    return Name(name, quoted=not name.isidentifier())


def _next_batch(checkpoint: Path) -> int:
    """The first batch that is not planned yet."""
    newest = latest_batch(checkpoint)
    return 0 if newest is None else newest + 1
