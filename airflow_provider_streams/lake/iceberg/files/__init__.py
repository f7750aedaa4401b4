"""Files of Iceberg tables: metadata, manifests and data."""
