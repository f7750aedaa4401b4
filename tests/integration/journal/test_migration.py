"""The migrations make what `journal.tables` describes on each database, also after an attempt that was killed."""

from __future__ import annotations

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from airflow_provider_streams.journal import migrate, tables
from airflow_provider_streams.journal.store import Journal

ALSO_ON_MYSQL = True


def differences(url):
    options = {"version_table": migrate.VERSION_TABLE, "include_name": is_ours, "compare_type": True}
    engine = create_engine(url)
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts=options), tables.metadata)
    engine.dispose()
    return found


def is_ours(name, kind, _parents):
    return kind != "table" or name in tables.metadata.tables


def execute(url, *statements):
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_the_migrations_make_the_tables_as_they_are_described(url):
    Journal.open(url).close()
    assert differences(url) == []


def test_a_migration_that_was_killed_halfway_goes_on(url):
    """MySQL commits each CREATE TABLE by itself."""
    Journal.open(url).close()
    execute(url, "DROP TABLE streams_runs", "DROP TABLE streams_edges", f"DELETE FROM {migrate.VERSION_TABLE}")  # noqa: S608 - a constant
    Journal.open(url).close()
    assert differences(url) == []


def test_the_downgrade_leaves_nothing(url):
    Journal.open(url).close()
    config = Config()
    config.set_main_option("script_location", str(migrate._SCRIPTS))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert set(inspect(engine).get_table_names()) <= {migrate.VERSION_TABLE}
    engine.dispose()
