"""Start Spark, check it, ship this package to it, and end it with its task."""
