SELECT DISTINCT ON (auction.id)
  auction.id,
  auction.itemName,
  auction.description,
  auction.initialBid,
  auction.reserve,
  auction.dateTime,
  auction.expires,
  auction.seller,
  auction.category,
  auction.extra,
  bid.auction,
  bid.bidder,
  bid.price,
  bid.dateTime AS bid_dateTime,
  bid.extra AS bid_extra
FROM auction, bid
WHERE auction.id = bid.auction AND bid.dateTime >= auction.dateTime AND bid.dateTime <= auction.expires
ORDER BY auction.id, bid.price DESC, bid.dateTime, bid.bidder, bid.extra
