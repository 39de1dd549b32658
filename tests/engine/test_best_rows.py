"""Windows joined with their own largest value, answered in one pass: the rows and late rows of the join that Spark makes,
and what DuckDB answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

import penstock
from tests.engine.answers import check_change_log, job, ms

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SEED: Final = 5
STREAM: Final = """
CREATE STREAM s (id BIGINT, k STRING, g INT, v BIGINT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
WITH (partitions = 2, idle_timeout = '1 hour')
"""
TUMBLE: Final = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
HOP: Final = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)"
SAME: Final = "l.window_start = m.window_start AND l.window_end = m.window_end"
QUERIES: Final = {
    # rows with the largest value, ties among them; the value is read from the other side too
    "rows": f"""
        SELECT l.k, l.v, m.best, m.window_end AS e FROM {TUMBLE} AS l
        JOIN (SELECT window_start, window_end, MAX(v) AS best FROM {TUMBLE} GROUP BY window_start, window_end) AS m
        ON {SAME} AND l.v = m.best
    """,
    # the smallest of each key, in overlapping windows; NULL keys equal nothing; a condition for what is shown
    "keyed": f"""
        SELECT l.window_start AS s, l.id, upper(l.k) AS k FROM {HOP} AS l
        JOIN (SELECT window_start, window_end, k, MIN(x) AS best FROM {HOP} GROUP BY window_start, window_end, k) AS m
        ON {SAME} AND l.k = m.k AND m.best >= l.x WHERE l.g <> 2
    """,
    # groups with the most rows
    "groups": f"""
        WITH counted AS (
            SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS total FROM {HOP} WHERE g <> 3
            GROUP BY k, window_start, window_end HAVING COUNT(*) <> 7
        )
        SELECT l.window_end AS e, l.k, l.n, l.total FROM counted AS l
        JOIN (SELECT window_start, window_end, MAX(n) AS most FROM counted GROUP BY window_start, window_end) AS m
        ON {SAME} AND l.n >= m.most
    """,
}
# What the same views are in DuckDB over `t`, for windows that begin at `ws` microseconds.
WINDOWS: Final = (
    "(SELECT t.*, ts // {0} * {0} - back * {0} AS ws FROM t, range({1}) AS hops(back) WHERE ws + 10000000 > ts)"
)
TUMBLED: Final = WINDOWS.format(10_000_000, 1)
HOPPED: Final = WINDOWS.format(2_000_000, 5)
ANSWERS: Final = {
    "rows": f"""
        SELECT k, v, v, make_timestamp(ws + 10000000)
        FROM {TUMBLED} QUALIFY v = max(v) OVER (PARTITION BY ws)
    """,
    "keyed": f"""
        SELECT make_timestamp(ws), id, upper(k) FROM (
            SELECT * FROM {HOPPED} WHERE k IS NOT NULL QUALIFY x = min(x) OVER (PARTITION BY ws, k)
        ) WHERE g <> 2
    """,
    "groups": f"""
        SELECT make_timestamp(ws + 10000000), k, n, total::BIGINT FROM (
            SELECT ws, k, count(*) AS n, sum(v) AS total FROM {HOPPED} WHERE g <> 3 GROUP BY ws, k HAVING count(*) <> 7
        ) QUALIFY n = max(n) OVER (PARTITION BY ws)
    """,
}


def chunk(chance: random.Random, newest: float, backs: list[int], first: int) -> list[dict[str, Any]]:
    """Rows around a time, with few values, so that many are equal."""
    return [
        {
            "id": first + place,
            "k": chance.choice([None, "a", "b"]),
            "g": chance.choice([1, 2, 3]),
            "v": chance.choice([None, 1, 2, 3]),
            "x": chance.choice([None, 0.5, -1.25, 8.0]),
            "ts": ms(max(0.0, newest - chance.choice(backs) - chance.random() * 0.9)),
        }
        for place in range(30)
    ]


def answered(rows: list[dict[str, Any]], query: str) -> Counter[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE t (id BIGINT, k VARCHAR, g INTEGER, v BIGINT, x DOUBLE, ts BIGINT)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [(*list(row.values())[:5], row["ts"] * 1000) for row in rows]
        )
        return Counter(connection.execute(query).fetchall())


def shown(db: penstock.Database, view: str) -> Counter[tuple[Any, ...]]:
    """The rows of a view, with times as DuckDB gives them."""
    rows = db.sql(f"SELECT * FROM {view}").rows()
    return Counter(tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in rows)


def check_same(db: penstock.Database) -> None:
    """Every view is the one beside it that Spark joins, and so is what came too late for it."""
    late = "SELECT stream, partition, offset, event_time, watermark, row FROM penstock.late_rows WHERE job = '{}'"
    for name in QUERIES:
        have, want = shown(db, name), shown(db, f"{name}_spark")
        assert have == want, f"{name}: missing {want - have}, not expected {have - want}"
        have, want = (Counter(db.sql(late.format(view)).rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"{name}: late rows missing {want - have}, not expected {have - want}"


def test_in_order_it_is_what_duckdb_answers(opened: Callable[..., penstock.Database]) -> None:
    """ORACLE, D4, G11: ties, NULLs, keys, conditions behind the comparison; also after a stop in the middle."""
    chance = random.Random(SEED)  # noqa: S311 - the same rows each time
    db = opened()
    db.execute(STREAM)
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    rows: list[dict[str, Any]] = []
    for newest in (4.0, 9.0, 13.0, 21.0):
        rows += chunk(chance, newest, [0, 0, 1, 2], len(rows))
        db.append("s", rows[-30:-15], partition=0)
        db.append("s", rows[-15:], partition=1)
        db.settle(120)
        if newest == 9.0:
            db.close()
            db = opened()
    for name in QUERIES:
        db.drain(name, 120)
        have, want = shown(db, name), answered(rows, ANSWERS[name])
        assert have == want, f"{name}: missing {want - have}, not expected {have - want}"
        check_change_log(db, name)
    assert max(shown(db, "rows").values()) > 1, "rows that are equal are all there"
    assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]
    assert db.sql("SELECT COUNT(*) FROM penstock.window_aggregates").rows() == [(0,)]


@pytest.mark.slow
def test_late_rows_are_those_of_the_join(opened: Callable[..., penstock.Database]) -> None:
    """F3, F5: rows that are late for some of their windows or for all, beside a join that Spark keeps."""
    chance = random.Random(SEED + 1)  # noqa: S311 - the same rows each time
    db = opened()
    db.execute(STREAM)
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_spark WITH (state = 'spark') AS {query}")
    first = 0
    for newest in (4.0, 18.0, 27.0, 300.0):
        for partition in range(2):  # settled after each, so that all jobs have the same batches
            db.append("s", chunk(chance, newest, [0, 0, 1, 2, 5, 8, 16, 20], first), partition=partition)
            first += 30
            db.settle(120)
    check_same(db)
    assert job(db, "rows").watermark == job(db, "rows_spark").watermark
    assert db.metrics()["rows"]["late_rows"] > 0
    assert db.metrics()["keyed"]["partly_late_rows"] > 0
    assert db.sql("SELECT MAX(max) FROM penstock.window_aggregates WHERE job = 'rows'").rows() == [(3.0,)]
    for name in QUERIES:
        for view in (name, f"{name}_spark"):
            db.drain(view, 120)
    check_same(db)
