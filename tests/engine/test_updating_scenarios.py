"""Applications whose answers change as rows come, beside DuckDB over the same rows."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from tests.engine.answers import at, check_change_log, in_order, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PAYMENTS = "card STRING, amount DOUBLE, city STRING, paid TIMESTAMP"
FRAUD = {
    "velocity": """
        SELECT card, paid, n FROM (
          SELECT card, paid, COUNT(*) OVER (
            PARTITION BY card ORDER BY paid RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW) AS n
          FROM payments)
        WHERE n >= 3""",
    "outliers": """
        SELECT card, paid, amount FROM (
          SELECT card, paid, amount, COUNT(*) OVER w AS n, AVG(amount) OVER w AS usual, STDDEV_SAMP(amount) OVER w AS spread
          FROM payments
          WINDOW w AS (PARTITION BY card ORDER BY paid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        WHERE n >= 5 AND ABS(amount - usual) > 3 * spread""",
    "travel": """
        SELECT card, paid, came_from, city FROM (
          SELECT card, paid, city, LAG(city) OVER (PARTITION BY card ORDER BY paid) AS came_from,
                 LAG(paid) OVER (PARTITION BY card ORDER BY paid) AS since
          FROM payments)
        WHERE city <> came_from AND paid < since + INTERVAL '10' MINUTE""",
}

TICKS = "symbol STRING, side STRING, price DOUBLE, size BIGINT, ts TIMESTAMP"
STEPS = {
    "enriched": (
        "SELECT t.symbol, t.price, n.sector FROM ticks AS t LEFT JOIN names AS n ON t.symbol = n.symbol",
        "SELECT t.symbol, t.price, n.sector FROM ticks AS t LEFT JOIN names AS n ON t.symbol = n.symbol",
    ),
    "best_three": (
        ("SELECT symbol, side, price, ts FROM ticks "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol, side ORDER BY price DESC, ts) <= 3"),
        ("SELECT symbol, side, price, ts FROM ticks "
        "QUALIFY row_number() OVER (PARTITION BY symbol, side ORDER BY price DESC, ts) <= 3"),
    ),
    "best_quotes": (
        ("SELECT symbol, MAX(price) FILTER (WHERE side = 'bid') AS bid, MIN(price) FILTER (WHERE side = 'ask') AS ask "
        "FROM ticks GROUP BY symbol"),
        ("SELECT symbol, max(CASE side WHEN 'bid' THEN price END), min(CASE side WHEN 'ask' THEN price END) "
        "FROM ticks GROUP BY 1"),
    ),
    "features": (
        ("SELECT symbol, COUNT(*) AS n, SUM(price * size) / SUM(size) AS vwap, COUNT(DISTINCT side) AS sides FROM ticks "
        "GROUP BY symbol"),
        "SELECT symbol, count(*), sum(price * size) / sum(size), count(DISTINCT side) FROM ticks GROUP BY 1",
    ),
    "hourly": (
        ("SELECT symbol, TUMBLE_START(ts, INTERVAL '1' HOUR) AS hour, AVG(price) AS price FROM ticks "
        "GROUP BY symbol, TUMBLE(ts, INTERVAL '1' HOUR)"),
        "SELECT symbol, time_bucket(INTERVAL 1 HOUR, ts), avg(price) FROM ticks GROUP BY 1, 2",
    ),
    "buckets": (
        ("SELECT symbol, time_bucket(INTERVAL '30' MINUTE, ts) AS bucket, SUM(size) AS size FROM ticks "
        "GROUP BY symbol, time_bucket(INTERVAL '30' MINUTE, ts)"),
        "SELECT symbol, time_bucket(INTERVAL 30 MINUTE, ts), sum(size)::BIGINT FROM ticks GROUP BY 1, 2",
    ),
    "rolling": (
        ("SELECT symbol, ts, MAX(price) OVER (PARTITION BY symbol ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) "
        "AS top FROM ticks"),
        ("SELECT symbol, ts, max(price) OVER (PARTITION BY symbol ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) "
        "FROM ticks"),
    ),
    "latest": (
        "SELECT symbol, price, ts FROM ticks QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY ts DESC) = 1",
        "SELECT symbol, arg_max(price, ts), max(ts) FROM ticks GROUP BY 1",
    ),
}  # fmt: skip

NEAREST = {
    "before": ("LEFT", "t.ts >= q.quoted"),
    "fresh": ("LEFT", "t.ts >= q.quoted AND q.quoted >= t.ts - INTERVAL '1' SECOND"),
    "close": ("INNER", "q.quoted BETWEEN t.ts - INTERVAL '1' SECOND AND t.ts"),
    "next": ("LEFT", "t.ts < q.quoted AND q.bid % 2 = 0"),
}


def test_alerts_of_a_fraud_application(db: penstock.Database) -> None:
    """SC27: three payments in a minute, amounts far from a card's own after five of them, and two cities within ten
    minutes; payments come out of order, so alerts are also taken back."""
    rnd = random.Random(3)  # noqa: S311
    db.execute(f"CREATE STREAM payments ({PAYMENTS})")
    for name, query in FRAUD.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    with _oracle("payments", PAYMENTS) as oracle:
        times = rnd.sample(range(0, 14_400, 7), 120)
        for start in range(0, len(times), 40):
            rows = [
                (f"c{rnd.randrange(3)}", 5_000.0 if rnd.random() < 0.05 else 10.0 + rnd.randrange(5),
                 rnd.choice(["Rome", "Rome", "Oslo"]), at(second))
                for second in times[start : start + 40]
            ]  # fmt: skip
            _add(db, oracle, "payments", ["card", "amount", "city", "paid"], rows)
            db.settle(180)
            for name, query in FRAUD.items():
                assert read(db, name) == _answer(oracle, query), f"{name} after {start + 40} payments"
    assert all(read(db, name) for name in FRAUD), "an alert that is never raised is not tried"
    assert {change.op for change in check_change_log(db, "travel", key=())} == {"insert", "delete"}


def test_steps_of_a_market_pipeline(db: penstock.Database) -> None:
    """SC23, SC30: enrichment, best of each side, quotes, features and vwap, hourly samples, buckets, rolling values and
    the latest row; then, of what views hold, buckets filled up with the last value that was known."""
    rnd = random.Random(4)  # noqa: S311
    db.execute(f"CREATE STREAM ticks ({TICKS}, WATERMARK FOR ts AS ts - INTERVAL '2' HOUR)")
    names = pa.table({"symbol": ["A", "B"], "sector": ["steel", "wine"]})
    db.register_dimension("names", names)
    for name, (query, _) in STEPS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    with _oracle("ticks", TICKS) as oracle:
        oracle.register("names", names)
        times = rnd.sample(range(0, 6 * 3600, 11), 90)
        for start in range(0, len(times), 45):
            rows = [
                (
                    rnd.choice("ABC"),
                    rnd.choice(["bid", "ask"]),
                    float(rnd.randrange(90, 110)),
                    rnd.randrange(1, 9),
                    at(second),
                )
                for second in sorted(times)[start : start + 45]
            ]
            rnd.shuffle(rows)
            _add(db, oracle, "ticks", ["symbol", "side", "price", "size", "ts"], rows)
            db.settle(180)
        db.drain("hourly", timeout=180)
        for name, (_, query) in STEPS.items():
            assert read(db, name) == _answer(oracle, query), name
        _check_filled(db, oracle)


def test_each_trade_with_the_quote_before_it(db: penstock.Database) -> None:
    """SC29: quotes are dense and trades are few; each meets the latest quote up to its own time, at most a second old
    where that is asked. Both come out of order, so a quote that comes late takes the place of another one."""
    rnd = random.Random(5)  # noqa: S311
    db.execute("CREATE STREAM quotes (symbol STRING, quoted TIMESTAMP, bid BIGINT)")
    db.execute("CREATE STREAM trades (id BIGINT, symbol STRING, ts TIMESTAMP)")
    for name, (kind, condition) in NEAREST.items():
        db.execute(f"""
            CREATE MATERIALIZED VIEW {name} AS
            SELECT t.id, q.bid FROM trades t ASOF {kind} JOIN quotes q ON t.symbol = q.symbol AND {condition}""")
    with _oracle("quotes", "symbol STRING, quoted TIMESTAMP, bid BIGINT") as oracle:
        oracle.execute("CREATE TABLE trades (id BIGINT, symbol VARCHAR, ts TIMESTAMP)")
        # No two quotes of one moment, so that the answer is one; some are a second before a trade, to the microsecond.
        quotes = [(rnd.choice("AB"), at(moment / 10), moment) for moment in rnd.sample(range(600), 150)]
        trades = [(number, rnd.choice("ABC"), at(rnd.randrange(600) / 10)) for number in range(40)]
        for start in range(3):
            _add(db, oracle, "quotes", ["symbol", "quoted", "bid"], quotes[start::3])
            _add(db, oracle, "trades", ["id", "symbol", "ts"], trades[start::3])
            db.settle(180)
            for name, (kind, condition) in NEAREST.items():
                nearest = "quoted" if "next" in name else "quoted DESC"
                expected = _answer(
                    oracle,
                    f"SELECT t.id, n.bid FROM trades t {kind} JOIN LATERAL (SELECT bid FROM quotes q "
                    f"WHERE t.symbol = q.symbol AND {condition} ORDER BY {nearest} LIMIT 1) AS n ON true",
                )
                assert read(db, name) == expected, f"{name} after batch {start}"
    answers = {name: {row[0]: row[1] for row in read(db, name)} for name in NEAREST}
    assert None in answers["before"].values()
    assert 0 < len(answers["close"]) < len(answers["before"])
    check_change_log(db, "fresh", key=())


def _check_filled(db: penstock.Database, oracle: duckdb.DuckDBPyConnection) -> None:
    """Every half hour of the day, also those in which nothing was traded."""
    filled = db.sql("""
        WITH slots AS (
          SELECT s.slot FROM UNNEST(SEQUENCE(TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP '1970-01-01 08:00:00',
                                             INTERVAL '30' MINUTE)) AS s(slot))
        SELECT slots.slot, LAST_VALUE(b.size) IGNORE NULLS OVER (
                 ORDER BY slots.slot ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS size
        FROM slots LEFT JOIN (SELECT bucket, size FROM buckets WHERE symbol = 'A') AS b ON slots.slot = b.bucket""")
    traded = dict(
        oracle.execute(
            "SELECT time_bucket(INTERVAL 30 MINUTE, ts), sum(size) FROM ticks WHERE symbol = 'A' GROUP BY 1"
        ).fetchall()
    )
    last, expected = None, []
    for slot in range(17):
        moment = datetime(1970, 1, 1) + timedelta(minutes=30 * slot)  # noqa: DTZ001 - DuckDB's have no zone
        last = traded.get(moment, last)
        expected.append((at(1800 * slot), last))
    assert in_order(filled.rows()) == in_order(expected)


def _oracle(name: str, columns: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {name} ({columns.replace('STRING', 'VARCHAR')})")
    return connection


def _add(
    db: penstock.Database, oracle: duckdb.DuckDBPyConnection, name: str, columns: list[str], rows: list[tuple[Any, ...]]
) -> None:
    db.append(name, [dict(zip(columns, row, strict=True)) for row in rows])
    plain = [[value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in row] for row in rows]
    oracle.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", plain)


def _answer(oracle: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    found = oracle.execute(query).fetchall()
    zone = at(0).tzinfo
    return in_order(
        tuple(value.replace(tzinfo=zone) if isinstance(value, datetime) else value for value in row) for row in found
    )
