"""Read one segment range of a plan: stored bytes in, Arrow record batches out."""
