"""Sources and sinks: rows into Spark and out of it. A connector knows nothing of jobs."""
