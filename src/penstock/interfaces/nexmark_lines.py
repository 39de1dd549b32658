"""Nexmark's events as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.catalog.model import SourceDefinition
from penstock.connectors.nexmark_plan import plan_nexmark
from penstock.formats import encode_rows
from penstock.plan.script import analyze_script
from penstock.stores.arrow_types import arrow_type

if TYPE_CHECKING:
    from penstock.connectors.nexmark_plan import NexmarkPlan


def json_lines(events: int, *, kind: str, seed: int, rate: float, out_of_order: float, at_once: int) -> Iterator[str]:
    """Many lines at a time; those of the events that a stream of the same options has."""
    import pyarrow as pa

    from penstock.connectors.nexmark_values import nexmark_batch

    definition, plan = declared(
        f"table_type = '{kind}', event_count = {events}, seed = {seed}, event_rate = {rate!r}, "
        f"out_of_order = {out_of_order!r}"
    )
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in definition.columns if column.type])
    rows = plan.rows or 0
    for first in range(0, rows, at_once):
        batch = nexmark_batch(plan, schema, 0, first, min(first + at_once, rows))
        records = encode_rows(pa.Table.from_batches([batch]), "json", {"json.ignore_null_fields": True})
        yield b"\n".join([*records.to_pylist(), b""]).decode()


def declared(options: str) -> tuple[SourceDefinition, NexmarkPlan]:
    """The stream that a statement with these options defines, and what it makes."""
    (report,) = analyze_script(f"CREATE STREAM nexmark WITH (connector = 'nexmark', {options})")
    if report.error is not None:
        raise report.error
    definition = report.analysis.definition if report.analysis is not None else None
    assert isinstance(definition, SourceDefinition)
    return definition, plan_nexmark(definition)
