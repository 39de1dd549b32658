-- `arrivals` has the bids with the times at which the run says that it processed them.
SELECT
  bidder,
  count(*) AS bid_count,
  time_bucket(INTERVAL 10 SECOND, arrived) AS starttime,
  time_bucket(INTERVAL 10 SECOND, arrived) + INTERVAL 10 SECOND AS endtime
FROM arrivals
GROUP BY ALL
