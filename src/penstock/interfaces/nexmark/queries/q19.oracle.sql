WITH best AS (
  SELECT auction, list(bid ORDER BY price DESC, dateTime, bidder, channel, extra)[:10] AS bids FROM bid GROUP BY auction
),
places AS (
  SELECT unnest(bids) AS b, unnest(range(1, len(bids) + 1)) AS rank_number FROM best
)
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra, rank_number FROM places
