"""From names to the numbers of their rows. Reading never creates one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Update, case, delete, func, insert, select, update

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import digest, landings, pins, readers, runs, sources
from airflow_provider_streams.model.window import EPOCH


def find_source(connection: Connection, source_key: str) -> int | None:
    """The source's row; None: never heard of."""
    return connection.execute(select(sources.c.id).where(sources.c.digest == digest(source_key))).scalar()


def find_reader(connection: Connection, source_key: str, reader: str) -> int | None:
    """The row of a source's reader; None: never heard of."""
    statement = (
        select(readers.c.id)
        .join(sources, readers.c.source_id == sources.c.id)
        .where(sources.c.digest == digest(source_key), readers.c.digest == digest(reader))
    )
    return connection.execute(statement).scalar()


def ensure_source(database: Database, source_key: str) -> int:
    """The source's row, made if it is new."""
    return database.winner(
        lambda connection: find_source(connection, source_key),
        lambda: insert(sources).values(digest=digest(source_key), source_key=source_key),
    )


def write_source(database: Database, source_key: str, written: str) -> None:
    """Keep a source as JSON beside its key, once it is known."""
    with database.reading() as connection:
        if written_source(connection, source_key) == written:
            return
    source_id = ensure_source(database, source_key)
    with database.writing() as connection:
        connection.execute(update(sources).where(sources.c.id == source_id).values(source=written))


def ensure_reader(database: Database, source_key: str, reader: str) -> int:
    """The row of a source's reader, made if it is new."""
    return database.winner(
        lambda connection: find_reader(connection, source_key, reader),
        lambda: insert(readers).values(
            source_id=ensure_source(database, source_key), digest=digest(reader), reader=reader
        ),
    )


def change(reader_id: int) -> Update:
    """Notes that something is about to change of what is known of a reader's windows: its version becomes greater.

    A reader that is forgotten and made again must not have a version that was seen before, so it is about the time.
    """
    now = (datetime.now(UTC) - EPOCH) // timedelta(microseconds=1)
    before = func.coalesce(readers.c.version, 0)
    return update(readers).where(readers.c.id == reader_id).values(version=case((before < now, now), else_=before + 1))


def watched_from(connection: Connection, reader_id: int) -> datetime | None:
    """Since when somebody watches for a reader; None: nobody does."""
    return connection.execute(select(readers.c.watched_from).where(readers.c.id == reader_id)).scalar()


def watch_from(connection: Connection, reader_id: int, moment: datetime) -> datetime:
    """From now on somebody watches, since then; or since whenever another one was quicker to say."""
    mine = (readers.c.id == reader_id, readers.c.watched_from.is_(None))
    connection.execute(update(readers).where(*mine).values(watched_from=moment))
    return watched_from(connection, reader_id) or moment


def list_readers(connection: Connection) -> list[tuple[str, str]]:
    """Every (source key, reader), in order."""
    found = connection.execute(
        select(sources.c.source_key, readers.c.reader).join(readers, readers.c.source_id == sources.c.id)
    )
    return sorted((row.source_key, row.reader) for row in found)


def written_source(connection: Connection, source_key: str) -> str | None:
    """The source behind a key as JSON; None: nobody who knew it wrote yet."""
    return connection.execute(select(sources.c.source).where(sources.c.digest == digest(source_key))).scalar()


def claim(connection: Connection, reader_id: int, version: int) -> bool:
    """Until the transaction ends, nobody else changes what is known of a reader; False: it has changed since."""
    same = (readers.c.id == reader_id, func.coalesce(readers.c.version, 0) == version)
    claimed = connection.execute(update(readers).where(*same).values(version=version))
    return claimed.rowcount == 1


def forget_reader(connection: Connection, reader_id: int) -> None:
    """Everything that is known of a reader; its source stays, with what was recorded of it."""
    for table in (runs, pins, landings):
        connection.execute(delete(table).where(table.c.reader_id == reader_id))
    connection.execute(delete(readers).where(readers.c.id == reader_id))
