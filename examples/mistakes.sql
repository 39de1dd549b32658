-- What refusals look like: `penstock check examples/mistakes.sql`

CREATE STREAM trades (
  symbol STRING,
  price DECIMAL(12, 4),
  ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'topic');

SELECT symbol, prise FROM trades;

SELECT symbol, HOP_START(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE), MAX(price)
FROM trades
GROUP BY symbol, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE);

SELECT t.symbol, t.price, u.price
FROM trades t LEFT JOIN trades u ON t.symbol = u.symbol;

DELETE FROM trades WHERE symbol = 'AAPL';

CREATE STREAM quotes (symbol STRING, bid DOUBLE) WITH (connector = 'kafka', topik = 'quotes');
