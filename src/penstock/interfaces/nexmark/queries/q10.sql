-- Every bid into files, in directories by day and minute.
CREATE SINK q10 WITH (connector = 'file', path = 'q10', format = 'parquet', partition_by = 'dt, hm') AS
SELECT
  auction,
  bidder,
  price,
  dateTime,
  extra,
  DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS dt,
  DATE_FORMAT(dateTime, 'HH:mm') AS hm
FROM bid;
