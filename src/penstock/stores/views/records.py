"""What jobs leave behind besides views: late rows, dead letters, their facts and their history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from penstock.stores.duckdb_types import quoted, to_duckdb
from penstock.stores.views.database import one_row, run_with
from penstock.stores.views.model import JobTransition
from penstock.stores.views.view_table import BATCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from penstock.stores.views.model import Kept

_LATE: Final = ("stream", "partition", "offset", "event_time", "watermark", "lateness", "row", "batch_id")
_DEAD: Final = ("stream", "partition", "offset", "raw", "reason", "error", "recorded_at", "batch_id")
# What stands before the reason of a dead letter that was read again, with the number of the batch.
RETRIED: Final = "retried "
NOT_RETRIED: Final = f"NOT starts_with(reason, '{RETRIED}')"
# Everything that belongs to one job.
TABLES_OF_A_JOB: Final = ("ledger", "moves", "late_rows", "dead_letters", "jobs", "job_history")


def add_late(writer: duckdb.DuckDBPyConnection, job: str, batch: int, rows: pa.Table, now_us: int) -> None:
    """Keep the late rows of a batch, with the time at which they were."""
    import pyarrow as pa

    recorded = pa.array([now_us] * rows.num_rows, pa.int64()).cast(pa.timestamp("us"))
    _add(writer, "late_rows", (*_LATE, "recorded_at"), job, batch, rows.append_column("recorded_at", recorded))


def add_dead(writer: duckdb.DuckDBPyConnection, job: str, batch: int, rows: pa.Table) -> None:
    """Keep the dead letters of a batch."""
    _add(writer, "dead_letters", _DEAD, job, batch, rows)


def mark_retried(
    writer: duckdb.DuckDBPyConnection, job: str, batch: int, places: Sequence[tuple[str, int, int]]
) -> None:
    """Dead letters that a batch has read are none any more; they are kept, so that going back before it can be told."""
    import pyarrow as pa

    if not places:
        return
    streams, partitions, offsets = zip(*places, strict=True)
    table = pa.table({"s": list(streams), "p": pa.array(partitions, pa.int32()), "o": pa.array(offsets, pa.int64())})
    text = (
        f"UPDATE store.dead_letters SET reason = '{RETRIED}{batch} ' || reason FROM {quoted(BATCH)} AS b "
        f'WHERE job = {_literal(job)} AND stream = b.s AND partition = b.p AND "offset" = b.o AND {NOT_RETRIED}'
    )
    run_with(writer, text, BATCH, table)


def undo(writer: duckdb.DuckDBPyConnection, job: str, batch: int) -> None:
    """Take back what a job has left after a batch; what was read again since is a dead letter as before."""
    for name, column in (("ledger", "batch"), ("late_rows", "batch_id"), ("dead_letters", "batch_id")):
        writer.execute(f"DELETE FROM store.{name} WHERE job = ? AND {column} > ?", [job, batch])
    writer.execute("DELETE FROM store.moves WHERE job = ? AND batch >= ?", [job, batch])
    writer.execute(
        "UPDATE store.dead_letters SET reason = substr(reason, length(split_part(reason, ' ', 1)) + 2 + "
        "length(split_part(reason, ' ', 2)) + 1) "
        f"WHERE job = ? AND NOT {NOT_RETRIED} AND CAST(split_part(reason, ' ', 2) AS BIGINT) > ?",
        [job, batch],
    )


def dead_places(reader: duckdb.DuckDBPyConnection, job: str) -> list[tuple[str, int, int]]:
    """Stream, partition and offset of the dead letters of a job, in this order."""
    text = (
        'SELECT DISTINCT stream, partition, "offset" FROM store.dead_letters '
        f"WHERE job = ? AND {NOT_RETRIED} ORDER BY ALL"
    )
    return [(row[0], row[1], row[2]) for row in reader.execute(text, [job]).fetchall()]


def last_rows(reader: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many rows the last batch of each job had that had any, of the batches that are kept."""
    text = "SELECT job, max_by(input_rows, batch) FROM store.ledger WHERE input_rows > 0 GROUP BY job"
    return dict(reader.execute(text).fetchall())


def _add(
    writer: duckdb.DuckDBPyConnection, table: str, columns: tuple[str, ...], job: str, batch: int, rows: pa.Table
) -> None:
    if not rows.num_rows:
        return
    given = [name for name in columns if name in rows.column_names and name != "batch_id"]
    names = ", ".join(quoted(name) for name in given)
    text = (
        f"INSERT INTO store.{table} (job, batch_id, {names}) "
        f"SELECT {_literal(job)}, {batch}, {names} FROM {quoted(BATCH)}"
    )
    run_with(writer, text, BATCH, to_duckdb(rows.select(given)))


def late_places(reader: duckdb.DuckDBPyConnection, job: str, since: int) -> set[tuple[str, int, int]]:
    """Stream, partition and offset of the late rows of a job from an offset on."""
    text = 'SELECT stream, partition, "offset" FROM store.late_rows WHERE job = ? AND "offset" >= ?'
    return {(row[0], row[1], row[2]) for row in reader.execute(text, [job, since]).fetchall()}


def trim(writer: duckdb.DuckDBPyConnection, kept: Kept, now_us: int) -> None:
    """Let go of what is older than it is kept; the last step of a job stays. What was counted stays counted."""
    for table, length_us in (("late_rows", kept.late_rows_us), ("dead_letters", kept.dead_letters_us)):
        if length_us is not None:
            writer.execute(
                f"DELETE FROM store.{table} WHERE recorded_at < make_timestamp(CAST(? AS BIGINT))", [now_us - length_us]
            )
    if kept.job_history_us is not None:
        writer.execute(
            'DELETE FROM store.job_history WHERE "at" < make_timestamp(CAST(? AS BIGINT)) '
            'AND (job, "at") NOT IN (SELECT job, max("at") FROM store.job_history GROUP BY job)',
            [now_us - kept.job_history_us],
        )


def write_facts(writer: duckdb.DuckDBPyConnection, job: str, facts: Mapping[str, Any]) -> None:
    """Keep the facts of a job in the place of the ones before."""
    writer.execute("DELETE FROM store.jobs WHERE job = ?", [job])
    writer.execute("INSERT INTO store.jobs VALUES (?, ?)", [job, json.dumps(dict(facts))])


def read_facts(reader: duckdb.DuckDBPyConnection, job: str) -> dict[str, Any]:
    """The facts of a job; none where nothing was kept."""
    row = one_row(reader, "SELECT facts FROM store.jobs WHERE job = ?", [job])
    return {} if row is None else dict(json.loads(row[0]))


def known_jobs(reader: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """The jobs that have facts, by name."""
    return tuple(row[0] for row in reader.execute("SELECT job FROM store.jobs ORDER BY job").fetchall())


def write_transition(writer: duckdb.DuckDBPyConnection, step: JobTransition) -> None:
    """Add a row to the history of a job."""
    writer.execute(
        "INSERT INTO store.job_history VALUES (?, make_timestamp(?), ?, ?, ?)",
        [step.job, step.at_us, step.from_state, step.to_state, step.reason],
    )


def forget(writer: duckdb.DuckDBPyConnection, job: str) -> None:
    """Remove everything that belongs to a job; views have names and lives of their own."""
    for table in TABLES_OF_A_JOB:
        writer.execute(f"DELETE FROM store.{table} WHERE job = ?", [job])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
