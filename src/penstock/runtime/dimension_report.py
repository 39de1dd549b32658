"""What is told of dimensions: in EXPLAIN, and in the system tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.model import DimensionDefinition, SourceDefinition
from penstock.errors import NotYetError
from penstock.options.units import show_size
from penstock.plan.job_plan import plan_job
from penstock.sql.statements import Name
from penstock.stores.dimension_pins import pins_file, read_pins

_HOW: Final = {
    "broadcast": "broadcast to every task, no shuffle",
    "lookup": "rows asked for by key in Python workers, no shuffle",
    "shuffle": "shuffle join",
    "kept": "kept in the view store beside the rows; a new version changes the answer for those that are there",
}

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine


def explain_dimensions(engine: Engine, plan: LogicalPlan) -> list[str]:
    """How each dimension of a query is joined, where it has rows."""
    try:
        job = plan_job(plan)
    except NotYetError:
        return []
    methods = engine.dimensions.methods(job)
    found: list[str] = []
    for dimension in job.dimensions:
        definition = engine.session.catalog.find(Name(dimension.relation, quoted=True))
        if dimension.id in methods and isinstance(definition, DimensionDefinition | SourceDefinition):
            newest = engine.home.dimensions.latest(dimension.relation)
            how = _HOW[methods[dimension.id]]
            if methods[dimension.id] == "shuffle":
                how += f": {engine.dimensions.join_methods.why_shuffle(definition, newest)}"
            size = f"{newest.rows} rows, {show_size(newest.bytes)}"
            found.append(f"{dimension.id}: version {newest.number}, {size}; {how}")
    return found


def dimension_rows(engine: Engine) -> list[dict[str, Any]]:
    """`penstock.dimensions`."""
    found: list[dict[str, Any]] = []
    for item in engine.session.catalog:
        if not isinstance(item, DimensionDefinition | SourceDefinition):
            continue
        name = item.name.text
        if not engine.home.dimensions.versions(name):
            continue
        shown = engine.dimensions.in_force(name)
        jobs = [job.name for job in engine.all_jobs() if job.spec.looks_up(name)]
        broadcast = engine.dimensions.join_methods.why_shuffle(item, shown) is None
        copies = _executors(engine) if broadcast else 1
        found.append(
            {
                "name": name,
                "kind": item.kind,
                "version": shown.number,
                "rows": shown.rows,
                "bytes": shown.bytes,
                "broadcast": broadcast,
                "copies": copies,
                "memory_bytes": shown.bytes * copies,
                "source_reads": engine.dimensions.reads.get(name, 0),
                "updated_at": shown.created_at_us,
                "jobs": ", ".join(jobs) or None,
                "error": engine.dimensions.errors.get(name),
            }
        )
    return found


def _executors(engine: Engine) -> int:
    """How many processes a broadcast is sent to; the driver's own counts where it does the work itself."""
    if not engine.home.spark_started:
        return 1
    context: Any = engine.home.spark().sparkContext
    processes = int(context._jsc.sc().getExecutorMemoryStatus().size())  # noqa: SLF001 - no public way
    return max(1, processes if context.master.startswith("local") else processes - 1)


def version_rows(engine: Engine) -> list[dict[str, Any]]:
    """`penstock.dimension_versions`: each version that is kept, once for each job that sees it."""
    seen: dict[tuple[str, int], list[tuple[str | None, int | None]]] = {}
    for job in engine.all_jobs():
        for name, entries in read_pins(pins_file(job.checkpoint)).items():
            for first, number in entries:
                seen.setdefault((name, number), []).append((job.name, first))
    store = engine.home.dimensions
    return [
        {
            "dimension": name,
            "version": version.number,
            "job": job,
            "from_batch": first,
            "rows": version.rows,
            "bytes": version.bytes,
            "created_at": version.created_at_us,
        }
        for name in store.names()
        for version in store.versions(name)
        for job, first in seen.get((name, version.number), [(None, None)])
    ]
