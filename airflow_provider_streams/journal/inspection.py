"""What a journal database is, and which readers use it, without making or migrating anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, case, func, select, text
from sqlalchemy.engine import make_url

from airflow_provider_streams.errors import JournalError
from airflow_provider_streams.errors.databases import why_no_file
from airflow_provider_streams.errors.write_access import free_bytes
from airflow_provider_streams.journal import migrate
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import readers, runs, sources

State = Literal["absent", "ready", "older", "newer"]
"""`absent`: the first use makes it; `older`: the next use migrates it; `newer`: this release cannot use it."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A reader that the journal knows."""

    source_key: str
    reader: str
    last_started: datetime
    running: int
    """Its runs that have not ended, or were killed."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A journal as it is."""

    name: str
    """Its URL without password and options."""
    backend: str
    """`sqlite`, `postgresql`, `mysql` or `mariadb`."""
    state: State
    revision: str | None = None
    writers: tuple[Writer, ...] = ()
    """Readers with runs that started since the moment that was asked about and did not fail, the latest first."""
    free: int | None = None
    """Free bytes on the disk of its file; None: it is no file of this machine."""


def inspect_journal(url: str, since: datetime) -> Inspection:
    """Look at the journal of a URL.

    Raises:
        JournalUnavailable: its database does not answer.
        JournalError: it cannot be used, or this user cannot write it.
        MissingDependency: its driver is not installed.
    """
    database, made = Database(url), make_url(url)
    backend = made.get_backend_name()
    try:
        file = Path(made.database or "") if backend == "sqlite" else None
        free = None if file is None else free_bytes(file)
        if file is not None and not _exists(file):
            return Inspection(database.name, backend, "absent", free=free)
        with database.looking() as connection:
            _check_rights(connection, database.name)
            revision = migrate.revision(connection)
            state = _state(revision)
            writers = tuple(_writers(connection, since)) if state == "ready" else ()
            return Inspection(database.name, backend, state, revision, writers, free)
    finally:
        database.close()


def _exists(file: Path) -> bool:
    """Whether the file is there; raises `JournalError` if this user cannot write it, or cannot make it."""
    if why := why_no_file(file):
        raise JournalError(f"sqlite:///{file}: {why}")
    return file.exists()


def _check_rights(connection: Connection, name: str) -> None:
    """Raise `JournalError` if PostgreSQL would refuse to write for a reason that is known before."""
    if connection.dialect.name != "postgresql":
        return
    if connection.scalar(text("SHOW transaction_read_only")) == "on":
        raise JournalError(f"{name}: the server, the database or the user is read-only")
    table = func.to_regclass(runs.name)  # null before the first use, and so is what the right is then
    for right in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        if connection.scalar(select(func.has_table_privilege(table, right))) is False:
            raise JournalError(f"{name}: this user has no right to {right} on its tables, such as {runs.name}")


def _state(revision: str | None) -> State:
    if revision is None:
        return "absent"
    if revision == migrate.HEAD:
        return "ready"
    return "older" if revision < migrate.HEAD else "newer"


def _writers(connection: Connection, since: datetime) -> Iterator[Writer]:
    latest, running = func.max(runs.c.started_at), func.sum(case((runs.c.state == "running", 1), else_=0))
    statement = (
        select(sources.c.source_key, readers.c.reader, latest, running)
        .select_from(runs.join(readers, runs.c.reader_id == readers.c.id).join(sources))
        .where(runs.c.started_at >= since, runs.c.state != "failed")
        .group_by(sources.c.source_key, readers.c.reader)
        .order_by(latest.desc())
    )
    for source_key, reader, last_started, number in connection.execute(statement):
        yield Writer(source_key, reader, last_started, int(number or 0))
