-- How many bids a bidder made in each session of activity; ten seconds without a bid end one.
CREATE MATERIALIZED VIEW q11 AS
SELECT
  bidder,
  COUNT(*) AS bid_count,
  SESSION_START(dateTime, INTERVAL '10' SECOND) AS starttime,
  SESSION_END(dateTime, INTERVAL '10' SECOND) AS endtime
FROM bid
GROUP BY bidder, SESSION(dateTime, INTERVAL '10' SECOND);
