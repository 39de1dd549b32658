-- For each auction its winning bid: the highest while it was open, of equal ones the earliest.
CREATE MATERIALIZED VIEW q9 AS
SELECT
  id,
  itemName,
  description,
  initialBid,
  reserve,
  dateTime,
  expires,
  seller,
  category,
  extra,
  auction,
  bidder,
  price,
  bid_dateTime,
  bid_extra
FROM (
  SELECT
    a.*,
    b.auction,
    b.bidder,
    b.price,
    b.dateTime AS bid_dateTime,
    b.extra AS bid_extra,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.bidder, b.extra) AS place
  FROM auction AS a
  INNER JOIN bid AS b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
) AS bids
WHERE place = 1;
