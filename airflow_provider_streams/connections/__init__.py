"""Airflow connections as settings of streams, tables and the journal."""
