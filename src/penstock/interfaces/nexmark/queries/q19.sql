-- For each auction the ten highest bids, with their places.
CREATE MATERIALIZED VIEW q19 AS
SELECT auction, bidder, price, channel, url, dateTime, extra, rank_number
FROM (
  SELECT
    *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, bidder, channel, extra) AS rank_number
  FROM bid
) AS bids
WHERE rank_number <= 10;
