"""The schemas of our own connectors and formats, one module for each family."""
