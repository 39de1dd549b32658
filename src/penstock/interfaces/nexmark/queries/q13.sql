-- Bids with what a table of ten thousand rows has to say about them.
CREATE MATERIALIZED VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid AS b
INNER JOIN side_input AS s ON b.auction % 10000 = s.key;
