-- The auctions with most bids in the last ten seconds, every two seconds.
CREATE MATERIALIZED VIEW q5 AS
WITH counted AS (
  SELECT auction, window_start, window_end, COUNT(*) AS num
  FROM HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
  GROUP BY auction, window_start, window_end
)
SELECT c.window_start, c.auction, c.num
FROM counted AS c
INNER JOIN (
  SELECT window_start, window_end, MAX(num) AS most FROM counted GROUP BY window_start, window_end
) AS m
ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most;
