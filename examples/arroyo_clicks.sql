-- Pasted from Arroyo: bare option keys, event_time_field, windows without a time column.

create table clicks (
  timestamp timestamp not null,
  user_id bigint unsigned not null,
  page text
) with (
  connector = 'kafka',
  bootstrap_servers = 'broker:9092',
  topic = 'clicks',
  type = 'source',
  format = 'json',
  event_time_field = 'timestamp',
  'source.offset' = 'earliest'
);

select tumble(interval '1 minute') as window, count(*) as clicks
from clicks
group by window;

select user_id, session(interval '20 seconds') as window, count(*) as pages
from clicks
group by user_id, window;
