-- Pasted from a Flink job: quoted option keys, a table-valued window function, a statement set.

CREATE TABLE orders (
  order_id BIGINT,
  customer STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '10' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'broker:9092',
  'properties.group.id' = 'revenue',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE revenue (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  customer STRING,
  revenue DECIMAL(38, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = 'revenue',
  'properties.bootstrap.servers' = 'broker:9092',
  'format' = 'json'
);

INSERT INTO revenue
SELECT window_start, window_end, customer, CAST(SUM(amount) AS DECIMAL(38, 2))
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(order_time), INTERVAL '5' MINUTES, INTERVAL '1' HOUR))
GROUP BY window_start, window_end, customer;
