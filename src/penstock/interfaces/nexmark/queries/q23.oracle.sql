SELECT
  bid.auction,
  bid.bidder,
  bid.price,
  bid.dateTime AS bid_dateTime,
  person.name,
  person.city,
  person.state,
  auction.id AS selling,
  auction.itemName,
  auction.category
FROM person, auction, bid
WHERE auction.seller = person.id AND bid.bidder = person.id
