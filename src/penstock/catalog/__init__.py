"""What is defined: streams, tables, views, sinks, functions and secrets, as frozen values."""
