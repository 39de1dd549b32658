"""`make run`: half a minute of a trade stream, its views and watermarks live, and a check against a batch answer."""
