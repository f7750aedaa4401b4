# ruff: noqa: INP001 - run by Alembic, by path: this folder holds scripts, not importable modules
"""Applies migrations on the connection, and in the transaction, that `journal.migrate` already holds."""

from __future__ import annotations

from alembic import context

from airflow_provider_streams.journal.migrate import VERSION_TABLE

# No fileConfig here: logging belongs to Airflow.
context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
