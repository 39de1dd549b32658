"""What we keep on disk."""
