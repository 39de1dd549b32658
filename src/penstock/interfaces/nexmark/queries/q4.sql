-- For each category the mean of the winning prices of its auctions: an aggregate of an aggregate.
CREATE MATERIALIZED VIEW q4 AS
SELECT category, AVG(final) AS average
FROM (
  SELECT a.id, a.category, MAX(b.price) AS final
  FROM auction AS a
  INNER JOIN bid AS b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
  GROUP BY a.id, a.category
) AS won
GROUP BY category;
