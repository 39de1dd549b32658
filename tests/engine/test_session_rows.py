"""Sessions as rows: read one by one, and grouped by other keys than those they are found by."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from tests.engine.answers import at, check_change_log, in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SESSIONS = "SESSION(TABLE {} PARTITION BY person, DESCRIPTOR(ts), INTERVAL '5' SECOND)"
WINDOW = "unix_seconds(window_start) AS s, unix_seconds(window_end) AS e"
# DuckDB's words for the same rows: sessions are the islands between gaps.
ISLANDS = """(SELECT *, min(t) OVER (PARTITION BY {by} island) AS s, max(t) OVER (PARTITION BY {by} island) + 5 AS e
    FROM (SELECT *, sum(starts) OVER ({over} ORDER BY t, id) AS island
    FROM (SELECT *, CASE WHEN t - lag(t) OVER ({over} ORDER BY t, id) <= 5 THEN 0 ELSE 1 END AS starts FROM clicks)))"""
OWN = ISLANDS.format(by="person,", over="PARTITION BY person")
ALL = ISLANDS.format(by="", over="")

VIEWS = {
    "bare": (f"SELECT id, price, {WINDOW} FROM {SESSIONS}", f"SELECT id, price, s, e FROM {OWN}"),
    "pages": (
        f"SELECT page, {WINDOW}, COUNT(*) AS n, COUNT(DISTINCT price) AS prices FROM {SESSIONS} GROUP BY page, window_start, window_end",
        f"SELECT page, s, e, COUNT(*), COUNT(DISTINCT price) FROM {OWN} GROUP BY page, s, e",
    ),
    "sets": (
        f"""SELECT person, page, {WINDOW}, SUM(price) AS total FROM {SESSIONS}
        GROUP BY GROUPING SETS ((person, window_start, window_end), (page, window_start, window_end))""",
        f"SELECT person, page, s, e, SUM(price)::BIGINT FROM {OWN} GROUP BY GROUPING SETS ((person, s, e), (page, s, e))",
    ),
    # what the filter leaves out still holds a session together
    "dear": (
        f"SELECT person, {WINDOW}, COUNT(*) AS n FROM {SESSIONS} WHERE price > 2 GROUP BY person, window_start, window_end",
        f"SELECT person, s, e, COUNT(*) FROM {OWN} WHERE price > 2 GROUP BY person, s, e",
    ),
    "starts": (
        f"SELECT page, window_start, COUNT(*) AS n FROM {SESSIONS} GROUP BY page, window_start",
        f"SELECT page, s, COUNT(*) FROM {OWN} GROUP BY page, s",
    ),
    "ranked": (
        f"SELECT id, RANK() OVER (PARTITION BY person, window_start ORDER BY price) AS place FROM {SESSIONS}",
        f"SELECT id, RANK() OVER (PARTITION BY person, s ORDER BY price NULLS FIRST) FROM {OWN}",
    ),
    "both": (
        f"""SELECT {WINDOW}, SUM(n) AS n FROM (SELECT person, window_start, window_end, COUNT(*) AS n FROM {SESSIONS}
        GROUP BY person, window_start, window_end) GROUP BY window_start, window_end""",
        f"SELECT s, e, COUNT(*) FROM {OWN} GROUP BY s, e",
    ),
    "without_keys": (
        f"SELECT id, {WINDOW} FROM {SESSIONS.replace(' PARTITION BY person', '')}",
        f"SELECT id, s, e FROM {ALL}",
    ),
}
CHANGES = {"starts"}


@pytest.mark.slow
def test_rows_of_sessions(db: penstock.Database) -> None:
    """D7: beside DuckDB, over batches that cut sessions apart, and as one query over a table."""
    db.execute(
        "CREATE STREAM clicks (id BIGINT, person STRING, page STRING, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
    )
    for name, (query, _) in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query.format('clicks')}")
    rows = clicks(90)
    for start in range(0, len(rows), 40):
        db.append("clicks", [row | {"ts": ms(row["ts"])} for row in rows[start : start + 40]])
        db.settle(300)
    db.register_table("known", pa.Table.from_pylist([row | {"ts": at(row["ts"])} for row in rows]))
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE clicks (id BIGINT, person VARCHAR, page VARCHAR, price BIGINT, t BIGINT)")
        oracle.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", [tuple(row.values()) for row in rows])
        for name, (query, words) in VIEWS.items():
            db.drain(name, 300)
            expected = in_order(oracle.execute(words).fetchall())
            if name == "starts":
                expected = in_order((page, at(second), n) for page, second, n in expected)
            assert read(db, name) == expected, name
            check_change_log(db, name, key=() if name in CHANGES else None)
            assert in_order(db.sql(query.format("known")).rows()) == expected, f"{name} over a table"
    assert len(read(db, "bare")) == len(rows)
    lengths = {row[3] - row[2] for row in read(db, "bare")}
    assert min(lengths) == 5, "no session has one row only"
    assert max(lengths) > 20, "no session is cut apart by a batch"


def test_rows_of_an_open_session_wait(db: penstock.Database) -> None:
    """D21: a row that joins two sessions gives the rows of both the same bounds; one that comes too late is told."""
    db.execute(
        "CREATE STREAM clicks (id BIGINT, person STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)"
    )
    db.execute(f"CREATE MATERIALIZED VIEW bare AS SELECT id, window_start, window_end FROM {SESSIONS.format('clicks')}")
    rows = [(1, "a", 10), (2, "a", 17), (3, "b", 12)]
    db.append("clicks", [{"id": number, "person": who, "ts": ms(second)} for number, who, second in rows])
    db.settle(300)
    assert read(db, "bare") == []
    db.append("clicks", [{"id": 4, "person": "a", "ts": ms(14)}, {"id": 5, "person": "c", "ts": ms(22)}])
    db.settle(300)
    assert read(db, "bare") == [(3, at(12), at(17))]
    db.append("clicks", [{"id": 6, "person": "c", "ts": ms(30)}, {"id": 7, "person": "b", "ts": ms(11)}])
    db.settle(300)
    bounds: tuple[datetime, datetime] = (at(10), at(22))
    assert read(db, "bare") == [(1, *bounds), (2, *bounds), (3, at(12), at(17)), (4, *bounds)]
    assert db.sql("SELECT event_time FROM penstock.late_rows").rows() == [(at(11),)]


def clicks(count: int) -> list[dict[str, Any]]:
    source = random.Random(5)  # noqa: S311
    second = 100
    made = []
    for number in range(count):
        second += source.choice((0, 0, 1, 1, 2, 3))
        made.append(
            {
                "id": number,
                "person": source.choice(("a", "a", "b", None, "d", "e")),
                "page": source.choice(("x", "y", None)),
                "price": None if source.random() < 0.1 else source.randrange(5),
                "ts": second,
            }
        )
    return made
