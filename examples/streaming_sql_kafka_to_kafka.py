"""From topic to topic: trades come in, minutes go out, each exactly once, also when the program stops in between.

Needs a broker of Kafka; one on this machine takes a command:

    penstock kafka up
    python examples/streaming_sql_kafka_to_kafka.py [ADDRESS]

Without any broker, the same pipeline runs over embedded topics:

    python examples/streaming_sql_kafka_to_kafka.py embedded

Prints:
the first minute
  10:00  ACME  average 101.00  volume 300  trades 2
  10:00  ZORG  average 50.00  volume 10  trades 1
stopped, and started again with more trades
  10:00  ACME  average 101.00  volume 300  trades 2
  10:00  ZORG  average 50.00  volume 10  trades 1
  10:01  ACME  average 110.00  volume 42  trades 2
"""

from __future__ import annotations

import sys
import tempfile
import time

import penstock

TOPICS = """
    CREATE SINK exchange (symbol STRING, price DOUBLE, volume INT, ts TIMESTAMP)
      WITH ({trades}, partitions = 4, 'key.fields' = 'symbol');
    CREATE STREAM trades (
      symbol STRING, price DOUBLE, volume INT, ts TIMESTAMP,
      WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH ({trades_in});
    CREATE SINK minutes (symbol STRING, window_start TIMESTAMP, average DOUBLE, volume BIGINT, trades BIGINT)
      WITH ({minutes}, partitions = 2, 'key.fields' = 'symbol'{exactly_once});
    CREATE STREAM written (symbol STRING, window_start TIMESTAMP, average DOUBLE, volume BIGINT, trades BIGINT)
      WITH ({minutes_in});
"""
PIPELINE = """
    INSERT INTO minutes
      SELECT symbol, window_start, AVG(price), SUM(volume), COUNT(*)
      FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
      WHERE price > 0
      GROUP BY symbol, window_start;
    CREATE MATERIALIZED VIEW results AS SELECT * FROM written;
"""
FIRST = """
    INSERT INTO exchange VALUES
      ('ACME', 100.0, 100, TIMESTAMP '2026-01-01 10:00:05'),
      ('ZORG', 50.0, 10, TIMESTAMP '2026-01-01 10:00:30'),
      ('ZORG', 0.0, 99, TIMESTAMP '2026-01-01 10:00:31'),
      ('ACME', 102.0, 200, TIMESTAMP '2026-01-01 10:00:40'),
      ('ACME', 109.0, 40, TIMESTAMP '2026-01-01 10:01:01');
"""
MORE = "INSERT INTO exchange VALUES ('ACME', 111.0, 2, TIMESTAMP '2026-01-01 10:01:59')"


def options(broker: str) -> dict[str, str]:
    """What the statements say of the topics: names that no other run of this program has."""
    run = f"{time.time_ns():x}"
    if broker == "embedded":
        trades, minutes = (
            f"connector = 'topic', topic = 'trades-{run}'",
            f"connector = 'topic', topic = 'minutes-{run}'",
        )
        return {
            "trades": trades,
            "trades_in": f"{trades}, partitions = 4",
            "minutes": minutes,
            "minutes_in": f"{minutes}, partitions = 2",
            "exactly_once": "",
        }
    kafka = f"connector = 'kafka', bootstrap_servers = '{broker}', format = 'json'"
    trades, minutes = f"{kafka}, topic = 'trades-{run}'", f"{kafka}, topic = 'minutes-{run}'"
    return {
        "trades": trades,
        "trades_in": f"{trades}, start = 'earliest'",
        "minutes": minutes,
        "minutes_in": f"{minutes}, start = 'earliest'",
        "exactly_once": ", delivery = 'exactly_once'",
    }


def show(db: penstock.Database, complete: str) -> None:
    """Say that all trades up to a moment have come, and print the minutes that are in the topic."""
    db.settle(180)
    db.execute(f"ADVANCE WATERMARK FOR trades TO TIMESTAMP '2026-01-01 {complete}'")
    db.settle(180)  # what was written by now is read back
    rows = db.sql(
        "SELECT window_start, symbol, average, volume, trades FROM results ORDER BY window_start, symbol"
    ).rows()
    for start, symbol, average, volume, trades in rows:
        print(f"  {start:%H:%M}  {symbol}  average {average:.2f}  volume {volume}  trades {trades}")


def main(broker: str = "127.0.0.1:9092") -> None:
    """Two runs of one pipeline."""
    with tempfile.TemporaryDirectory() as state:
        with penstock.connect(state) as db:
            db.execute(TOPICS.format(**options(broker)))
            db.execute(FIRST)
            db.execute(PIPELINE)
            print("the first minute")
            show(db, "10:01:00")
        # Trades come while nothing runs; jobs go on where they were.
        with penstock.connect(state) as db:
            db.execute(MORE)
            print("stopped, and started again with more trades")
            show(db, "10:02:00")


if __name__ == "__main__":
    main(*sys.argv[1:])
