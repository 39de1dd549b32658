SELECT auction, price, bidder, dateTime, extra
FROM bid
QUALIFY rank() OVER (PARTITION BY epoch_ms(dateTime) // 10000 ORDER BY price DESC) = 1
