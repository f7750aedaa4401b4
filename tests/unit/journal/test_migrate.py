from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from airflow_provider_streams.errors import JournalError
from airflow_provider_streams.journal import migrate
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import metadata

PACKAGE = Path(migrate.__file__).parent


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'journal.db'}"


def test_migrations_lead_to_the_tables_the_code_uses(url):
    database = Database(url)
    database.prepare()
    with database.reading() as connection:
        options = {"version_table": migrate.VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert migrate.revision(connection) == migrate.HEAD
        made = {
            table: {column["name"]: column["nullable"] for column in inspect(connection).get_columns(table)}
            for table in metadata.tables
        }
    assert made == {name: {c.name: c.nullable for c in table.columns} for name, table in metadata.tables.items()}


def test_there_is_one_line_of_migrations_and_its_end_is_the_head():
    config = Config()
    config.set_main_option("script_location", str(PACKAGE / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


def test_a_killed_migration_is_taken_up_again(url):
    """As on MySQL, where the tables of a killed transaction stay, without a version."""
    database = Database(url)
    database.prepare()
    with database.writing() as connection:
        connection.execute(text(f"DROP TABLE {migrate.VERSION_TABLE}"))
        connection.execute(text("DROP TABLE streams_edges"))
    again = Database(url)
    again.prepare()
    with again.reading() as connection:
        assert migrate.revision(connection) == migrate.HEAD
        assert inspect(connection).has_table("streams_edges")


def test_the_journal_of_a_newer_release_is_refused(url):
    database = Database(url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '9999'"))  # noqa: S608
    with pytest.raises(JournalError, match=r"revision 9999.*newer release"):
        Database(url).prepare()


def test_threads_that_open_an_empty_database_at_once_find_one_schema(url):
    barrier, failures = threading.Barrier(6), []

    def use():
        barrier.wait(600)
        try:
            Database(url).prepare()
        except Exception as error:  # noqa: BLE001 - the main thread fails on it
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert failures == []


def test_migrating_leaves_logging_alone(url, capsys):
    root = logging.getLogger()
    kept = logging.getLogger("another.library")
    before = (root.level, list(root.handlers), kept.disabled)
    Database(url).prepare()
    assert (root.level, list(root.handlers), kept.disabled) == before
    assert capsys.readouterr().out == ""


def test_a_journal_that_is_ready_opens_without_alembic(url):
    Database(url).prepare()
    script = (
        "import sys; from airflow_provider_streams.journal.store import Journal; "
        f"Journal.open({url!r}).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd="/").returncode == 0


def test_other_tables_in_the_database_are_left_alone(url):
    database = Database(url)
    with database._write() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('airflow')"))
    database.prepare()
    with database.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "airflow"
