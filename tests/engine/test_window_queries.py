"""What people ask of a window: spread, exact distinct counts, percentiles, the row of the best, and the steps of a day."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock
from tests.engine.answers import at, in_order, ms, read
from tests.engine.test_oracle import plain

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SYMBOLS = ("AAPL", "GOOGL", "MSFT", "NVDA", None)


def trades(count: int) -> list[dict[str, Any]]:
    source = random.Random(7)  # noqa: S311
    return [
        {
            "id": number,
            "symbol": source.choice(SYMBOLS),
            "price": None if source.random() < 0.05 else source.randrange(8_000, 20_000) / 100,
            "volume": source.randrange(1, 500),
            "ts": ms(number * 3 + source.random()),
        }
        for number in range(count)
    ]


def test_windows_of_trades(db: penstock.Database) -> None:
    """D25, G2, G15, G17, SC5, SC6: against DuckDB over the same rows, to 1e-9; COUNT(DISTINCT) is exact."""
    db.execute(
        "CREATE STREAM trades (id INT, symbol STRING, price DOUBLE, volume INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
    )
    window = "TUMBLE(ts, INTERVAL '5' MINUTE)"
    views = {
        "volatility": (
            (
                "symbol, TUMBLE_START(ts, INTERVAL '5' MINUTE) AS s, STDDEV(price) AS deviation, STDDEV(volume) AS swings, "
                "(MAX(price) - MIN(price)) / AVG(price) AS spread, COUNT(*) AS n"
            ),
            f"symbol, {window} HAVING COUNT(*) > 10",
            "symbol, ws, stddev_samp(price), stddev_samp(volume), (max(price) - min(price)) / avg(price), count(*)",
            "symbol, ws HAVING count(*) > 10",
        ),
        "overview": (
            (
                "TUMBLE_START(ts, INTERVAL '5' MINUTE) AS s, COUNT(DISTINCT symbol) AS symbols, COUNT(DISTINCT symbol, volume) AS pairs, "
                "SUM(volume) FILTER (WHERE price > 150) AS dear, MIN(ts) AS first, MAX(ts) AS last, MAX_BY(id, ts) AS latest, "
                "PERCENTILE(volume, 0.5) AS middle"
            ),
            f"{window} HAVING COUNT(DISTINCT symbol) > 3",
            (
                "ws, count(DISTINCT symbol), count(DISTINCT (symbol, volume)) FILTER (WHERE symbol IS NOT NULL), "
                "sum(volume) FILTER (WHERE price > 150), min(ts), max(ts), max_by(id, ts), quantile_cont(volume, 0.5)"
            ),
            "ws HAVING count(DISTINCT symbol) > 3",
        ),
    }
    for view, (items, group, _, _) in views.items():
        db.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT {items} FROM trades GROUP BY {group}")
    rows = trades(400)
    for start in range(0, len(rows), 150):
        db.append("trades", rows[start : start + 150])
        db.settle()
    for view, (_, _, items, group) in views.items():
        db.drain(view)
        batch = f"SELECT {items} FROM (SELECT *, ts // 300000000 * 300000000 AS ws FROM trades) GROUP BY {group}"
        have, want = (
            in_order(map(plain, found)) for found in (db.sql(f"SELECT * FROM {view}").rows(), answer(batch, rows))
        )
        assert have == want
        assert len(want) >= 4
    physical = db.execute(f"EXPLAIN PHYSICAL SELECT symbol, SUM(volume) AS v FROM trades GROUP BY symbol, {window}")
    assert physical is not None
    above, below = "\n".join(row[0] for row in physical.rows()).split("Exchange", 1)
    assert "sum(" in above
    assert "partial_sum" in below, "rows are summed where they are read, before they move"


def answer(query: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect() as database:
        database.execute("CREATE TABLE trades (id INT, symbol VARCHAR, price DOUBLE, volume INT, ts BIGINT)")
        values = [(*list(row.values())[:4], row["ts"] * 1000) for row in rows]
        database.executemany("INSERT INTO trades VALUES (?, ?, ?, ?, ?)", values)
        return database.execute(query).fetchall()


def test_steps_of_a_window_come_one_after_the_other(db: penstock.Database) -> None:
    """A cumulating window shows each step when it ends, not when the whole window does; first rows are those of the step."""
    steps = "CUMULATE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND)"
    db.execute("CREATE STREAM events (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    db.execute(f"""
        CREATE MATERIALIZED VIEW steps AS
        SELECT window_start, window_end, COUNT(*) AS n, SUM(v) AS total FROM {steps} GROUP BY window_start, window_end;
        CREATE MATERIALIZED VIEW best AS
        SELECT window_end, k FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS place FROM {steps}
        ) WHERE place = 1;
    """)
    db.append("events", [{"k": "a", "v": 1, "ts": ms(1)}, {"k": "b", "v": 5, "ts": ms(12)}])
    db.settle()
    assert read(db, "steps") == [(at(0), at(10), 1, 1)]
    assert read(db, "best") == [(at(10), "a")]
    db.append(
        "events",
        [{"k": "c", "v": 3, "ts": ms(29)}, {"k": "d", "v": 4, "ts": ms(30)}, {"k": "late", "v": 9, "ts": ms(11)}],
    )
    db.settle()
    assert read(db, "steps") == [(at(0), at(10), 1, 1), (at(0), at(20), 3, 15), (at(0), at(30), 4, 18)]
    assert read(db, "best") == [(at(10), "a"), (at(20), "late"), (at(30), "late")]
    db.append("events", [{"k": "partly", "v": 0, "ts": ms(59)}, {"k": "partly", "v": 0, "ts": ms(60)}])
    db.settle()
    db.append("events", [{"k": "gone", "v": 0, "ts": ms(5)}, {"k": "open", "v": 0, "ts": ms(61)}])
    db.settle()
    assert db.sql("SELECT job, event_time FROM penstock.late_rows ORDER BY job").rows() == [
        ("best", at(5)),
        ("steps", at(5)),
    ]
    db.drain("steps")
    assert [row for row in read(db, "steps") if row[0] == at(60)] == [
        (at(60), at(second), 2, 0) for second in (70, 80, 90)
    ]
