"""How fast Nexmark's events are made: in one process, and in two at once, for each kind of relation.

python -m benchmarks.nexmark_generator [EVENTS]
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pyarrow as pa

from penstock.catalog.model import SourceDefinition
from penstock.connectors.nexmark_plan import plan_nexmark
from penstock.connectors.nexmark_values import nexmark_batch
from penstock.plan.script import analyze_script
from penstock.stores.arrow_types import arrow_type

_BATCH = 10_000


def declared(kind: str) -> SourceDefinition:
    """A relation with the events of a kind."""
    (report,) = analyze_script(f"CREATE STREAM n WITH (connector = 'nexmark', table_type = '{kind}')")
    assert report.analysis is not None, report.error
    assert isinstance(report.analysis.definition, SourceDefinition)
    return report.analysis.definition


def made(kind: str, first: int, end: int) -> tuple[float, int]:
    """Seconds, and bytes made."""
    definition = declared(kind)
    plan = plan_nexmark(definition)
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in definition.columns if column.type])
    nexmark_batch(plan, schema, 0, 0, 10)
    began, size = time.perf_counter(), 0
    for start in range(first, end, _BATCH):
        size += nexmark_batch(plan, schema, 0, start, min(start + _BATCH, end)).nbytes
    return time.perf_counter() - began, size


def main(events: int) -> None:
    """Print what was measured."""
    for kind in ("all", "bid"):
        seconds, size = made(kind, 0, events)
        print(f"{kind:>4}  1 process   {events / seconds:>12,.0f} events/s  {size / seconds / 1e6:>7,.0f} MB/s")
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(made, [kind, kind], [0, 0], [10, 10]))  # started and warm
            began = time.perf_counter()
            halves = pool.map(made, [kind, kind], [0, events // 2], [events // 2, events])
            size = sum(each for _, each in halves)
            seconds = time.perf_counter() - began
        print(f"{kind:>4}  2 processes {events / seconds:>12,.0f} events/s  {size / seconds / 1e6:>7,.0f} MB/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
