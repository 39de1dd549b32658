"""The ledger: one row a committed batch, with what the job had after it.

A batch that is in the ledger is not applied again. The row of a job's last batch is also held in memory, so that a
commit asks the database nothing; the store's lock guards both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import RuntimeFailure
from penstock.stores.views.model import BatchCommit, LedgerEntry, PartitionOffset

if TYPE_CHECKING:
    import duckdb

# In the place of the hash of offsets: a view that is built on others stands still, by itself or because of one below.
HELD: Final = "held"
WAITS: Final = "waits"


def held_mark(view: str) -> str:
    """In the place of the job, where a view that has batches of its own stands still; no user can give this name."""
    return f"__held {view}"


_COLUMNS: Final = 'job, batch, hash, wm, tracker, "offsets", counters, input_rows, size_bytes, started, completed'


class Ledger:
    """The last batch of every job."""

    def __init__(self) -> None:
        self._latest: dict[str, LedgerEntry] = {}
        # Trackers of jobs that have no batch yet.
        self._early: dict[str, tuple[str, int | None]] = {}

    def load(self, reader: duckdb.DuckDBPyConnection, job: str | None = None) -> None:
        """Read the last row of every job, or of one, with the moves of its tracker after it."""
        if job is None:
            self._latest.clear()
            self._early.clear()
        else:
            self.forget(job)
        self._latest |= latest_entries(reader, job)
        for name, watermark_us, tracker in reader.execute(
            "SELECT job, wm, tracker FROM store.moves WHERE batch = -1"
        ).fetchall():
            if name not in self._latest:
                self._early[name] = (tracker, watermark_us)

    def get(self, job: str) -> LedgerEntry | None:
        return self._latest.get(job)

    def entries(self) -> tuple[LedgerEntry, ...]:
        return tuple(self._latest.values())

    def tracker(self, job: str) -> tuple[str, int | None] | None:
        """The tracker and watermark of a job, wherever they were kept last."""
        latest = self._latest.get(job)
        return self._early.get(job) if latest is None else (latest.tracker, latest.watermark_us)

    def move(self, job: str, tracker: str, watermark_us: int | None) -> None:
        """The tracker has moved without a batch."""
        latest = self._latest.get(job)
        if latest is None:
            self._early[job] = (tracker, watermark_us)
        else:
            self._latest[job] = replace(latest, tracker=tracker, watermark_us=watermark_us)

    def remember(self, entry: LedgerEntry) -> None:
        self._latest[entry.job] = entry

    def check(self, batch: BatchCommit) -> bool:
        """Whether the batch is in the ledger already; CHECKPOINT_DAMAGED where it does not follow the last one."""
        latest = self._latest.get(batch.job)
        expected = 0 if latest is None else latest.batch_id + 1
        if latest is not None and batch.batch_id == latest.batch_id:
            if batch.offsets_hash == latest.offsets_hash:
                return True
            raise _damaged(batch.job, f"batch {batch.batch_id} covers other offsets than the one that was committed")
        if batch.batch_id != expected:
            raise _damaged(batch.job, f"batch {batch.batch_id} came where batch {expected} was due")
        return False

    def next(self, batch: BatchCommit, now_us: int) -> LedgerEntry:
        """The row of a batch: offsets and counters go on from the last one."""
        latest = self._latest.get(batch.job)
        offsets = {} if latest is None else {(at.connector_id, at.partition): at for at in latest.offsets}
        offsets |= {(at.connector_id, at.partition): at for at in batch.offsets}
        counters = {} if latest is None else dict(latest.counters)
        for name, value in batch.counters.items():
            counters[name] = counters.get(name, 0.0) + value
        size = batch.size_bytes
        if size is None:
            size = 0 if batch.rows is None else batch.rows.nbytes
        assert batch.batch_id is not None
        return LedgerEntry(
            job=batch.job,
            batch_id=batch.batch_id,
            offsets_hash=batch.offsets_hash,
            watermark_us=batch.watermark_us,
            tracker=batch.tracker,
            offsets=tuple(offsets.values()),
            counters=counters,
            input_rows=batch.input_rows,
            size_bytes=size,
            started_at_us=now_us if batch.started_at_us is None else batch.started_at_us,
            completed_at_us=now_us,
        )

    def forget(self, job: str) -> None:
        self._latest.pop(job, None)
        self._early.pop(job, None)


def write_entry(writer: duckdb.DuckDBPyConnection, entry: LedgerEntry, view: int | None) -> None:
    """Add a row to the ledger."""
    offsets = [[at.connector_id, at.partition, at.offset, at.timestamp_us] for at in entry.offsets]
    writer.execute(
        "INSERT INTO store.ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            entry.job,
            entry.batch_id,
            entry.offsets_hash,
            view,
            entry.watermark_us,
            entry.tracker,
            json.dumps(offsets, separators=(",", ":")),
            json.dumps(dict(entry.counters), separators=(",", ":")),
            entry.input_rows,
            entry.size_bytes,
            entry.started_at_us,
            entry.completed_at_us,
        ],
    )


def latest_entries(reader: duckdb.DuckDBPyConnection, job: str | None = None) -> dict[str, LedgerEntry]:
    """The last row of every job, or of one, with what moved after it."""
    only, given = ("", []) if job is None else (" WHERE job = ?", [job])
    rows = reader.execute(
        f"SELECT {_COLUMNS} FROM store.ledger{only} "
        "QUALIFY row_number() OVER (PARTITION BY job ORDER BY batch DESC) = 1",
        given,
    ).fetchall()
    entries = {row[0]: _entry(row) for row in rows}
    for name, batch, watermark_us, tracker in reader.execute(
        f"SELECT job, batch, wm, tracker FROM store.moves{only}", given
    ).fetchall():
        entry = entries.get(name)
        if entry is not None and entry.batch_id == batch:
            entries[name] = replace(entry, watermark_us=watermark_us, tracker=tracker)
    return entries


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    job, batch, offsets_hash, watermark_us, tracker, offsets, counters, input_rows, size, started, completed = row
    added: Mapping[str, float] = json.loads(counters)
    places = tuple(PartitionOffset(*place) for place in json.loads(offsets))
    return LedgerEntry(
        job, batch, offsets_hash, watermark_us, tracker, places, added, input_rows, size, started, completed
    )


def _damaged(job: str, reason: str) -> RuntimeFailure:
    return RuntimeFailure(
        "CHECKPOINT_DAMAGED",
        f"job {job}: {reason}",
        hint="its checkpoint and its view do not belong together; restore both, or drop and create the view again",
    )
