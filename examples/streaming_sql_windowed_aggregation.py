"""One stream of trades through three kinds of window: tumbling, hopping and session.

Three queries run at once, each in a loop of its own; a window comes out when the watermark has passed its end. Runs
without anything else: the trades are made here and go through an embedded topic.

    python examples/streaming_sql_windowed_aggregation.py

Prints:
TUMBLE 1 minute
  10:00:00 - 10:01:00  ACME  trades 3  average 101.00
  10:00:00 - 10:01:00  ZORG  trades 1  average 50.00
  10:01:00 - 10:02:00  ACME  trades 1  average 110.00
HOP every minute, 5 minutes long
  09:56:00 - 10:01:00  ACME  trades 3  average 101.00
  09:56:00 - 10:01:00  ZORG  trades 1  average 50.00
  09:57:00 - 10:02:00  ACME  trades 4  average 103.25
  09:57:00 - 10:02:00  ZORG  trades 1  average 50.00
SESSION of trades no more than 30 seconds apart
  10:00:01 - 10:00:50  ACME  trades 2  average 100.50
  10:00:40 - 10:01:10  ZORG  trades 1  average 50.00
  10:00:55 - 10:01:35  ACME  trades 2  average 106.00
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from penstock import StreamingSQLExecutor

TRADES = """
    CREATE TABLE trades (
        symbol STRING,
        price DOUBLE,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH ('connector' = 'topic')
"""
QUERY = """
    SELECT symbol, {window}_START(ts, {length}) AS window_start, {window}_END(ts, {length}) AS window_end,
           COUNT(*) AS trades, AVG(price) AS average
    FROM trades
    GROUP BY symbol, {window}(ts, {length})
"""
WINDOWS = {
    "TUMBLE 1 minute": ("TUMBLE", "INTERVAL '1' MINUTE", 3),
    "HOP every minute, 5 minutes long": ("HOP", "INTERVAL '1' MINUTE, INTERVAL '5' MINUTE", 4),
    "SESSION of trades no more than 30 seconds apart": ("SESSION", "INTERVAL '30' SECOND", 3),
}


def at(hour: int, minute: int, second: int) -> datetime:
    """A moment of the day of the example."""
    return datetime(2026, 1, 1, hour, minute, second, tzinfo=UTC)


ROWS = [
    ("ACME", 100.0, at(10, 0, 1)),
    ("ACME", 101.0, at(10, 0, 20)),
    ("ZORG", 50.0, at(10, 0, 40)),
    ("ACME", 102.0, at(10, 0, 55)),
    ("ACME", 110.0, at(10, 1, 5)),
    ("LAST", 1.0, at(10, 2, 10)),  # the watermark is five seconds behind it: all before 10:02:05 is complete
]


async def first_rows(executor: StreamingSQLExecutor, sql: str, count: int) -> list[tuple[object, ...]]:
    """So many rows of a query; leaving the loop ends it."""
    found: list[tuple[object, ...]] = []
    async for batch in executor.execute_streaming_sql(sql):
        found += [tuple(row.values()) for row in batch.to_pylist()]
        if len(found) >= count:
            break
    return sorted(found, key=lambda row: (str(row[1]), str(row[0])))


async def run(executor: StreamingSQLExecutor) -> None:
    """All three queries at once."""
    loops = [
        first_rows(executor, QUERY.format(window=window, length=length), count)
        for window, length, count in WINDOWS.values()
    ]
    for title, rows in zip(WINDOWS, await asyncio.gather(*loops), strict=True):
        print(title)
        for symbol, start, end, trades, average in rows:
            print(f"  {start:%H:%M:%S} - {end:%H:%M:%S}  {symbol}  trades {trades}  average {average:.2f}")


def main() -> None:
    """Define the stream, fill it, read the windows."""
    with StreamingSQLExecutor() as executor:
        executor.execute_ddl(TRADES)
        executor.database.append("trades", [{"symbol": s, "price": p, "ts": ts} for s, p, ts in ROWS])
        asyncio.run(run(executor))


if __name__ == "__main__":
    main()
