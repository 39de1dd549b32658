-- One topic of events, and the three relations of the benchmark over it.
CREATE STREAM nexmark (
  event_type INT,
  person STRUCT<
    id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP,
    extra STRING
  >,
  auction STRUCT<
    id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
    expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
  >,
  bid STRUCT<
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
  >,
  dateTime TIMESTAMP,
  WATERMARK FOR dateTime AS dateTime - INTERVAL '4' SECOND
) WITH (connector = 'topic', partitions = 2, idle_timeout = '1 day');

CREATE VIEW person AS
SELECT
  person.id AS id,
  person.name AS name,
  person.emailAddress AS emailAddress,
  person.creditCard AS creditCard,
  person.city AS city,
  person.state AS state,
  dateTime,
  person.extra AS extra
FROM nexmark
WHERE event_type = 0;

CREATE VIEW auction AS
SELECT
  auction.id AS id,
  auction.itemName AS itemName,
  auction.description AS description,
  auction.initialBid AS initialBid,
  auction.reserve AS reserve,
  dateTime,
  auction.expires AS expires,
  auction.seller AS seller,
  auction.category AS category,
  auction.extra AS extra
FROM nexmark
WHERE event_type = 1;

CREATE VIEW bid AS
SELECT
  bid.auction AS auction,
  bid.bidder AS bidder,
  bid.price AS price,
  bid.channel AS channel,
  bid.url AS url,
  dateTime,
  bid.extra AS extra
FROM nexmark
WHERE event_type = 2;
