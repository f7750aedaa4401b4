"""Brings a journal's database to this release's tables: safe when many processes open it at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from airflow_provider_streams.errors import JournalError

HEAD: Final = "0_1_0"
"""The newest revision in `migrations/versions`."""

VERSION_TABLE: Final = "streams_alembic_version"

_SCRIPTS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x73747265616D73  # "streams" as a number: any constant that others will not pick
_MYSQL_LOCK = "airflow_provider_streams.journal"
_LOCK_SECONDS = 60
# Alembic keeps the running migration in module-level names.
_one_at_a_time = threading.Lock()


def revision(connection: Connection) -> str | None:
    """The database's revision; None: it holds no journal yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant
    return None if found is None else str(found)


def upgrade(connection: Connection) -> None:
    """Apply the missing migrations, inside the caller's write transaction, one process at a time.

    Raises:
        JournalError: this release does not know the tables' revision, or another process holds the lock for over a
            minute.
    """
    with _one_at_a_time:
        _lock(connection)
        found = revision(connection)  # again: another process may have been faster
        if found == HEAD:
            return
        # imported here: most processes find the journal ready, and Alembic takes longer to import than to ask
        from alembic import command  # noqa: PLC0415
        from alembic.config import Config  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
        config.attributes["connection"] = connection
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise JournalError(
                f"the journal is at revision {found}, and the newest that this release knows is {HEAD}. If a newer "
                "release has made it, install that release on this machine too. If this package made it before its "
                "first release, its tables cannot be changed into today's: use a new database."
            )
        with _in_silence():
            command.upgrade(config, "head")


@contextmanager
def _in_silence() -> Iterator[None]:
    """Without Alembic's line for each revision; it raises what goes wrong. Other threads' migrations are logged."""
    own = threading.get_ident()

    def is_kept(record: logging.LogRecord) -> bool:
        return record.thread != own or record.levelno >= logging.WARNING

    logger = logging.getLogger("alembic.runtime.migration")
    logger.addFilter(is_kept)
    try:
        yield
    finally:
        logger.removeFilter(is_kept)


def _lock(connection: Connection) -> None:
    """Wait for other processes; released with the transaction or, on MySQL, with the connection just after it.

    SQLite needs none: its write transaction is itself a lock.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    elif connection.dialect.name in ("mysql", "mariadb"):
        lock = {"name": _MYSQL_LOCK, "seconds": _LOCK_SECONDS}
        if connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), lock).scalar() != 1:
            raise JournalError("another process has been migrating the journal for over a minute. Look for it.")
