WITH windows AS (
  SELECT time_bucket(INTERVAL 2 SECOND, dateTime) - INTERVAL 2 SECOND * back AS window_start, auction
  FROM bid, range(5) AS earlier (back)
),
counted AS (
  SELECT window_start, auction, count(*) AS num FROM windows GROUP BY window_start, auction
)
SELECT window_start, auction, num
FROM counted
QUALIFY rank() OVER (PARTITION BY window_start ORDER BY num DESC) = 1
