SELECT
  auction,
  strftime(dateTime, '%Y-%m-%d') AS day,
  count(*) AS total_bids,
  sum(CASE WHEN price < 10000 THEN 1 ELSE 0 END) AS rank1_bids,
  sum(CASE WHEN price BETWEEN 10000 AND 999999 THEN 1 ELSE 0 END) AS rank2_bids,
  sum(CASE WHEN price > 999999 THEN 1 ELSE 0 END) AS rank3_bids,
  min(price) AS min_price,
  max(price) AS max_price,
  sum(price)::DOUBLE / count(*) AS avg_price,
  sum(price) AS sum_price
FROM bid
GROUP BY ALL
