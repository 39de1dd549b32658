-- Pasted from RisingWave: a source with FORMAT … ENCODE …, a materialized view, a sink from it.

CREATE SOURCE visits (
  user_id BIGINT,
  url VARCHAR,
  visited_at TIMESTAMPTZ,
  WATERMARK FOR visited_at AS visited_at - INTERVAL '5 seconds'
) INCLUDE OFFSET AS kafka_offset
WITH (
  connector = 'kafka',
  topic = 'visits',
  properties.bootstrap.server = 'broker:9092',
  scan.startup.mode = 'earliest'
) FORMAT PLAIN ENCODE JSON;

CREATE MATERIALIZED VIEW visits_per_url AS
SELECT url, window_start, COUNT(*) AS visits
FROM TUMBLE(visits, visited_at, INTERVAL '2 MINUTES')
GROUP BY url, window_start, window_end
EMIT ON WINDOW CLOSE;

CREATE SINK visits_out FROM visits_per_url
WITH (
  connector = 'kafka',
  topic = 'visits_per_url',
  properties.bootstrap.server = 'broker:9092'
) FORMAT PLAIN ENCODE JSON;
