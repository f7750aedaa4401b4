"""Windows of any table of Spark's catalogs, replaced by Spark's own `overwrite`."""
