SELECT DISTINCT person.id, person.name, time_bucket(INTERVAL 10 SECOND, person.dateTime) AS starttime
FROM person, auction
WHERE auction.seller = person.id AND epoch_ms(auction.dateTime) // 10000 = epoch_ms(person.dateTime) // 10000
