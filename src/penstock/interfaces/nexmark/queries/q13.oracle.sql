SELECT bid.auction, bid.bidder, bid.price, bid.dateTime, side_input.value
FROM bid, side_input
WHERE side_input.key = bid.auction - bid.auction // 10000 * 10000
