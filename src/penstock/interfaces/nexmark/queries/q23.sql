-- Bids with the person who bids, and the auctions which that person sells.
CREATE MATERIALIZED VIEW q23 AS
SELECT
  b.auction,
  b.bidder,
  b.price,
  b.dateTime AS bid_dateTime,
  p.name,
  p.city,
  p.state,
  a.id AS selling,
  a.itemName,
  a.category
FROM bid AS b
INNER JOIN person AS p ON b.bidder = p.id
INNER JOIN auction AS a ON b.bidder = a.seller;
