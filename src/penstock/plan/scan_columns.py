"""The columns that are fetched from a source: those a query reads, what they are made of, and what checks look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from penstock.catalog.model import ObjectKey, SourceDefinition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.catalog.snapshot import Catalog
    from penstock.plan.job_plan import JobPlan, ScanPlan
    from penstock.plan.logical import LogicalPlan

Reads: TypeAlias = dict[str, tuple[str, ...]]  # by relation, the columns


def needed_columns(definition: SourceDefinition, wanted: set[str]) -> set[str]:
    """The declared columns that `wanted` ones are made of, themselves included."""
    needed = {name.casefold() for name in wanted}
    for entry in definition.columns:
        if entry.computed is not None and entry.name.casefold() in needed:
            needed |= {column.name.casefold() for column in entry.computed.find_all(exp.Column)}
    return {entry.name for entry in definition.columns if entry.name.casefold() in needed}


def columns_to_read(definition: SourceDefinition, scan: ScanPlan) -> tuple[str, ...]:
    """The physical columns that a scan has to fetch: those of the query, of its event time, and NOT NULL ones."""
    time = () if scan.event_time is None else (scan.event_time.column,)
    return _physical(definition, (*scan.columns, *time))


def columns_of_rows(definition: SourceDefinition, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns of the rows of a bounded relation: those named, or all, and those by which rows replace others."""
    shown = tuple(columns) if columns else tuple(entry.name for entry in definition.columns)
    by = {*definition.primary_key, definition.options.values.get("version_column")}
    if definition.mode == "append":
        return shown
    return (*shown, *(entry.name for entry in definition.columns if entry.name in by and entry.name not in shown))


def source_reads(plan: LogicalPlan, job: JobPlan | None, catalog: Catalog) -> Reads:
    """Of each relation that a query reads, the columns that are fetched from it; `job` is what runs, where one does."""
    found = dict(plan.reads)  # a view is read by the view store, which needs no more than these
    if job is not None:
        return found | _job_reads(job, catalog)
    for relation, _ in plan.reads:
        definition = _source(relation, catalog)
        if definition is not None and definition.bounded:
            found[relation] = _physical(definition, columns_of_rows(definition, columns_asked(plan, relation)))
    return found


def columns_asked(plan: LogicalPlan, name: str) -> tuple[str, ...] | None:
    """The columns that are needed of a bounded relation; None, for all, where a subquery in an expression reads it.

    Such subqueries stand in the tree only: the plan does not know all that they read.
    """
    scans = sum(scan.relation == name for scan in plan.scans())
    tables = sum(table.name == name for table in plan.spark.find_all(exp.Table))
    return dict(plan.reads).get(name) if scans == tables else None


def _job_reads(job: JobPlan, catalog: Catalog) -> Reads:
    """What the scans of a job fetch, all those of a relation together, and what it reads of its dimensions."""
    found = {dimension.relation: dimension.columns for dimension in job.dimensions}
    for relation in dict.fromkeys(scan.relation for scan in job.scans):
        definition = _source(relation, catalog)
        if definition is not None:
            scans = [scan for scan in job.scans if scan.relation == relation]
            read = {name for scan in scans for name in columns_to_read(definition, scan)}
            found[relation] = tuple(entry.name for entry in definition.columns if entry.name in read)
    return found


def _source(relation: str, catalog: Catalog) -> SourceDefinition | None:
    key = ObjectKey("relation", relation)
    if key not in catalog:
        return None
    definition = catalog[key]
    return definition if isinstance(definition, SourceDefinition) else None


def _physical(definition: SourceDefinition, columns: Iterable[str]) -> tuple[str, ...]:
    checked = (entry.name for entry in definition.columns if not entry.nullable)
    needed = needed_columns(definition, {*columns, *checked})
    return tuple(entry.name for entry in definition.columns if entry.physical and entry.name in needed)
