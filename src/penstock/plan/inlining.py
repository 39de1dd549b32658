"""Materialized views that rows are only added to, read as their queries: windows that close stand over them so.

The view store does not close windows over the rows of a view. Spark does, over the streams that the view reads, with
the query of the view in the place of its name: that gives the same rows as long as the streams can be read from their
start again, and the query says the same of a row each time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.model import MaterializedViewDefinition, SourceDefinition
from penstock.plan.refused import refuse
from penstock.plan.trees import nondeterministic_call
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.logical import LogicalPlan

# Connectors that give the rows that they gave before, and where that is asked for.
_AGAIN: Final = {"topic": "earliest", "kafka": "earliest", "file": None}
_RETENTION: Final = ("retention", "retention_bytes")


def checked_inlined(plan: LogicalPlan, catalog: Catalog) -> LogicalPlan | None:
    """A plan with the queries of views in their places, where it runs and gives what the views would; else None.

    Raises QUERY_NOT_YET where a job cannot run it.
    """
    if any(scan.kind == "materialized view" for scan in plan.scans()):
        return None
    views = [
        found
        for name in plan.depends_on
        if isinstance(found := catalog.find(Name(name, quoted=True)), MaterializedViewDefinition)
    ]
    refuse(plan)
    again = all(
        not scan.reading and _read_again(catalog.find(Name(scan.relation, quoted=True))) for scan in plan.scans()
    )
    if not views or not again or nondeterministic_call(plan.spark) is not None:
        return None
    named = ", ".join(view.name.text for view in views)
    note = f"reads the query of {named} in its place: the streams below are read again, from their start"
    return replace(plan, warnings=(*plan.warnings, note))


def _read_again(found: object) -> bool:
    """Whether a relation still gives all rows that a view has read of it."""
    if not isinstance(found, SourceDefinition) or found.options.connector not in _AGAIN:
        return False
    values = found.options.values
    wanted = _AGAIN[found.options.connector]
    return (wanted is None or values.get("start") == wanted) and not any(values.get(key) for key in _RETENTION)
