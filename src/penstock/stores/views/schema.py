"""The tables of the view store that are not views.

They stand in the schema `store`, out of reach of the names in a query. None has an index: look-ups would get no faster,
and commits and checkpoints several times slower. What a job had after a batch (tracker, offsets, counters) is kept with
the batch's ledger row as JSON, so that going back to a batch is removing the rows after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import CatalogError
from penstock.stores.private_files import RESTORE
from penstock.stores.views.database import one_row

if TYPE_CHECKING:
    from penstock.stores.views.database import ViewDatabase, one_row

LAYOUT: Final = 2

_TABLES: Final = """
CREATE TABLE store.meta (layout INTEGER);
-- floor: the oldest batch that a view with keys can still go back to
CREATE TABLE store.views (id INTEGER, name VARCHAR, spec VARCHAR, first_seq BIGINT, floor BIGINT);
CREATE TABLE store.ledger (
    job VARCHAR, batch BIGINT, hash VARCHAR, view INTEGER, wm BIGINT, tracker VARCHAR, "offsets" VARCHAR,
    counters VARCHAR, input_rows BIGINT, size_bytes BIGINT, started BIGINT, completed BIGINT
);
-- where the tracker moved after a batch without another one
CREATE TABLE store.moves (job VARCHAR, batch BIGINT, wm BIGINT, tracker VARCHAR);
CREATE TABLE store.late_rows (
    job VARCHAR, stream VARCHAR, partition INTEGER, "offset" BIGINT, event_time TIMESTAMP, watermark TIMESTAMP,
    lateness INTERVAL, "row" VARCHAR, batch_id BIGINT, recorded_at TIMESTAMP
);
CREATE TABLE store.dead_letters (
    job VARCHAR, stream VARCHAR, partition INTEGER, "offset" BIGINT, raw BLOB, reason VARCHAR, error VARCHAR,
    recorded_at TIMESTAMP, batch_id BIGINT
);
CREATE TABLE store.jobs (job VARCHAR, facts VARCHAR);
CREATE TABLE store.job_history (job VARCHAR, "at" TIMESTAMP, from_state VARCHAR, to_state VARCHAR, reason VARCHAR);
"""


# What a layout lacks that the next one has. Late rows of layout 1 do not tell when they came: they count from now on.
_STEPS: Final = {
    1: """
ALTER TABLE store.late_rows ADD COLUMN recorded_at TIMESTAMP;
UPDATE store.late_rows SET recorded_at = make_timestamp({now_us});
""",
}


def prepare(database: ViewDatabase, now_us: int) -> None:
    """Make the tables of a new database, and bring an older one up to date.

    One that is not ours or that a newer version has written is refused.
    """
    with database.transaction() as writer:
        found = {
            (schema, table)
            for schema, table in writer.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
            ).fetchall()
        }
        if not found:
            writer.execute("CREATE SCHEMA IF NOT EXISTS store")
            writer.execute(_TABLES)
            writer.execute("INSERT INTO store.meta VALUES (?)", [LAYOUT])
            return
        if ("store", "meta") not in found:
            raise CatalogError(
                "STATE_PATH_UNUSABLE",
                "views.duckdb is a database of another program",
                hint="choose another state_path, or move the file away",
            )
        row = one_row(writer, "SELECT max(layout) FROM store.meta")
        layout = None if row is None else row[0]
        if layout is None:
            raise CatalogError(
                "STATE_PATH_UNUSABLE", "views.duckdb is damaged: it does not say which layout it has", hint=RESTORE
            )
        if layout > LAYOUT:
            raise CatalogError(
                "STATE_PATH_UNUSABLE",
                f"views.duckdb has layout {layout}; this version knows layouts up to {LAYOUT}",
                hint="install the version that wrote it or a newer one, or choose another state_path",
            )
        for step in range(layout, LAYOUT):
            writer.execute(_STEPS[step].format(now_us=now_us))
            writer.execute("UPDATE store.meta SET layout = ?", [step + 1])
