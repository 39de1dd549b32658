"""Files as a source of numbered records: which there are, what is in them, and that it stays the same."""
