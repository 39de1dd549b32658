-- For each auction that had a bid, the mean of the winning prices of its seller's last ten, itself included, as they closed.
CREATE MATERIALIZED VIEW q6 AS
SELECT
  id,
  seller,
  AVG(price) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT
    a.id,
    a.seller,
    a.expires,
    b.price,
    ROW_NUMBER() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.dateTime) AS place
  FROM auction AS a
  INNER JOIN bid AS b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
) AS won
WHERE place = 1;
