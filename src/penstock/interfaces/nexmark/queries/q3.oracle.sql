SELECT person.name, person.city, person.state, auction.id
FROM person, auction
WHERE person.id = auction.seller
  AND auction.category = 10
  AND (person.state = 'OR' OR person.state = 'ID' OR person.state = 'CA')
