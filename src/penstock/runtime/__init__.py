"""Jobs while they run: event time, states, checkpoints."""
