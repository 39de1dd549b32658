SELECT auction, price FROM bid WHERE auction = auction // 123 * 123
