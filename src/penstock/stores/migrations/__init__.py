"""The numbered steps that bring a catalog database to the current layout."""
