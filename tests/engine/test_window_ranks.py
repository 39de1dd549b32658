"""Ranks within windows: rows and aggregates, ties, NULLs, windows that overlap, and windows that are still open."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

import penstock
from tests.engine.answers import check_change_log, in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TUMBLE = "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
HOP = "HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
COUNTED = f"SELECT window_start, window_end, item, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, window_end, item"
# DuckDB's words for the same rows: `w` is the second at which a window begins.
TUMBLED = "(SELECT *, t // 10 * 10 AS w FROM bids)"
HOPPED = "(SELECT *, unnest([t // 5 * 5 - 5, t // 5 * 5]) AS w FROM bids)"

RANKED = """SELECT {w} AS w, id,
    RANK() OVER (PARTITION BY {by}, item ORDER BY price DESC NULLS LAST) AS place,
    DENSE_RANK() OVER (PARTITION BY {by}, item ORDER BY price DESC NULLS LAST) AS price_place FROM {rows}"""
BEST = """SELECT {w} AS w, id, price FROM {rows}
    QUALIFY {rank}() OVER (PARTITION BY {by} ORDER BY price NULLS FIRST{more}) <= 3"""
WINDOW = {"w": "unix_seconds(window_start)", "by": "window_start, window_end"}
PLAIN = {"w": "w", "by": "w"}

VIEWS = {
    "ranked": (RANKED.format(**WINDOW, rows=TUMBLE), RANKED.format(**PLAIN, rows=TUMBLED)),
    "best": (
        BEST.format(**WINDOW, rows=HOP, rank="RANK", more=""),
        BEST.format(**PLAIN, rows=HOPPED, rank="RANK", more=""),
    ),
    "numbered": (
        BEST.format(**WINDOW, rows=TUMBLE, rank="ROW_NUMBER", more=", id"),
        BEST.format(**PLAIN, rows=TUMBLED, rank="ROW_NUMBER", more=", id"),
    ),
    "items": (
        f"""SELECT unix_seconds(window_start) AS w, item, n, RANK() OVER (PARTITION BY window_start ORDER BY n DESC) AS place
        FROM ({COUNTED})""",
        f"""SELECT w, item, COUNT(*) AS n, RANK() OVER (PARTITION BY w ORDER BY COUNT(*) DESC) AS place
        FROM {TUMBLED} GROUP BY w, item""",
    ),
    "shares": (
        f"""SELECT id, SUM(price) OVER (PARTITION BY window_start) AS total,
        LAG(price) OVER (PARTITION BY window_start, item ORDER BY id) AS before FROM {TUMBLE}""",
        f"""SELECT id, (SUM(price) OVER (PARTITION BY w))::BIGINT AS total,
        LAG(price) OVER (PARTITION BY w, item ORDER BY id) AS before FROM {TUMBLED}""",
    ),
}
CHANGES = {"shares"}


def test_ranks_within_windows(db: penstock.Database) -> None:
    """G13: beside DuckDB, over batches that cut windows apart; what Spark ranks only grows."""
    db.execute("CREATE STREAM bids (id BIGINT, item STRING, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    for name, (query, _) in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    rows = bids(120)
    for start in range(0, len(rows), 50):
        db.append("bids", [row | {"ts": ms(row["ts"])} for row in rows[start : start + 50]])
        db.settle(300)
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE bids (id BIGINT, item VARCHAR, price BIGINT, t BIGINT)")
        oracle.executemany("INSERT INTO bids VALUES (?, ?, ?, ?)", [tuple(row.values()) for row in rows])
        for name, (_, words) in VIEWS.items():
            db.drain(name, 300)
            expected = in_order(oracle.execute(words).fetchall())
            assert read(db, name) == expected, name
            check_change_log(db, name, key=() if name in CHANGES else None)
    assert {row[2] for row in read(db, "ranked")} > {1, 2, 3}, "there are no ties to tell apart"


def bids(count: int) -> list[dict[str, Any]]:
    source = random.Random(3)  # noqa: S311
    return [
        {
            "id": number,
            "item": source.choice(("a", "b", None)),
            "price": None if source.random() < 0.1 else source.randrange(5),
            "ts": 100 + number // 3,
        }
        for number in range(count)
    ]


def test_open_windows_are_ranked_where_changes_are_asked_for(db: penstock.Database) -> None:
    db.execute("CREATE STREAM bids (id BIGINT, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    query = f"SELECT id, RANK() OVER (PARTITION BY window_start ORDER BY price DESC) AS place FROM {TUMBLE}"
    db.execute(f"CREATE MATERIALIZED VIEW now AS {query} EMIT CHANGES; CREATE MATERIALIZED VIEW done AS {query}")
    db.append("bids", [{"id": 1, "price": 5, "ts": ms(1)}, {"id": 2, "price": 7, "ts": ms(2)}])
    db.settle(300)
    assert read(db, "now") == [(1, 2), (2, 1)]
    assert read(db, "done") == []
    db.append("bids", [{"id": 3, "price": 9, "ts": ms(3)}, {"id": 4, "price": 0, "ts": ms(11)}])
    db.settle(300)
    assert read(db, "now") == [(1, 3), (2, 2), (3, 1), (4, 1)]
    assert read(db, "done") == [(1, 3), (2, 2), (3, 1)]
