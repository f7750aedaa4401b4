"""From names to the numbers of their rows. Reading never creates one."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import digest, readers, sources


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


def ensure_reader(database: Database, source_key: str, reader: str) -> int:
    """The row of a source's reader, made if it is new."""
    return database.winner(
        lambda connection: find_reader(connection, source_key, reader),
        lambda: insert(readers).values(
            source_id=ensure_source(database, source_key), digest=digest(reader), reader=reader
        ),
    )


def list_readers(connection: Connection) -> list[tuple[str, str]]:
    """Every (source key, reader), in order."""
    found = connection.execute(
        select(sources.c.source_key, readers.c.reader).join(readers, readers.c.source_id == sources.c.id)
    )
    return sorted((row.source_key, row.reader) for row in found)
