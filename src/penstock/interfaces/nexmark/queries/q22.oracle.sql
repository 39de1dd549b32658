SELECT
  auction,
  bidder,
  price,
  channel,
  regexp_extract(url, '^[^/]*//[^/]*/([^/]*)/', 1) AS dir1,
  regexp_extract(url, '^[^/]*//[^/]*/[^/]*/([^/]*)/', 1) AS dir2,
  regexp_extract(url, '^[^/]*//[^/]*/[^/]*/[^/]*/([^/]*)/', 1) AS dir3
FROM bid
