"""Iceberg tables by pyiceberg: one commit to a catalog replaces a window."""
