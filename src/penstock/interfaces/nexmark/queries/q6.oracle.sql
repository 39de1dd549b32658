WITH won AS (
  SELECT auction.id, auction.seller, auction.expires, max(bid.price) AS price
  FROM auction, bid
  WHERE bid.auction = auction.id AND bid.dateTime >= auction.dateTime AND bid.dateTime <= auction.expires
  GROUP BY auction.id, auction.seller, auction.expires
),
numbered AS (
  SELECT *, row_number() OVER (PARTITION BY seller ORDER BY expires, id) AS place FROM won
)
SELECT one.id, one.seller, sum(other.price)::DOUBLE / count(*) AS average
FROM numbered AS one, numbered AS other
WHERE other.seller = one.seller AND other.place BETWEEN one.place - 9 AND one.place
GROUP BY one.id, one.seller
