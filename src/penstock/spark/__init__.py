"""Spark: the session, the calls into it, its checkpoints and its state; nothing else makes sessions or queries."""
