"""The Nexmark benchmark: its queries, what they must answer, and the proof that they do."""
