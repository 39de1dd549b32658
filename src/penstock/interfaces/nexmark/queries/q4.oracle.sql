WITH won AS (
  SELECT
    category,
    (
      SELECT max(price)
      FROM bid
      WHERE bid.auction = auction.id AND bid.dateTime >= auction.dateTime AND bid.dateTime <= auction.expires
    ) AS final
  FROM auction
)
SELECT category, sum(final)::DOUBLE / count(*) AS average
FROM won
WHERE final IS NOT NULL
GROUP BY category
