"""Trades enriched with a table of securities, in windows of a minute: the whole of the streaming guide in one program.

Five securities are handed to every task, so the join needs no shuffle; a trade of a security that is not among them
keeps its place, with NULL for what is not known; groups with an average price of 100 or less are left out.

    python examples/streaming_sql_with_dimension_broadcast.py

The trades go through an embedded topic of 16 partitions, which 8 readers share. With the address of a broker they go
through a topic of Kafka instead, and nothing else is different:

    penstock kafka up
    python examples/streaming_sql_with_dimension_broadcast.py 127.0.0.1:9092

Prints:
the join is broadcast, the aggregate keeps state
AAPL   Apple Inc   Technology  True   10:00  average 151.00  volume 300  trades 2  high 152.00  low 150.00
GOOGL  Alphabet    Technology  True   10:00  average 2800.00  volume 10  trades 1  high 2800.00  low 2800.00
UNKN   None        None        None   10:00  average 500.00  volume 1  trades 1  high 500.00  low 500.00
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from penstock import StreamingSQLExecutor
from penstock import cyarrow as ca

TRADES = """
    CREATE TABLE trades (
        symbol STRING,
        price DOUBLE,
        volume INT,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH (
        {place},
        'max-parallelism' = '8',
        'batch-size' = '10000'
    )
"""
PARTITIONS = 16
QUERY = """
    SELECT
        t.symbol,
        s.NAME as security_name,
        s.SECTOR as sector,
        s.INVESTMENT_GRADE as investment_grade,
        TUMBLE_START(t.ts, INTERVAL '1' MINUTE) as window_start,
        AVG(t.price) as avg_price,
        SUM(t.volume) as total_volume,
        COUNT(*) as trade_count,
        MAX(t.price) as high,
        MIN(t.price) as low
    FROM trades t
    LEFT JOIN securities s ON t.symbol = s.instrumentId
    GROUP BY
        t.symbol,
        s.NAME,
        s.SECTOR,
        s.INVESTMENT_GRADE,
        TUMBLE(t.ts, INTERVAL '1' MINUTE)
    HAVING AVG(t.price) > 100
"""
SECURITIES = {
    "instrumentId": ["AAPL", "MSFT", "GOOGL", "PENNY", "JUNK"],
    "NAME": ["Apple Inc", "Microsoft", "Alphabet", "Penny Stock", "Junk Bonds"],
    "SECTOR": ["Technology", "Technology", "Technology", "Mining", "Finance"],
    "INVESTMENT_GRADE": [True, True, True, False, False],
}


def trade(symbol: str, price: float, volume: int, minute: int, second: int) -> dict[str, Any]:
    """One row of the stream."""
    moment = datetime(2026, 1, 1, 10, minute, second, tzinfo=UTC)
    return {"symbol": symbol, "price": price, "volume": volume, "ts": moment}


async def first_windows(executor: StreamingSQLExecutor, count: int) -> list[dict[str, Any]]:
    """So many windows, as they close."""
    found: list[dict[str, Any]] = []
    async for batch in executor.execute_streaming_sql(QUERY):
        found += batch.to_pylist()
        if len(found) >= count:
            break
    return sorted(found, key=lambda row: str(row["symbol"]))


def fill(executor: StreamingSQLExecutor, rows: list[dict[str, Any]]) -> None:
    """Trades into the embedded topic, and then every partition has come to a later minute."""
    executor.database.append("trades", rows, key="symbol")
    for partition in range(PARTITIONS):
        executor.database.append("trades", [trade("AAPL", 1.0, 1, 1, 10)], partition=partition)


def fill_kafka(broker: str, topic: str, rows: list[dict[str, Any]]) -> None:
    """The same into a topic of Kafka, with Kafka's own client."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker})
    for row in rows:
        producer.produce(topic, json.dumps(row, default=str), key=row["symbol"])
    for partition in range(PARTITIONS):
        producer.produce(topic, json.dumps(trade("AAPL", 1.0, 1, 1, 10), default=str), partition=partition)
    producer.flush()


def make_topic(broker: str, topic: str) -> None:
    """A topic that no other run has."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result()


def main(broker: str | None = None) -> None:
    """Define, register, append, read."""
    topic = f"market-trades-{time.time_ns():x}"
    if broker is None:
        place = f"'connector' = 'topic', 'topic' = '{topic}', 'partitions' = '{PARTITIONS}'"
    else:
        make_topic(broker, topic)
        place = (
            f"'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker}', "
            "'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"
        )
    with StreamingSQLExecutor(state_backend="tonbo", timer_backend="rocksdb", max_parallelism=16) as executor:
        executor.execute_ddl(TRADES.format(place=place))
        executor.register_dimension_table("securities", ca.Table.from_pydict(SECURITIES), broadcast=True)

        operators = executor.explain(QUERY)["operators"]
        assert any(operator["is_broadcast"] for operator in operators)
        assert any(operator["is_stateful"] for operator in operators)
        print("the join is broadcast, the aggregate keeps state")

        rows = [
            trade("AAPL", 150.0, 100, 0, 5),
            trade("AAPL", 152.0, 200, 0, 40),
            trade("GOOGL", 2800.0, 10, 0, 30),
            trade("PENNY", 0.5, 9000, 0, 31),
            trade("UNKN", 500.0, 1, 0, 59),
        ]
        if broker is None:
            fill(executor, rows)
        else:
            fill_kafka(broker, topic, rows)

        for row in asyncio.run(first_windows(executor, 3)):
            print(
                f"{row['symbol']:6} {row['security_name'] or 'None':11} {row['sector'] or 'None':11} "
                f"{row['investment_grade']!s:6} {row['window_start']:%H:%M}  average {row['avg_price']:.2f}  "
                f"volume {row['total_volume']}  trades {row['trade_count']}  "
                f"high {row['high']:.2f}  low {row['low']:.2f}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
