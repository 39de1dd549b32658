"""The SQL of the demo: one stream, a view for each kind of window."""

from __future__ import annotations

from typing import Final

from penstock.frozen import frozen

PARTITIONS: Final = 4
DELAY_SECONDS: Final = 5

STREAM: Final = f"""\
CREATE STREAM trades (
  symbol STRING NOT NULL,
  price DECIMAL(12, 2),
  volume INT,
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '{DELAY_SECONDS}' SECOND
)
WITH (
  connector = 'topic',
  partitions = {PARTITIONS}
)"""

TUMBLING: Final = """\
CREATE MATERIALIZED VIEW per_window AS
SELECT
  symbol,
  TUMBLE_START(ts, INTERVAL '20' SECOND) AS window_start,
  COUNT(*) AS trades,
  SUM(volume) AS volume,
  MAX(price) AS high
FROM trades
GROUP BY
  symbol,
  TUMBLE(ts, INTERVAL '20' SECOND)"""

HOPPING: Final = """\
CREATE MATERIALIZED VIEW moving AS
SELECT
  symbol,
  HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND) AS window_start,
  COUNT(*) AS trades,
  SUM(volume) AS volume
FROM trades
GROUP BY
  symbol,
  HOP(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND)"""

SESSIONS: Final = """\
CREATE MATERIALIZED VIEW bursts AS
SELECT
  symbol,
  SESSION_START(ts, INTERVAL '6' SECOND) AS burst_start,
  COUNT(*) AS trades,
  SUM(volume) AS volume
FROM trades
GROUP BY
  symbol,
  SESSION(ts, INTERVAL '6' SECOND)"""


@frozen
class DemoView:
    """A view of the demo, and the batch query over all rows at once that must give the same.

    `batch` is DuckDB's SQL over a table `trades` (symbol, price, volume, us), `us` being microseconds since 1970.
    """

    name: str
    title: str
    create: str
    columns: tuple[str, ...]
    batch: str


VIEWS: Final = (
    DemoView(
        "per_window",
        "tumbling, 20 s",
        TUMBLING,
        ("window_start", "symbol", "trades", "volume", "high"),
        """\
SELECT us // 20000000 * 20000000 AS start, symbol, COUNT(*), SUM(volume), MAX(price)
FROM trades GROUP BY ALL""",
    ),
    DemoView(
        "moving",
        "hopping, 20 s every 10 s",
        HOPPING,
        ("window_start", "symbol", "trades", "volume"),
        """\
SELECT us // 10000000 * 10000000 - hop * 10000000 AS start, symbol, COUNT(*), SUM(volume)
FROM trades, (VALUES (0), (1)) AS hops (hop) GROUP BY ALL""",
    ),
    DemoView(
        "bursts",
        "sessions, 6 s apart",
        SESSIONS,
        ("burst_start", "symbol", "trades", "volume"),
        """\
WITH marked AS (
  SELECT *, us - LAG(us) OVER (PARTITION BY symbol ORDER BY us) < 6000000 AS goes_on FROM trades
), numbered AS (
  SELECT *, COUNT(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (PARTITION BY symbol ORDER BY us ROWS UNBOUNDED PRECEDING)
    AS session
  FROM marked
)
SELECT MIN(us) AS start, symbol, COUNT(*), SUM(volume) FROM numbered GROUP BY symbol, session""",
    ),
)
