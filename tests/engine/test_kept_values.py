"""Aggregates that do not merge, in windows that the view store keeps: sessions that show each change, processing time."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

import penstock
from tests.engine.answers import at, check_change_log, in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

VALUES = """COUNT(DISTINCT page) AS pages, COUNT(DISTINCT page) FILTER (WHERE price > 2) AS dear, COUNT(*) AS n,
    PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price) AS low, MEDIAN(price) AS middle, ROUND(STDDEV(price), 6) AS spread"""
WORDS = """count(DISTINCT page), count(DISTINCT page) FILTER (WHERE price > 2), count(*),
    quantile_cont(price, 0.25), quantile_cont(price, 0.5), round(stddev_samp(price), 6)"""
ISLANDS = """(SELECT *, sum(starts) OVER (PARTITION BY person ORDER BY t, id) AS island FROM (SELECT *,
    CASE WHEN t - lag(t) OVER (PARTITION BY person ORDER BY t, id) <= 5 THEN 0 ELSE 1 END AS starts FROM clicks))"""
AGE = "INTERVAL '36500' DAY"  # a window that no test lives to see the end of


def test_aggregates_that_do_not_merge(db: penstock.Database) -> None:
    """D7, G5: after every batch, beside DuckDB over the rows so far; windows that close do so with the drain."""
    db.execute("""CREATE STREAM clicks (id BIGINT, person STRING, page STRING, price DOUBLE, ts TIMESTAMP, at AS PROCTIME(),
        WATERMARK FOR ts AS ts)""")
    clock = {
        "now": f"FROM TUMBLE(TABLE clicks, DESCRIPTOR(at), {AGE}) GROUP BY person, window_start, window_end EMIT CHANGES",
        "once": f"FROM TUMBLE(TABLE clicks, DESCRIPTOR(at), {AGE}) GROUP BY person, window_start, window_end",
        "ended": "FROM clicks GROUP BY person, SESSION(at, INTERVAL '1' HOUR)",
    }
    for name, rest in clock.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT person, {VALUES} {rest}")
    db.execute(f"""CREATE MATERIALIZED VIEW bursts AS SELECT person, window_start, {VALUES}
        FROM SESSION(TABLE clicks PARTITION BY person, DESCRIPTOR(ts), INTERVAL '5' SECOND)
        GROUP BY person, window_start, window_end EMIT CHANGES""")
    rows = clicks(60)
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE clicks (id BIGINT, person VARCHAR, page VARCHAR, price DOUBLE, t BIGINT)")
        persons = f"SELECT person, {WORDS} FROM clicks GROUP BY person"
        for start in range(0, len(rows), 20):
            given = rows[start : start + 20]
            oracle.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", [tuple(row.values()) for row in given])
            db.append("clicks", [row | {"ts": ms(row["ts"])} for row in given])
            db.settle(300)
            bursts = f"SELECT person, min(t), {WORDS} FROM {ISLANDS} GROUP BY person, island"
            expected = in_order((person, at(second), *rest) for person, second, *rest in answer(oracle, bursts))
            assert read(db, "bursts") == expected
            assert read(db, "now") == answer(oracle, persons)
            assert read(db, "once") == read(db, "ended") == []
        for name in ("once", "ended"):
            db.drain(name, 300)
            assert read(db, name) == answer(oracle, persons), name
        check_change_log(db, "bursts", key=())
        check_change_log(db, "now", key=())


def answer(oracle: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return in_order(oracle.execute(query).fetchall())


def clicks(count: int) -> list[dict[str, Any]]:
    source = random.Random(9)  # noqa: S311
    second = 100
    made = []
    for number in range(count):
        second += source.choice((0, 1, 1, 2, 3))
        made.append(
            {
                "id": number,
                "person": source.choice(("a", "b", None, "d")),
                "page": source.choice(("x", "y", "z", None)),
                "price": None if source.random() < 0.1 else source.randrange(16) / 4,
                "ts": second,
            }
        )
    return made
