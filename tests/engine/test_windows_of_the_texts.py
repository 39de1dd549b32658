"""Windows as the texts write them: over orders in JSON, as a struct, and with a dimension of six columns."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal

import pytest

import penstock
from tests.engine.answers import at, in_order, ms
from tests.project import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SEED = (ROOT / "tests" / "fixtures" / "seeds" / "000_window_functions.sql").read_text(encoding="utf-8")
HOUR, SLIDE = 3600, 300


def test_orders_by_the_hour(db: penstock.Database) -> None:
    """V6, B10: the statements of the text, each as it stands there; a window is a struct with two fields, too."""
    stream, tumble, hop = (part.strip() for part in SEED.partition("---")[0].split(";")[:3])
    db.execute(stream)
    orders = [("o1", "12.34", 10), ("o2", "0.66", 3599), ("o3", "100.00", 3600), ("o4", "50.50", 9000)]
    db.append(
        "orders",
        [
            json.dumps({"order_id": i, "customer_id": "c", "amount": float(a), "event_time": ms(t)}).encode()
            for i, a, t in orders
        ],
    )
    hours: dict[int, Decimal] = defaultdict(Decimal)
    hops: dict[int, list[Decimal]] = defaultdict(list)
    for _, amount, second in orders:
        hours[second // HOUR * HOUR] += Decimal(amount)
        for start in range(second // SLIDE * SLIDE, second - HOUR, -SLIDE):
            hops[start].append(Decimal(amount))
    assert in_order(db.select_once(tumble).rows()) == in_order(
        (at(start), at(start + HOUR), total) for start, total in hours.items()
    )
    found = db.select_once(hop)
    assert found.columns == ["window_start", "avg_amount"]
    means = {start: round(float(sum(values) / len(values)), 6) for start, values in hops.items()}
    assert {start: round(float(mean), 6) for start, mean in found.rows()} == {
        at(start): m for start, m in means.items()
    }
    struct = """
        SELECT w.window_start, w.window_end, w.start, w.end, n FROM (
            SELECT TUMBLE(event_time, INTERVAL '1 hour') AS w, COUNT(*) AS n FROM orders GROUP BY TUMBLE(event_time, INTERVAL '1 hour')
        ) AS hours
    """
    for start, end, same_start, same_end, n in db.select_once(struct).rows():
        assert (same_start, same_end, end - start) == (start, end, timedelta(hours=1))
        assert n == (2 if start == at(0) else 1)


def test_sixteen_columns(db: penstock.Database) -> None:
    """SC4: eight securities of six columns; spread, volumes by side, TUMBLE itself as the start beside TUMBLE_END."""
    names = ["AAPL", "MSFT", "GOOGL", "AMZN", "TSLA", "META", "NVDA", "JPM"]
    securities = {
        "instrumentId": names, "NAME": [f"{name} Inc." for name in names], "SECTOR": ["Tech"] * 7 + ["Bank"],
        "COUNTRY": ["US"] * 8, "CURRENCY": ["USD"] * 8, "GRADE": [name < "M" for name in names],
    }  # fmt: skip
    db.register_dimension("securities", securities)
    db.execute("""
        CREATE STREAM trades (symbol STRING, price DOUBLE, volume BIGINT, side STRING, bid DOUBLE, ask DOUBLE, ts TIMESTAMP,
            WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    """)
    rows = [
        ("AAPL", 150.0, 10, "BUY", 149.5, 150.5, 1),
        ("AAPL", 152.0, 30, "SELL", 151.0, 153.0, 59),
        ("JPM", 90.0, 5, "SELL", 89.75, 90.25, 30),
        ("UNKN", 200.0, 1, "BUY", 199.0, 201.0, 31),
        ("AAPL", 151.0, 7, "BUY", 150.0, 152.0, 60),
    ]
    columns = ("symbol", "price", "volume", "side", "bid", "ask", "ts")
    db.append("trades", [dict(zip(columns, (*row[:-1], ms(row[-1])), strict=True)) for row in rows])
    found = db.select_once("""
        SELECT t.symbol, s.NAME, s.SECTOR, s.COUNTRY, s.CURRENCY, s.GRADE,
               TUMBLE(t.ts, INTERVAL '1' MINUTE).window_start AS window_start, TUMBLE_END(t.ts, INTERVAL '1' MINUTE) AS window_end,
               COUNT(*) AS trades, AVG(t.price) AS avg_price, MAX(t.price) AS high, MIN(t.price) AS low,
               SUM(t.volume) AS volume, AVG(t.ask - t.bid) AS spread,
               SUM(CASE WHEN t.side = 'BUY' THEN t.volume ELSE 0 END) AS buy_volume,
               SUM(CASE WHEN t.side = 'SELL' THEN t.volume ELSE 0 END) AS sell_volume
        FROM trades AS t LEFT JOIN securities AS s ON t.symbol = s.instrumentId
        GROUP BY t.symbol, s.NAME, s.SECTOR, s.COUNTRY, s.CURRENCY, s.GRADE, TUMBLE(t.ts, INTERVAL '1' MINUTE)
    """)
    assert found.columns == [
        "symbol", "NAME", "SECTOR", "COUNTRY", "CURRENCY", "GRADE", "window_start", "window_end", "trades", "avg_price",
        "high", "low", "volume", "spread", "buy_volume", "sell_volume",
    ]  # fmt: skip
    apple = ("AAPL", "AAPL Inc.", "Tech", "US", "USD", True)
    assert in_order(found.rows()) == in_order(
        [
            (*apple, at(0), at(60), 2, 151.0, 152.0, 150.0, 40, 1.5, 10, 30),
            (*apple, at(60), at(120), 1, 151.0, 151.0, 151.0, 7, 2.0, 7, 0),
            ("JPM", "JPM Inc.", "Bank", "US", "USD", True, at(0), at(60), 1, 90.0, 90.0, 90.0, 5, 0.5, 0, 5),
            ("UNKN", None, None, None, None, None, at(0), at(60), 1, 200.0, 200.0, 200.0, 1, 2.0, 1, 0),
        ]
    )
