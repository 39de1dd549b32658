WITH ranked AS (
  SELECT
    *,
    CASE WHEN price < 10000 THEN 1 WHEN price < 1000000 THEN 2 ELSE 3 END AS rank,
    strftime(dateTime, '%Y-%m-%d') AS day
  FROM bid
)
SELECT
  day,
  count(*) AS total_bids,
  count(CASE rank WHEN 1 THEN 1 END) AS rank1_bids,
  count(CASE rank WHEN 2 THEN 1 END) AS rank2_bids,
  count(CASE rank WHEN 3 THEN 1 END) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT CASE rank WHEN 1 THEN bidder END) AS rank1_bidders,
  count(DISTINCT CASE rank WHEN 2 THEN bidder END) AS rank2_bidders,
  count(DISTINCT CASE rank WHEN 3 THEN bidder END) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT CASE rank WHEN 1 THEN auction END) AS rank1_auctions,
  count(DISTINCT CASE rank WHEN 2 THEN auction END) AS rank2_auctions,
  count(DISTINCT CASE rank WHEN 3 THEN auction END) AS rank3_auctions
FROM ranked
GROUP BY day
