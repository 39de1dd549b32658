WITH found AS (
  SELECT
    *,
    coalesce(
      (list_position(['apple', 'google', 'facebook', 'baidu'], lower(channel)) - 1)::VARCHAR,
      CASE WHEN contains(url, '&channel_id=') THEN split_part(split_part(url, '&channel_id=', 2), '&', 1) END
    ) AS channel_id
  FROM bid
)
SELECT auction, bidder, price, channel, channel_id FROM found WHERE channel_id <> ''
