-- What refusals look like: `penstock check examples/mistakes.sql`

CREATE STREAM trades (
  symbol STRING,
  price DECIMAL(12, 4),
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'topic');

SELECT symbol, prise FROM trades;

INSERT INTO trades
SELECT t.symbol, t.price, u.ts
FROM trades t LEFT JOIN trades u ON t.symbol = u.symbol;

DELETE FROM trades WHERE symbol = 'AAPL';
