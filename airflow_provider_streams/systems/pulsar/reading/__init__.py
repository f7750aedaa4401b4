"""Read one split of a plan: entries in, Arrow record batches out."""
