"""What is open is told, and what is closed is gone (contract H, E20, G6)."""

from __future__ import annotations

import pytest

import penstock
from tests.engine.answers import at, ms

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

START = 1_609_459_200  # of the example row of the texts
OPEN = "SELECT key, window_start, count, sum, min, max FROM penstock.window_aggregates WHERE job = 'minutes'"
PENDING = "SELECT pending_windows FROM penstock.watermarks WHERE job = 'minutes'"
MANY = 3_000


def test_open_windows_are_told_and_closed_ones_deleted(db: penstock.Database) -> None:
    """H1, H2, E12, E20, G6: the example row while its window is open; nothing is kept of thousands that are closed."""
    db.execute("""
        CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
        CREATE MATERIALIZED VIEW minutes AS
        SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, SUM(price) AS total,
               MIN(price) AS low, MAX(price) AS high
        FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE);
    """)
    prices = [145.0, 155.0, *[150.0] * 148]
    db.append("trades", [{"symbol": "AAPL", "price": p, "ts": ms(START + n // 3)} for n, p in enumerate(prices)])
    db.settle()
    shown = db.sql(OPEN)
    assert shown.columns == ["key", "window_start", "count", "sum", "min", "max"]
    assert shown.rows() == [("AAPL", at(START), 150, 22500.0, 145.0, 155.0)]
    assert db.sql(PENDING).rows() == [([at(START)],)]
    assert db.sql("SELECT n FROM minutes").rows() == []

    db.append("trades", [{"symbol": "AAPL", "price": 1.0, "ts": ms(START + 60 + n * 60)} for n in range(MANY)])
    db.append("trades", [{"symbol": "AAPL", "price": 2.0, "ts": ms(START + 60 + MANY * 60)}])
    db.settle()
    left = db.sql(f"{OPEN} ORDER BY window_start").rows()
    assert len(left) == 2, "closed windows are not kept; the last two are open for the five seconds of the delay"
    assert left[-1][1:3] == (at(START + 60 + MANY * 60), 1)
    assert db.sql(PENDING).rows() == [([row[1] for row in left],)]
    assert db.sql("SELECT COUNT(*), SUM(n) FROM minutes").rows() == [(MANY, 150 + MANY - 1)]
    db.drain("minutes")
    assert db.jobs()[0].watermark == at(START + 120 + MANY * 60), "the largest time and a minute, to the millisecond"
    assert db.sql("SELECT COUNT(*), SUM(n) FROM minutes").rows() == [(MANY + 2, 150 + MANY + 1)]
