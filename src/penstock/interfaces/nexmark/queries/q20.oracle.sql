SELECT
  bid.auction,
  bid.bidder,
  bid.price,
  bid.channel,
  bid.url,
  bid.dateTime AS bid_dateTime,
  bid.extra AS bid_extra,
  auction.itemName,
  auction.description,
  auction.initialBid,
  auction.reserve,
  auction.dateTime AS auction_dateTime,
  auction.expires,
  auction.seller,
  auction.category,
  auction.extra AS auction_extra
FROM (FROM auction WHERE category = 10) AS auction
JOIN bid ON auction.id = bid.auction
