"""The rows of sources and readers: found by name, made when first needed, forgotten. Reading never makes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Update, case, delete, exists, func, insert, or_, select, update

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import digest, landings, pins, readers, runs, sources
from airflow_provider_streams.model.window.window import microseconds_of


class JournalPart:
    """One subject of the journal, as methods on its database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def _reading(self, source_key: str, reader: str) -> Iterator[tuple[Connection, int | None]]:
        """A transaction that only reads, and the reader's row; None: it has none."""
        with self._database.reading() as connection:
            yield connection, find_reader(connection, source_key, reader)

    @contextmanager
    def _changing(self, source_key: str, reader: str) -> Iterator[tuple[Connection, int | None]]:
        """A transaction in which only the caller changes the reader, and the reader's row; None: it has none."""
        with self._database.writing() as connection:
            reader_id = find_reader(connection, source_key, reader)
            if reader_id is not None:
                connection.execute(change(reader_id))
            yield connection, reader_id

    @contextmanager
    def _beginning(self, source_key: str, reader: str) -> Iterator[tuple[Connection, int]]:
        """As `_changing`; the reader's row is made if it is new."""
        reader_id = ensure_reader(self._database, source_key, reader)
        with self._database.writing() as connection:
            connection.execute(change(reader_id))
            yield connection, reader_id


class Readers(JournalPart):
    """Which sources and readers the journal knows."""

    def store_source(self, source_key: str, source: Mapping[str, Any]) -> None:
        """Keep the source of a key, as plain JSON values: a caller that has only the key can then ask the stream."""
        if self.source(source_key) != source:
            source_id = ensure_source(self._database, source_key)
            with self._database.writing() as connection:
                connection.execute(update(sources).where(sources.c.id == source_id).values(source=source))

    def source(self, source_key: str) -> dict[str, Any] | None:
        """The source of a key as plain JSON values; None: so far only its key was given."""
        with self._database.reading() as connection:
            return connection.execute(select(sources.c.source).where(sources.c.digest == digest(source_key))).scalar()

    def sources(self) -> list[tuple[str, str]]:
        """Every (source key, reader) that the journal knows, in order."""
        with self._database.reading() as connection:
            found = connection.execute(select(sources.c.source_key, readers.c.reader).join_from(sources, readers))
            return sorted((row.source_key, row.reader) for row in found)

    def watched_from(self, source_key: str, reader: str, newest: datetime) -> datetime:
        """The start of the reader's first window, or the newest window's start when this was first asked."""
        reader_id = ensure_reader(self._database, source_key, reader)
        since = select(readers.c.watched_from).where(readers.c.id == reader_id)
        with self._database.reading() as connection:
            watched, first = connection.execute(since).scalar(), _first_start(connection, reader_id)
        if watched is None:
            with self._database.writing() as connection:
                unwatched = (readers.c.id == reader_id, readers.c.watched_from.is_(None))
                connection.execute(update(readers).where(*unwatched).values(watched_from=newest))
                watched = connection.execute(since).scalar() or newest  # another caller may have been quicker
        return watched if first is None else min(first, watched)

    def forget_reader(self, source_key: str, reader: str) -> bool:
        """Forget all windows, plans, runs and landings of a reader; False: it was not known.

        Its table stays, and is no reader's from then on. A task that is reading for it at this moment fails.
        """
        with self._changing(source_key, reader) as (connection, reader_id):
            if reader_id is not None:
                forget_reader(connection, reader_id)
        return reader_id is not None

    def forget_unread(self, source_key: str, reader: str) -> bool:
        """Forget a reader that only failed to find its source; whether the journal does not know it any more."""
        with self._changing(source_key, reader) as (connection, reader_id):
            if reader_id is None:
                return True
            if is_unread := _is_unread(connection, reader_id):
                forget_reader(connection, reader_id)
        return is_unread


def find_source(connection: Connection, source_key: str) -> int | None:
    """The source's row; None: it has none."""
    return connection.execute(select(sources.c.id).where(sources.c.digest == digest(source_key))).scalar()


def find_reader(connection: Connection, source_key: str, reader: str) -> int | None:
    """The row of a source's reader; None: it has none."""
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


def change(reader_id: int) -> Update:
    """Locks a reader's row until the transaction ends, and makes its version greater.

    A reader that is forgotten and made again must not have a version that was seen before, so it is about the time.
    """
    now, before = microseconds_of(datetime.now(UTC)), readers.c.version
    return update(readers).where(readers.c.id == reader_id).values(version=case((before < now, now), else_=before + 1))


def claim(connection: Connection, reader_id: int, version: int) -> bool:
    """Lock a reader's row until the transaction ends; False: the reader has changed since that version."""
    same = (readers.c.id == reader_id, readers.c.version == version)
    return connection.execute(update(readers).where(*same).values(version=version)).rowcount == 1


def forget_reader(connection: Connection, reader_id: int) -> None:
    """Delete all rows of a reader; its source stays, with the cuts and tails that were recorded of it."""
    for table in (runs, pins, landings):
        connection.execute(delete(table).where(table.c.reader_id == reader_id))
    connection.execute(delete(readers).where(readers.c.id == reader_id))


def _is_unread(connection: Connection, reader_id: int) -> bool:
    """Whether no plan was made for a reader, no trigger waits for it, and its runs did not find their source."""
    is_planned = exists().where(pins.c.reader_id == reader_id)
    was_tried = exists().where(runs.c.reader_id == reader_id, runs.c.error_type.is_distinct_from("SourceNotFound"))
    is_watched = exists().where(readers.c.id == reader_id, readers.c.watched_from.is_not(None))
    return not connection.execute(select(or_(is_planned, was_tried, is_watched))).scalar()


def _first_start(connection: Connection, reader_id: int) -> datetime | None:
    """Where the first window starts that was ever planned or tried; None: none was."""
    firsts = (select(func.min(table.c.window_start)).where(table.c.reader_id == reader_id) for table in (pins, runs))
    return min((found for one in firsts if (found := connection.execute(one).scalar()) is not None), default=None)
