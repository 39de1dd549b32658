"""Several sides of a query from one reading of their stream, beside DuckDB (G13)."""

from __future__ import annotations

import random

import duckdb
import pytest

import penstock
from tests.engine.answers import at, ms, read
from tests.engine.beside_duckdb import hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STREAM = """
CREATE STREAM events (type INT, id BIGINT, code STRING) WITH (partitions = 2);
CREATE VIEW numbers AS SELECT id, CAST(code AS INT) AS n FROM events WHERE type = 1;
CREATE VIEW words AS SELECT id, CONCAT(code, '!') AS word FROM events WHERE type = 2;
CREATE VIEW large AS SELECT id, code FROM events WHERE id > 3;
"""
TABLES = """
CREATE TABLE events (type INT, id BIGINT, code TEXT);
CREATE VIEW numbers AS SELECT id, TRY_CAST(code AS INT) AS n FROM events WHERE type = 1;
CREATE VIEW words AS SELECT id, code || '!' AS word FROM events WHERE type = 2;
CREATE VIEW large AS SELECT id, code FROM events WHERE id > 3;
"""
QUERIES = {
    # A row is of one side: what only rows of this side can be cast to is computed for no other.
    "apart": "SELECT n.id, n.n, w.word FROM numbers AS n LEFT JOIN words AS w ON n.id = w.id",
    "joined": "SELECT n.id, n.n, w.word FROM numbers AS n JOIN words AS w ON n.id = w.id",
    # A row is of several.
    "both": "SELECT n.id, n.n, l.code FROM numbers AS n LEFT JOIN large AS l ON n.id = l.id",
    "three": (
        "SELECT e.type, e.id, COUNT(DISTINCT l.code) AS codes, COUNT(w.word) AS words FROM events AS e "
        "LEFT JOIN large AS l ON e.id = l.id LEFT JOIN words AS w ON w.id = e.id GROUP BY e.type, e.id"
    ),
    "without": "SELECT id FROM large EXCEPT SELECT id FROM words",
}


def test_the_answers_are_those_of_several_readings(db: penstock.Database) -> None:
    db.execute(STREAM)
    with duckdb.connect() as oracle:
        oracle.execute(TABLES)
        rnd = random.Random(5)  # noqa: S311

        def advance(opened: penstock.Database, _: int) -> None:
            for partition in range(2):
                rows = []
                for _ in range(12):
                    kind = rnd.choice([1, 1, 2, 3, None])
                    code = str(rnd.randrange(5)) if kind == 1 else rnd.choice(["a", "b", "", None])
                    rows.append((kind, rnd.choice([1, 2, 3, 4, 5, 6, None]), code))
                opened.append(
                    "events", [dict(zip(("type", "id", "code"), row, strict=True)) for row in rows], partition
                )
                oracle.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)

        hold_beside(db, oracle, QUERIES, advance)
    offsets = db.sql(
        "SELECT job, connector_id, SUM(offset + 1) FROM penstock.connector_offsets GROUP BY ALL ORDER BY 1"
    ).rows()
    assert offsets == [(name, "events", 72) for name in sorted(QUERIES)], "each job has read every row once"


WINDOWS = """
CREATE STREAM events (type INT, id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE VIEW first AS SELECT id, ts FROM events WHERE type = 1;
CREATE VIEW second AS SELECT id, ts FROM events WHERE type = 2;
CREATE MATERIALIZED VIEW met AS
SELECT o.id, o.window_start AS s, o.n, p.n AS others
FROM (SELECT id, window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE first, DESCRIPTOR(ts), INTERVAL '10' SECOND)
  GROUP BY id, window_start, window_end) AS o
LEFT JOIN (SELECT id, window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE second, DESCRIPTOR(ts), INTERVAL '10' SECOND)
  GROUP BY id, window_start, window_end) AS p
ON o.id = p.id AND o.window_start = p.window_start AND o.window_end = p.window_end;
"""


def test_windows_of_both_sides_close_together(db: penstock.Database) -> None:
    """A row is late where the windows of its side have closed; of kinds that nobody reads none is."""
    db.execute(WINDOWS)
    first = [(1, 1, 1), (1, 1, 4), (2, 1, 5), (1, 2, 6), (3, 1, 7), (2, 3, 8)]
    late = [(1, 1, 2), (2, 2, 3), (3, 3, 3), (2, 1, 9)]
    for rows in (first, [(1, 1, 11), (2, 1, 25)], late, [(2, 1, 19), (1, 9, 100)]):
        db.append("events", [{"type": kind, "id": key, "ts": ms(second)} for kind, key, second in rows])
        db.settle()
    assert read(db, "met") == [(1, at(0), 2, 1), (1, at(10), 1, None), (2, at(0), 1, None)]
    late_rows = db.sql("SELECT stream, event_time FROM penstock.late_rows").rows()
    assert sorted(late_rows) == [("events", at(second)) for second in (2, 3, 9, 19)]
    assert db.sql("SELECT DISTINCT connector_id FROM penstock.connector_offsets").rows() == [("events",)]
