"""From statements and a catalog snapshot to logical plans and the text that Spark runs. Pure: no Spark, no I/O."""
