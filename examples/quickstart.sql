CREATE STREAM trades (
  symbol STRING NOT NULL,
  price DECIMAL(12, 4),
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'topic', partitions = 4);

CREATE MATERIALIZED VIEW prices AS
SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute, AVG(price) AS average
FROM trades
GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE);
