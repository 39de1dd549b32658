"""A connector of your own: the rows of an SQLite table, followed as they are added.

It is four methods and a schema. The database is closed and opened again in between, and each row counts once.

    python examples/custom_connector.py

Prints:
Oslo, hour 0: 4.0 °C
Rome, hour 0: 11.0 °C
Oslo, hour 1: 6.5 °C
Rome, hour 1: 14.0 °C
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

import penstock


class Readings(penstock.Connector):
    """The rows of an SQLite table, in the order of their ids."""

    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("celsius", pa.float64()), ("at", pa.int64())])

    class options(BaseModel):  # noqa: N801
        """What the WITH clause takes."""

        path: str

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        self.database = sqlite3.connect(f"file:{config['path']}?mode=ro", uri=True)
        self.last_id = 0

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        query = "SELECT id, city, celsius, at FROM readings WHERE id > ? ORDER BY id LIMIT ?"
        rows = self.database.execute(query, (self.last_id, max_rows)).fetchall()
        self.last_id = rows[-1][0] if rows else self.last_id
        columns = list(zip(*rows, strict=True)) or [()] * 4
        return pa.record_batch(columns, schema=self.schema)

    def get_current_offset(self) -> int:
        return self.last_id

    def seek_to_offset(self, offset: int) -> None:
        self.last_id = offset


SCRIPT = """
CREATE STREAM readings (id BIGINT, city STRING, celsius DOUBLE, at TIMESTAMP, WATERMARK FOR at AS at)
WITH (connector = 'sqlite', path = '{path}');
CREATE MATERIALIZED VIEW hours AS
SELECT city, TUMBLE_START(at, INTERVAL '1' HOUR) AS hour, MAX(celsius) AS warmest
FROM readings GROUP BY city, TUMBLE(at, INTERVAL '1' HOUR);
"""


def measure(path: Path, *rows: tuple[str, float, int]) -> None:
    """Add rows to the table; times are minutes since 1970."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE IF NOT EXISTS readings (id INTEGER PRIMARY KEY, city, celsius, at)")
        database.executemany(
            "INSERT INTO readings (city, celsius, at) VALUES (?, ?, ?)",
            [(city, celsius, minute * 60_000) for city, celsius, minute in rows],
        )


def warmest(db: penstock.Database) -> list[Any]:
    """What the view holds, as city, hour of the day and temperature."""
    db.settle()
    rows = db.sql("SELECT city, hour, warmest FROM hours ORDER BY hour, city").rows()
    return [(city, hour.hour, celsius) for city, hour, celsius in rows]


def main() -> None:
    """Follow the table over a restart of the database: each row is counted once."""
    penstock.register_connector("sqlite", Readings)
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder) / "readings.db", Path(folder) / "state"
        measure(path, ("Oslo", 3.5, 10), ("Rome", 11.0, 20), ("Oslo", 4.0, 50), ("Rome", 12.5, 70))
        with penstock.connect(state) as db:
            db.execute(SCRIPT.format(path=path))
            assert warmest(db) == [("Oslo", 0, 4.0), ("Rome", 0, 11.0)]
        measure(path, ("Oslo", 6.5, 90), ("Rome", 14.0, 110), ("Oslo", 1.0, 130))
        with penstock.connect(state) as db:
            found = warmest(db)
            assert found == [("Oslo", 0, 4.0), ("Rome", 0, 11.0), ("Oslo", 1, 6.5), ("Rome", 1, 14.0)]
            for city, hour, celsius in found:
                print(f"{city}, hour {hour}: {celsius} °C")


if __name__ == "__main__":
    main()
