-- The highest bid of each ten seconds; all of them where several are equal.
CREATE MATERIALIZED VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND) AS b
INNER JOIN (
  SELECT window_start, window_end, MAX(price) AS highest
  FROM TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) AS m
ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.price = m.highest;
