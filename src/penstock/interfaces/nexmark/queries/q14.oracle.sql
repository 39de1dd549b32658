SELECT
  auction,
  bidder,
  price::DECIMAL(20, 0) * 0.908 AS price,
  CASE
    WHEN date_part('hour', dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN date_part('hour', dateTime) BETWEEN 7 AND 19 THEN 'otherTime'
    ELSE 'nightTime'
  END AS bidTimeType,
  dateTime,
  extra,
  length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE price * 908 > 1000000000 AND price * 908 < 50000000000
