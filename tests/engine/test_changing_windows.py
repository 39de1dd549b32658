"""Windows with EMIT CHANGES: after every batch what Spark's own state gives, in the end what EMIT FINAL gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

import penstock
from tests.engine.answers import check_change_log, job, ms

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

SEED: Final = 23
PATIENCE: Final = 600.0  # seconds, of a machine that does other things too
STREAM: Final = """
CREATE STREAM s (k STRING, g INT, v BIGINT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
WITH (partitions = 2, idle_timeout = '1 hour')
"""
HOP: Final = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND, INTERVAL '1' SECOND)"
CUMULATE: Final = "CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)"
TUMBLE: Final = "TUMBLE(ts, INTERVAL '10' SECOND)"
WINDOW: Final = "window_start, window_end"
QUERIES: Final = {
    # what merges, with NULL keys, FILTER, HAVING and expressions over aggregates
    "hop": f"""
        SELECT k, {WINDOW}, COUNT(*) AS n, COUNT(v) AS nv, SUM(v) * 2 + 1 AS total, MIN(x) AS low, AVG(v) AS mean,
               COUNT(*) FILTER (WHERE v > 0) AS up
        FROM {HOP} WHERE g <> 3 GROUP BY k, {WINDOW} HAVING COUNT(*) <> 2
    """,
    "steps": f"SELECT {WINDOW}, COUNT(*) AS n, MAX(v) AS high FROM {CUMULATE} GROUP BY {WINDOW}",
    "visits": """
        SELECT k, SESSION_START(ts, INTERVAL '2' SECOND) AS window_start, SESSION_END(ts, INTERVAL '2' SECOND) AS window_end,
               COUNT(*) AS n, SUM(v) AS total, MIN(x) AS low
        FROM s GROUP BY k, SESSION(ts, INTERVAL '2' SECOND) HAVING COUNT(*) <> 2
    """,
    # what Spark keeps: sets of values, several groupings at once
    "sets": f"""
        SELECT k, g, TUMBLE_START(ts, INTERVAL '10' SECOND) AS window_start, TUMBLE_END(ts, INTERVAL '10' SECOND) AS window_end,
               COUNT(DISTINCT v) AS kinds, COUNT(*) AS n
        FROM s GROUP BY {TUMBLE}, ROLLUP (k, g)
    """,
}


def chunk(chance: random.Random, newest: float) -> list[dict[str, Any]]:
    """Rows around a time: most in order, some behind the watermark for some of their windows or for all."""
    found = []
    for _ in range(25):
        back = chance.choice([0, 0, 0, 1, 2, 5, 8, 16, 20, 30])
        second = max(0.0, newest - back - chance.random())
        found.append(
            {
                "k": chance.choice([None, "a", "b"]),
                "g": chance.choice([1, 2, 3]),
                "v": chance.choice([None, *range(-3, 12)]),
                "x": chance.choice([None, 0.5, -1.25, 8.0]),
                "ts": ms(second),
            }
        )
    return found


def rows(db: penstock.Database, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(db.sql(f"SELECT * FROM {view}").rows())


def late(db: penstock.Database, view: str) -> Counter[tuple[Any, ...]]:
    asked = f"SELECT stream, partition, offset, event_time, watermark, row FROM penstock.late_rows WHERE job = '{view}'"
    return Counter(db.sql(asked).rows())


def check(db: penstock.Database) -> None:
    """The same rows in time and the same late ones; what EMIT FINAL has given is in the view as it is."""
    assert rows(db, "hop") == rows(db, "hop_spark")
    for name in QUERIES:
        done = rows(db, f"{name}_final")
        assert not done - rows(db, name), (name, done - rows(db, name))
        assert late(db, name) == late(db, f"{name}_final"), name
        told = db.metrics()
        for counter in ("late_rows", "partly_late_rows", "input_rows"):
            assert told[name].get(counter, 0) == told[f"{name}_final"].get(counter, 0), (name, counter)
        assert job(db, name).watermark == job(db, f"{name}_final").watermark
    assert late(db, "hop_spark") == late(db, "hop")


def test_each_change_until_windows_close(opened: Callable[..., penstock.Database]) -> None:
    """D4, D6, D7, E12, E21, F5, G3, G5, G6, G7, G15, G18, H1, DEC15: views of windows with EMIT CHANGES over out-of-order
    rows, with late ones, a restart in the middle, ADVANCE WATERMARK and a drain."""
    chance = random.Random(SEED)  # noqa: S311 - the same rows each time
    db = opened()
    db.execute(STREAM)
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query} EMIT CHANGES")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_final AS {query} EMIT FINAL")
    db.execute(f"CREATE MATERIALIZED VIEW hop_spark WITH (state = 'spark') AS {QUERIES['hop']} EMIT CHANGES")
    newest = 4.0
    for step in (0, 14, 9):
        newest += step
        for partition in range(2):  # settled after each, so that all jobs have the same batches
            db.append("s", chunk(chance, newest - partition), partition=partition)
            db.settle(PATIENCE)
        check(db)
        assert all(rows(db, name) for name in QUERIES), "open windows are shown"
    assert db.metrics()["hop"]["late_rows"] > 0
    assert db.metrics()["hop"]["partly_late_rows"] > 0
    assert db.metrics()["visits"]["state_rows"] > 0
    kept = {name: rows(db, name) for name in QUERIES}
    db.close()

    db = opened()
    db.settle(PATIENCE)
    assert {name: rows(db, name) for name in QUERIES} == kept
    db.execute("ADVANCE WATERMARK FOR s TO TIMESTAMP '1970-01-01 00:00:28'")
    db.settle(PATIENCE)
    check(db)
    newest += 500
    for partition in range(2):
        db.append("s", chunk(chance, newest), partition=partition)
        db.settle(PATIENCE)
    check(db)
    for name in QUERIES:
        for view in (name, f"{name}_final"):
            db.drain(view, PATIENCE)
        check_change_log(db, name, ())
        assert rows(db, name) == rows(db, f"{name}_final"), name
    open_groups = "SELECT COUNT(*) FROM penstock.window_aggregates WHERE job = 'visits'"
    assert db.sql(open_groups).rows() == [(0,)]
