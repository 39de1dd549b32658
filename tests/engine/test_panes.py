"""Hopping windows as panes in the view store: the rows, the late rows and the open windows that Spark's state gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

import penstock
from penstock.failpoints import enabled
from tests.engine.answers import at, check_change_log, job, ms

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SEED: Final = 11
STREAM: Final = """
CREATE STREAM s (k STRING, g INT, v BIGINT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
WITH (partitions = 2, idle_timeout = '1 hour')
"""
HOP: Final = "HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
SHIFTED: Final = "INTERVAL '4' SECOND, INTERVAL '10' SECOND, INTERVAL '1' SECOND"
QUERIES: Final = {
    # every aggregate that merges, with NULL keys; FILTER, HAVING and expressions over aggregates
    "many": f"""
        SELECT k, {HOP.replace("HOP", "HOP_START", 1)} AS s, COUNT(*) AS n, COUNT(v) AS nv, SUM(v) * 2 + 1 AS total,
               MIN(x) AS low, MAX(k) AS high, AVG(v) AS mean, COUNT(*) FILTER (WHERE v > 0) AS up, bool_or(v > 9) AS big
        FROM s WHERE g <> 3 GROUP BY k, {HOP} HAVING COUNT(*) <> 2
    """,
    # a size that is no multiple of the slide, an offset, no keys, and a condition above the aggregate
    "shifted": f"""
        SELECT * FROM (
            SELECT window_start, window_end, window_time, SUM(v) AS total
            FROM HOP(TABLE s, DESCRIPTOR(ts), {SHIFTED}) GROUP BY window_start, window_end, window_time
        ) WHERE total > 0 OR total IS NULL
    """,
}


def chunk(chance: random.Random, newest: float) -> list[dict[str, Any]]:
    """Rows around a time: most in order, some behind the watermark for some of their windows or for all."""
    found = []
    for _ in range(30):
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


def check_same(db: penstock.Database) -> None:
    """Every view of panes is the view beside it that Spark keeps, and what came too late for it as well."""
    late = "SELECT stream, partition, offset, event_time, watermark, row FROM penstock.late_rows WHERE job = '{}'"
    live = "SELECT key, window_start, count, sum, min, max FROM penstock.window_aggregates WHERE job = '{}'"
    for name in QUERIES:
        have, want = (Counter(db.sql(f"SELECT * FROM {view}").rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"{name}: missing {want - have}, not expected {have - want}"
        have, want = (Counter(db.sql(late.format(view)).rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"{name}: late rows missing {want - have}, not expected {have - want}"
        told = db.metrics()
        for counter in ("late_rows", "partly_late_rows", "input_rows", "output_rows"):
            assert told[name].get(counter, 0) == told[f"{name}_spark"].get(counter, 0), (name, counter)
        assert job(db, name).watermark == job(db, f"{name}_spark").watermark
        have, want = (Counter(db.sql(live.format(view)).rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"{name}: open windows missing {want - have}, not expected {have - want}"


@pytest.mark.slow
def test_panes_are_what_spark_keeps(opened: Callable[..., penstock.Database]) -> None:
    """D4, D19, F3, F5, E12, E20, E21, H1: the same rows, late rows and open windows with panes and with Spark's
    state, for rows that are late in part, in a gap, after a restart, after ADVANCE WATERMARK, and when all is drained."""
    chance = random.Random(SEED)  # noqa: S311 - the same rows each time
    db = opened()
    db.execute(STREAM)
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_spark WITH (state = 'spark') AS {query}")
    newest = 4.0  # some windows begin before 1970
    for step in (0, 14, 9):
        newest += step
        for partition in range(2):  # settled after each, so that all jobs have the same batches
            db.append("s", chunk(chance, newest - partition), partition=partition)
            db.settle(120)
    check_same(db)
    assert db.metrics()["many"]["late_rows"] > 0
    assert db.metrics()["many"]["partly_late_rows"] > 0
    assert db.metrics()["many"]["output_rows"] > 0
    assert db.metrics()["many"]["state_rows"] > 0
    kept = {name: db.sql(f"SELECT * FROM {name}").rows() for name in QUERIES}
    db.close()

    db = opened()
    db.settle(120)
    assert {name: db.sql(f"SELECT * FROM {name}").rows() for name in QUERIES} == kept
    open_before = db.sql("SELECT COUNT(*) FROM penstock.window_aggregates WHERE job = 'shifted'").rows()[0][0]
    assert open_before > 0
    db.execute("ADVANCE WATERMARK FOR s TO TIMESTAMP '1970-01-01 00:00:28'")
    db.settle(120)
    check_same(db)
    assert db.sql("SELECT MAX(window_end) FROM shifted").rows() == [(at(27),)], "it closed without a row"
    newest += 500
    for partition in range(2):
        db.append("s", chunk(chance, newest), partition=partition)
        db.settle(120)
    check_same(db)
    for name in QUERIES:
        for view in (name, f"{name}_spark"):
            db.drain(view, 120)
            check_change_log(db, view)
    check_same(db)
    assert db.sql("SELECT COUNT(*) FROM penstock.window_aggregates").rows() == [(0,)]


@pytest.mark.slow
def test_a_sink_is_given_what_closes(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """D4, N5, J7: a topic and files get each row of a window that the view store closes once, also where the job breaks
    off behind the sink, and after a restart; beside them a sink for which Spark keeps the windows."""
    chance = random.Random(SEED)  # noqa: S311 - the same rows each time
    written = tmp_path / "written"

    def check(db: penstock.Database) -> int:
        want = Counter(db.sql("SELECT * FROM kept").rows())
        for name in ("closed_rows", "spark_rows"):
            have = Counter(db.sql(f"SELECT * FROM {name}").rows())
            assert have == want, f"{name}: missing {want - have}, not expected {have - want}"
        with duckdb.connect() as reader:
            files = f"SELECT k, CAST(s AS TIMESTAMPTZ), n, total, mean FROM read_json('{written}/*.json')"
            have = Counter(reader.execute(files).fetchall()) if list(written.glob("*.json")) else Counter()
        assert have == want, f"files: missing {want - have}, not expected {have - want}"
        return sum(want.values())

    db = opened()
    db.execute(STREAM)
    columns = "k STRING, s TIMESTAMP, n BIGINT, total BIGINT, mean DOUBLE"
    query = (
        f"SELECT k, {HOP.replace('HOP', 'HOP_START', 1)} AS s, COUNT(*) AS n, SUM(v) AS total, AVG(v) AS mean "
        f"FROM s GROUP BY k, {HOP}"
    )
    for name in ("closed", "spark"):
        db.execute(f"CREATE STREAM {name} ({columns}) WITH (connector = 'topic', partitions = 2)")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_rows AS SELECT * FROM {name}")
    db.execute(f"CREATE MATERIALIZED VIEW kept AS {query}")
    db.execute(f"INSERT INTO closed {query}; INSERT INTO spark WITH (state = 'spark') {query}")
    db.execute(f"CREATE SINK files WITH (connector = 'file', path = '{written}', format = 'json') AS {query}")
    assert "panes" in str(db.sql(f"EXPLAIN INSERT INTO closed {query}").rows())
    for partition in range(2):
        db.append("s", chunk(chance, 24), partition=partition)
    db.settle(120)
    shown = check(db)
    assert shown > 0
    with enabled("sink.after_write", "error@1"):
        for partition in range(2):
            db.append("s", chunk(chance, 40), partition=partition)
        db.settle(120)
    assert sum(each.restarts for each in db.jobs()) == 1
    assert check(db) > shown
    db.close()

    db = opened()
    for partition in range(2):
        db.append("s", chunk(chance, 61), partition=partition)
    db.settle(120)
    assert check(db) > shown
    assert db.metrics()["insert_closed"]["output_rows"] == db.metrics()["kept"]["output_rows"]
