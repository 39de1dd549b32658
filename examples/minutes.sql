-- From rows to windows in one script: penstock run --once examples/minutes.sql
-- Every run appends the rows again; give it a new --state to start from nothing.

CREATE STREAM trades (
  symbol STRING NOT NULL,
  price DECIMAL(12, 4),
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
)
WITH (
  connector = 'topic'
);

CREATE MATERIALIZED VIEW prices AS
SELECT
  symbol,
  TUMBLE_START(ts, INTERVAL '1' MINUTE) AS minute,
  AVG(price) AS average,
  COUNT(*) AS trades
FROM trades
GROUP BY
  symbol,
  TUMBLE(ts, INTERVAL '1' MINUTE);

INSERT INTO trades
VALUES
  ('ACME', 10.00, TIMESTAMP '2026-01-01 10:00:01'),
  ('ACME', 11.00, TIMESTAMP '2026-01-01 10:00:30'),
  ('ZORG', 20.00, TIMESTAMP '2026-01-01 10:00:59'),
  ('ACME', 12.00, TIMESTAMP '2026-01-01 10:01:00');

-- The windows are closed before this is answered.
SELECT
  symbol,
  minute,
  average,
  trades
FROM prices
ORDER BY
  minute,
  symbol;

-- A query over the stream itself: a job of its own that is gone when it is answered.
SELECT
  symbol,
  price
FROM trades
WHERE
  price > 10.5;
