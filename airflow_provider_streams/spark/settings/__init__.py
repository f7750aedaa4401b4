"""Settings and variables that Spark starts with, wherever they are written, and what is wrong with them."""
