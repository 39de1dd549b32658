"""The system tables that are kept in the view store, with exactly the columns of the catalog.

What only a running engine knows is NULL here: the end of an input and the lag behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.system import find_system
from penstock.stores.duckdb_types import from_duckdb, out_type, typed
from penstock.stores.views.database import fetched
from penstock.stores.views.ledger import HELD, WAITS, latest_entries
from penstock.stores.views.records import NOT_RETRIED

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa

    from penstock.catalog.model import SystemTable
    from penstock.stores.views.model import LedgerEntry
    from penstock.types import SqlType

# Filled in by whoever knows what a job reads.
_NOWHERE: Final = "NULL::VARCHAR AS topic, NULL::INTEGER AS topic_partition"
_QUERIES: Final = {
    "penstock.job_history": 'SELECT job, "at", from_state, to_state, reason FROM store.job_history ORDER BY "at"',
    "penstock.checkpoints": (
        "SELECT job, batch AS batch_id, 'completed' AS state, make_timestamp(started) AS started_at, "
        "make_timestamp(completed) AS completed_at, size_bytes FROM store.ledger "
        f"WHERE hash NOT IN ('{HELD}', '{WAITS}') ORDER BY job, batch"
    ),
    "penstock.late_rows": (
        'SELECT job, stream, partition, "offset", event_time, watermark, lateness, "row", batch_id, '
        f'{_NOWHERE} FROM store.late_rows ORDER BY job, batch_id, stream, partition, "offset"'
    ),
    "penstock.dead_letters": (
        'SELECT job, stream, partition, "offset", raw, reason, error, recorded_at, '
        f'{_NOWHERE} FROM store.dead_letters WHERE {NOT_RETRIED} ORDER BY job, batch_id, stream, partition, "offset"'
    ),
}


def stored_system_table(reader: duckdb.DuckDBPyConnection, name: str) -> pa.Table | None:
    """A system table as of the reader's snapshot, or None where it is not kept here."""
    table = find_system(name)
    if table is None:
        return None
    if table.name in _QUERIES:
        found = from_duckdb(fetched(reader, _QUERIES[table.name]))
        return typed(found, _columns(table))
    if table.name == "penstock.connector_offsets":
        return _made(table, _offsets(latest_entries(reader)))
    if table.name == "penstock.metrics":
        return _made(table, _metrics(latest_entries(reader)))
    return None


def _columns(table: SystemTable) -> tuple[tuple[str, SqlType], ...]:
    # Only columns of views can have no type yet.
    return tuple((column.name, column.type) for column in table.columns if column.type is not None)


def _offsets(entries: Mapping[str, LedgerEntry]) -> list[tuple[object, ...]]:
    return [
        (at.connector_id, at.partition, at.offset, at.timestamp_us, job, None, None, None, None)
        for job, entry in sorted(entries.items())
        for at in entry.offsets
    ]


def _metrics(entries: Mapping[str, LedgerEntry]) -> list[tuple[object, ...]]:
    return [
        (job, name, value, entry.completed_at_us)
        for job, entry in sorted(entries.items())
        for name, value in sorted(entry.counters.items())
    ]


def _made(table: SystemTable, rows: list[tuple[object, ...]]) -> pa.Table:
    import pyarrow as pa

    arrays = [
        pa.array([row[place] for row in rows], type=out_type(kind)) for place, (_, kind) in enumerate(_columns(table))
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in table.columns])
