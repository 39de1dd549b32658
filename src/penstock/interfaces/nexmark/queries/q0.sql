-- Every bid, unchanged.
CREATE MATERIALIZED VIEW q0 AS
SELECT auction, bidder, price, dateTime, extra FROM bid;
