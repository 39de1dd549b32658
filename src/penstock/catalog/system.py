"""The system tables: read-only relations of the engine under `penstock.`, with fixed columns."""

from __future__ import annotations

import difflib
from typing import Final

from penstock.catalog.model import ColumnDefinition, SystemTable
from penstock.sql.reading import SYSTEM_SCHEMA
from penstock.types import BIGINT, BOOLEAN, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, SqlType

_S, _B, _I, _T, _D = STRING, BIGINT, INT, TIMESTAMP, DOUBLE


def _table(table: str, /, **columns: SqlType) -> SystemTable:
    return SystemTable(
        f"{SYSTEM_SCHEMA}.{table}", tuple(ColumnDefinition(column, type_) for column, type_ in columns.items())
    )


# pending_windows lists the starts of the windows that are still open; lateness is the watermark minus the event time.
SYSTEM_TABLES: Final[tuple[SystemTable, ...]] = (
    _table("jobs", name=_S, state=_S, sql=_S, batch_id=_B, watermark=_T, restarts=_I, error=_S, started_at=_T),
    _table("job_history", job=_S, at=_T, from_state=_S, to_state=_S, reason=_S),
    _table(
        "watermarks",
        job=_S,
        source=_S,
        partition=_I,
        max_event_time=_T,
        current_watermark=_T,
        idle=BOOLEAN,
        pending_windows=SqlType("ARRAY", elements=(_T,)),
    ),
    _table(
        "connector_offsets",
        connector_id=_S,
        partition=_I,
        offset=_B,
        timestamp=_T,
        job=_S,
        end_offset=_B,
        lag=_B,
        topic=_S,
        topic_partition=_I,
    ),
    _table("checkpoints", job=_S, batch_id=_B, state=_S, started_at=_T, completed_at=_T, size_bytes=_B),
    _table("window_aggregates", job=_S, key=_S, window_start=_T, count=_B, sum=_D, min=_D, max=_D),
    _table("triggers", job=_S, key=_S, window_start=_T, window_end=_T, state_key=_S, fired=BOOLEAN),
    _table("join_buffers", job=_S, side=_S, key=_S, ts=_T, data=SqlType("BINARY")),
    _table(
        "late_rows",
        job=_S,
        stream=_S,
        partition=_I,
        offset=_B,
        event_time=_T,
        watermark=_T,
        lateness=INTERVAL,
        row=_S,
        batch_id=_B,
        topic=_S,
        topic_partition=_I,
    ),
    _table(
        "dead_letters",
        job=_S,
        stream=_S,
        partition=_I,
        offset=_B,
        raw=SqlType("BINARY"),
        reason=_S,
        error=_S,
        recorded_at=_T,
        topic=_S,
        topic_partition=_I,
    ),
    _table(
        "dimensions",
        name=_S,
        kind=_S,
        version=_B,
        rows=_B,
        bytes=_B,
        broadcast=BOOLEAN,
        copies=_I,
        memory_bytes=_B,
        source_reads=_B,
        updated_at=_T,
        jobs=_S,
        error=_S,
    ),
    _table("dimension_versions", dimension=_S, version=_B, job=_S, from_batch=_B, rows=_B, bytes=_B, created_at=_T),
    _table("metrics", job=_S, name=_S, value=_D, at=_T),
    _table("columns", relation=_S, position=_I, name=_S, type=_S, nullable=BOOLEAN, event_time=BOOLEAN),
    _table("options", relation=_S, name=_S, value=_S, source=_S),
)

_BY_NAME: Final = {table.name: table for table in SYSTEM_TABLES}


def find_system(name: str) -> SystemTable | None:
    """The system table of a dotted name, in any case.

    >>> find_system("penstock.JOBS").columns[0].name
    'name'
    >>> find_system("jobs") is None
    True
    """
    return _BY_NAME.get(name.lower())


def nearest_system(name: str) -> str | None:
    """The system table that an unknown name most likely means: named without its schema, or misspelt.

    >>> nearest_system("jobs"), nearest_system("penstock.job"), nearest_system("penstok.jobs"), nearest_system("orders")
    ('penstock.jobs', 'penstock.jobs', 'penstock.jobs', None)
    """
    if f"{SYSTEM_SCHEMA}.{name.lower()}" in _BY_NAME:
        return f"{SYSTEM_SCHEMA}.{name.lower()}"
    if "." not in name:
        return None
    close = difflib.get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.8)
    return close[0] if close else None
