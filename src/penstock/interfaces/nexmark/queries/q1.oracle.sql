SELECT auction, bidder, price::DECIMAL(20, 0) * 0.908 AS price, dateTime, extra FROM bid
