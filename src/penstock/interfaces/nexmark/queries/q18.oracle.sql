SELECT DISTINCT ON (bidder, auction) auction, bidder, price, channel, url, dateTime, extra
FROM bid
ORDER BY bidder, auction, dateTime DESC, price DESC, channel, extra
