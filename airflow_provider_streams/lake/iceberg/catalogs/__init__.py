"""Catalogs of Iceberg tables: opened with time limits, and with no secret outside TLS."""
