-- Trades per minute, a running total per symbol, and an alert topic.
-- Every stream here is an embedded topic: no broker is needed.

CREATE STREAM trades (
  symbol STRING NOT NULL,
  price DECIMAL(12, 4),
  volume INT,
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
)
WITH (
  connector = 'topic',
  partitions = 4
);

-- One row for each symbol and minute, once the minute is over.
CREATE MATERIALIZED VIEW trades_per_minute AS
SELECT
  symbol,
  TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute,
  AVG(price) AS average_price,
  SUM(volume) AS total_volume,
  COUNT(*) AS trade_count
FROM trades
GROUP BY
  symbol,
  TUMBLE(ts, INTERVAL '1' MINUTE);

-- One row for each symbol, kept up to date.
CREATE MATERIALIZED VIEW latest_totals AS
SELECT
  symbol,
  COUNT(*) AS trade_count,
  SUM(price * volume) AS turnover
FROM trades
GROUP BY
  symbol;

CREATE STREAM large_trades (
  symbol STRING,
  turnover DECIMAL(38, 4),
  ts TIMESTAMP
)
WITH (
  connector = 'topic',
  type = 'sink'
);

INSERT INTO large_trades
SELECT
  symbol,
  CAST(price * volume AS DECIMAL(38, 4)),
  ts
FROM trades
WHERE
  price * volume > 1000000;
