"""Where records come from, for the system tables: the topic behind a stream, and the partition of that topic.

A stream over several topics numbers their partitions through; what a user can look up at a broker is the other one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from penstock.connectors.registry import source_of
from penstock.connectors.source import OutsideSource, ScanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from penstock.runtime.engine import Engine

RecordPlace = tuple[str | None, int | None]
_UNKNOWN: RecordPlace = (None, None)


def record_places(engine: Engine) -> Callable[[str, str, int], RecordPlace]:
    """Tells the topic and its partition for a job, a stream or the id of one of its scans, and the number there."""

    @cache
    def found(job: str, stream: str, number: int) -> RecordPlace:
        known = engine.jobs.get(job)
        if known is None:
            return _UNKNOWN
        for scan, definition in zip(known.spec.plan.scans, known.spec.sources, strict=True):
            source = source_of(definition.options.connector)
            if stream in (scan.id, scan.relation) and isinstance(source, OutsideSource):
                keep = known.checkpoint.parent
                asked = ScanRequest(scan.id, definition, (), engine.home.path, 0, known.spec.name, keep=keep)
                return source.record_place(asked, number) or _UNKNOWN
        return _UNKNOWN

    return found


def with_places(engine: Engine, rows: pa.Table) -> pa.Table:
    """Rows of a system table with their topics filled in."""
    import pyarrow as pa

    place_of = record_places(engine)
    keys = zip(*(rows.column(name).to_pylist() for name in ("job", "stream", "partition")), strict=True)
    places = [place_of(*key) if None not in key else _UNKNOWN for key in keys]
    for name, values in (("topic", [topic for topic, _ in places]), ("topic_partition", [own for _, own in places])):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pa.array(values, rows.schema.field(at).type))
    return rows
