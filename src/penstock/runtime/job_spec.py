"""What a job is, before anything runs: its query, its sources, where its rows go."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from penstock.frozen import frozen
from penstock.spark.jar_pins import jar_sets_for

if TYPE_CHECKING:
    from penstock.catalog.model import SinkDefinition, SourceDefinition
    from penstock.options.resolved import ResolvedOptions, ResolvedViewOptions
    from penstock.plan.job_plan import JobPlan
    from penstock.plan.session import Session

JobKind = Literal["view", "sink", "insert", "ephemeral"]
WATERMARK_US: Final = 1_000  # Spark's watermark counts whole milliseconds, rounded down; a session may end between two


@frozen
class Branch:
    """One INSERT of a job that runs several: its text over the reading that they share, and where its rows go."""

    core: str
    sink: SinkDefinition
    columns: tuple[str, ...]


@frozen
class JobSpec:
    """A continuous query and its surroundings. `session` is the one it was planned in."""

    name: str
    kind: JobKind
    sql: str  # the canonical statement
    plan: JobPlan
    sources: tuple[SourceDefinition, ...]  # one for each scan of the plan
    options: ResolvedViewOptions
    session: Session
    # the view that is kept: of a materialized view, of an ephemeral updating query, of one whose changes go to a sink
    view: str | None = None
    sink: SinkDefinition | None = None
    columns: tuple[str, ...] = ()  # the columns of the sink that are given, in the order of the query
    branches: tuple[Branch, ...] = ()  # of a job that runs several INSERTs; then `sink` is None

    @property
    def late(self) -> str:
        return self.options.late

    @property
    def measured(self) -> bool:
        """Whether it counts rows for `penstock.metrics`."""
        return self.session.settings.get("metrics") != "off"

    @property
    def sinks(self) -> tuple[SinkDefinition, ...]:
        """Where its rows go outside the view store."""
        return tuple(branch.sink for branch in self.branches) if self.sink is None else (self.sink,)

    @property
    def bounded(self) -> bool:
        """Whether all its input comes to an end."""
        return bool(self.sources) and all(source.bounded for source in self.sources)

    @property
    def follows_views(self) -> bool:
        """Whether what goes to its sink also changes with views that it reads beside its streams."""
        return bool(self.sinks) and bool(self.plan.views) and not self.plan.of_views

    @property
    def jar_sets(self) -> tuple[str, ...]:
        """The connectors whose jars Spark needs for it."""
        options = [*(source.options for source in self.sources), *(sink.options for sink in self.sinks)]
        return tuple(dict.fromkeys(name for one in options for name in jars_of(one)))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams and materialized views that it reads, each once."""
        return tuple(dict.fromkeys((*(scan.relation for scan in self.plan.scans), *self.plan.views)))

    def reads(self, relation: str) -> bool:
        return any(scan.relation == relation for scan in self.plan.scans)

    def looks_up(self, relation: str) -> bool:
        """Whether its batches see a relation as a whole, as a dimension."""
        return any(dimension.relation == relation for dimension in self.plan.dimensions)

    def uses(self, relation: str) -> bool:
        return self.reads(relation) or self.looks_up(relation) or relation in self.plan.views

    def writes(self, relation: str) -> bool:
        """Whether its rows go to a relation."""
        return any(sink.name.text == relation for sink in self.sinks)

    def scan_ids(self, relation: str) -> tuple[str, ...]:
        """The scans over one stream."""
        return tuple(scan.id for scan in self.plan.scans if scan.relation == relation)


def changes_view(job: str) -> str:
    """The name of the view that nobody sees, of a job whose changes go to a sink; no user can give this name."""
    return f"__changes of {job}"


def jars_of(options: ResolvedOptions) -> tuple[str, ...]:
    """The connectors whose jars Spark needs for a relation."""
    key = options.values.get("key.format")
    return jar_sets_for(options.connector, options.format, None if key is None else str(key))


def idle_timeout_us(source: SourceDefinition) -> int:
    """How long a partition of a source may be silent before it no longer counts; 0: for ever."""
    found = source.options.values.get("idle_timeout")
    return found // timedelta(microseconds=1) if isinstance(found, timedelta) else 60_000_000
