"""The demos of `make demo`; no DAGs."""
