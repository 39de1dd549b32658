"""Dimension tables of an open database: their versions, and which of them the batches of each job see.

A new version is written first. Then every job that reads the dimension is told: while Spark plans no batch, the version
is pinned for the first batch that is not planned yet. So a batch sees one version, the same one when it runs again, and
no job is stopped for it. A job that was not told, because the program died in between, is told when it starts.
"""

from __future__ import annotations

from contextlib import nullcontext
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.dimensions import define_dimension, read_dimension
from penstock.catalog.model import DimensionDefinition, ObjectKey, SourceDefinition
from penstock.errors import InternalError, PenstockError, ResolutionError
from penstock.failpoints import hit
from penstock.options.settings import default_settings
from penstock.options.units import show_size
from penstock.runtime.bounded import bounded_table
from penstock.runtime.dimension_rows import (
    columns_of_table,
    fitted_table,
    given_table,
    refuse_repeated,
    repeated_keys,
)
from penstock.runtime.states import JobState
from penstock.spark.dimension_frames import DimensionFrames, JoinMethod
from penstock.spark.offset_log import latest_batch, planned_batches
from penstock.sql.statements import Name
from penstock.stores.dimension_pins import pin, pins_file, read_pins, trim
from penstock.stores.dimensions import BATCH_ROWS, as_given

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.plan.job_plan import DimensionPlan
    from penstock.runtime.engine import Engine
    from penstock.runtime.job import Job
    from penstock.runtime.job_spec import JobSpec
    from penstock.stores.dimensions import DimensionVersion

Looked = DimensionDefinition | SourceDefinition  # what can be looked up: a dimension, or a table that ends

# Up to so many rows one task reads a dimension.
_ONE_READER: Final = 2 * BATCH_ROWS


class Dimensions:
    """What an engine knows of dimensions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.home.dimensions
        self._lock = RLock()  # versions and pins change together
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
        limit = self._setting("broadcast_max_bytes") if max_bytes is None else max_bytes
        return version.bytes <= limit and version.rows <= self._setting("broadcast_max_rows")

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
            self.errors.pop(name, None)
            self.reads.pop(name, None)

    # jobs

    def of_job(self, spec: JobSpec, checkpoint: Path) -> tuple[DimensionFrames, ...]:
        """The dimensions of a job that is about to start; batches that are not planned yet see the newest versions."""
        found: list[DimensionFrames] = []
        path = pins_file(checkpoint)
        for plan in spec.plan.dimensions:
            definition = self._looked_up(plan.relation)
            if isinstance(definition, SourceDefinition):
                self._read_again(definition)
            with self._lock:
                version = self._store.latest(plan.relation)
                pin(path, plan.relation, _next_batch(checkpoint), version.number)
            self._tell(spec.name, plan, definition, version)
            found.append(self._frames(plan, definition, version, path))
        return tuple(found)

    def explained(self, plans: Iterable[DimensionPlan]) -> tuple[DimensionFrames, ...]:
        """The dimensions of a query that is only looked at."""
        found: list[DimensionFrames] = []
        for plan in plans:
            definition = self._looked_up(plan.relation)
            if isinstance(definition, SourceDefinition):
                self._read_again(definition)
            found.append(self._frames(plan, definition, self._store.latest(plan.relation), None))
        return tuple(found)

    def _looked_up(self, relation: str) -> Looked:
        found = self._engine.session.catalog[ObjectKey("relation", relation)]
        if not isinstance(found, DimensionDefinition | SourceDefinition):
            raise InternalError(f"{relation} is looked up and is a {found.kind}")
        return found

    def _frames(
        self, plan: DimensionPlan, definition: Looked, version: DimensionVersion, path: Path | None
    ) -> DimensionFrames:
        types = {column.name: column.type for column in definition.columns}
        spark = self._engine.home.spark()
        readers = 1 if version.rows <= _ONE_READER else spark.sparkContext.defaultParallelism
        return DimensionFrames(
            plan=plan,
            types=tuple((name, sql_type) for name in plan.columns if (sql_type := types[name]) is not None),
            directory=self._store.directory(plan.relation),
            pins=path,
            number=version.number,
            method=self.method(definition, version),
            readers=readers,
        )

    def method(self, definition: Looked, version: DimensionVersion) -> JoinMethod:
        """How a dimension of this size is joined."""
        return "shuffle" if self.why_shuffle(definition, version) is not None else "broadcast"

    def why_shuffle(self, definition: Looked, version: DimensionVersion) -> str | None:
        """Why a dimension is not broadcast; None where it is."""
        if isinstance(definition, DimensionDefinition) and not definition.broadcast:
            return "broadcast = False"
        limit, most = self._setting("broadcast_max_bytes"), self._setting("broadcast_max_rows")
        if version.bytes > limit:
            return f"{show_size(version.bytes)} is over broadcast_max_bytes ({show_size(limit)})"
        if version.rows > most:
            return f"{version.rows} rows are over broadcast_max_rows ({most})"
        return None

    def _setting(self, key: str) -> int:
        value = self._engine.session.settings.get(key, default_settings()[key])
        assert isinstance(value, int)
        return value

    def _tell(self, job: str, plan: DimensionPlan, definition: Looked, version: DimensionVersion) -> None:
        """Notices of a job and a version, each once: that it is not broadcast, that keys are repeated."""
        mark = (job, plan.id, version.number, definition.text)
        if mark in self._told:
            return
        self._told.add(mark)
        why = self.why_shuffle(definition, version)
        if why is not None and why != "broadcast = False":
            self._engine.notices.append(f"job {job} joins dimension {plan.relation} by a shuffle: {why}")
        if definition.primary_key and set(definition.primary_key) <= set(plan.keys):
            return  # unique by declaration
        count = repeated_keys(self._store.read(plan.relation, version.number), plan.keys)
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
        run = job.run
        path = pins_file(job.checkpoint)
        if not path.exists():
            return  # it has never been started, and finds the newest version when it is
        handle = run.handle if run is not None and job.state.active else None
        with handle.no_planning() if handle is not None else nullcontext(), self._lock:
            version = self._store.latest(name)
            pin(path, name, _next_batch(job.checkpoint), version.number)
        definition = self._looked_up(name)
        for plan in job.spec.plan.dimensions:
            if plan.relation == name:
                self._tell(job.name, plan, definition, version)
        if handle is not None and run is not None and run.joins_otherwise(name, self.method(definition, version)):
            job.stop(JobState.STOPPED, f"dimension {name} is joined in another way from here on")
            job.start(f"version {version.number} of dimension {name}")

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
        before = self._store.versions(name)
        try:
            self._read_again(definition, strict=True)
        except PenstockError as error:
            self._failed(name, error)
            return
        if self._store.versions(name) != before:
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
