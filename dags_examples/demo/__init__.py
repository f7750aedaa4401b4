"""The demos behind `make demo`; no DAGs."""
