-- Bids on auctions whose id is a multiple of 123.
CREATE MATERIALIZED VIEW q2 AS
SELECT auction, price FROM bid WHERE auction % 123 = 0;
