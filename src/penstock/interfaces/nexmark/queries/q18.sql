-- For each bidder and auction the last bid.
CREATE MATERIALIZED VIEW q18 AS
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT
    *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC, channel, extra) AS place
  FROM bid
) AS bids
WHERE place = 1;
