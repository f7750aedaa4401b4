"""The PySpark Data Sources: a split in, Arrow record batches out."""
