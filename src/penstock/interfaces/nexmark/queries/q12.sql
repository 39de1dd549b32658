-- How many bids of a bidder were processed in each ten seconds of the clock.
CREATE MATERIALIZED VIEW q12 AS
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TUMBLE(TABLE (SELECT bidder, PROCTIME() AS arrived FROM bid), DESCRIPTOR(arrived), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end;
