"""How fast rows come out of a connector in Python: through a job that counts them, beside the same rows from a topic.

python -m benchmarks.custom_connector [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

import penstock

_SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("text", pa.string())])


class Counting(penstock.Connector):
    """Numbers up to a number; the rows themselves cost next to nothing."""

    bounded = True
    schema = _SCHEMA

    class options(BaseModel):  # noqa: N801
        """What the WITH clause takes."""

        total: int

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        """Begin at 0."""
        self.total, self.at = config["total"], 0

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        """The next numbers."""
        first, self.at = self.at, min(self.at + max_rows, self.total)
        return batch_of(first, self.at)

    def get_current_offset(self) -> int:
        """The next number."""
        return self.at

    def seek_to_offset(self, offset: int) -> None:
        """Go on from a number."""
        self.at = offset

    def has_more(self) -> bool:
        """Whether numbers are left."""
        return bool(self.at < self.total)


def batch_of(first: int, end: int) -> pa.RecordBatch:
    """Rows with these ids."""
    ids = pa.arange(first, end)
    keys = pc.subtract(ids, pc.multiply(pc.divide(ids, 100), 100))
    return pa.record_batch([ids, keys, ids.cast(pa.string())], schema=_SCHEMA)


def counted(db: penstock.Database, view: str, source: str, rows: int) -> float:
    """Rows a second, from the start of the job to the last commit."""
    began = time.perf_counter()
    db.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT k, COUNT(*) AS n, MAX(id) AS top FROM {source} GROUP BY k")
    db.settle(600)
    seconds = time.perf_counter() - began
    assert db.sql(f"SELECT SUM(n) FROM {view}").rows() == [(rows,)]
    return rows / seconds


def main(rows: int) -> None:
    """Print what was measured."""
    penstock.register_connector("counting", Counting)
    with tempfile.TemporaryDirectory() as folder, penstock.connect(Path(folder) / "state") as db:
        db.execute(f"""
            CREATE TABLE warm (id BIGINT, k BIGINT, text STRING) WITH (connector = 'counting', total = 1000);
            CREATE TABLE mine (id BIGINT, k BIGINT, text STRING) WITH (connector = 'counting', total = {rows});
            CREATE STREAM topic (id BIGINT, k BIGINT, text STRING) WITH (connector = 'topic', fsync = 'never');
        """)
        for first in range(0, rows, 100_000):
            db.append("topic", batch_of(first, min(first + 100_000, rows)))
        counted(db, "warming", "warm", 1000)
        print(f"connector {counted(db, 'from_connector', 'mine', rows):>12,.0f} rows/s")
        print(f"topic     {counted(db, 'from_topic', 'topic', rows):>12,.0f} rows/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
