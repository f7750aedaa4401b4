"""Where the journal lives: the database of an Airflow connection, or a SQLite file beside Airflow's home."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_streams.errors import InvalidRequest, JournalError
from airflow_provider_streams.hooks.tables import properties_of
from airflow_provider_streams.lake import connections
from airflow_provider_streams.model.window import parse_length

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.journal.store import Journal

DEFAULT_CONN_ID = "streams_journal"
DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+mysqldb",
    "sqlite": "sqlite",
}
"""Connection type to SQLAlchemy driver."""


def open_journal(conn_id: str | None = None) -> Journal:
    """The journal of a connection; None: of `[streams] journal_conn_id`. Close it, or use it as a context manager.

    Raises:
        JournalError: the connection's type is not a database's, or the database cannot be used.
        InvalidRequest: `[streams] journal_keep` is no length of time, or less than a day.
    """
    from airflow_provider_streams.journal.store import Journal  # noqa: PLC0415

    url = journal_url(conn_id or conf.get("streams", "journal_conn_id", fallback=DEFAULT_CONN_ID))
    return Journal.open(url, keep=_keep())


async def aopen_journal(conn_id: str | None = None) -> Journal:
    """As `open_journal`, for an event loop; the journal's own calls block, so run them in a thread.

    Raises:
        JournalError: as `open_journal`.
    """
    from airflow_provider_streams.journal.store import Journal  # noqa: PLC0415

    connections.resolve_by(properties_of)
    conn_id = conn_id or conf.get("streams", "journal_conn_id", fallback=DEFAULT_CONN_ID)
    try:
        connection = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        return await asyncio.to_thread(Journal.open, _embedded_url())
    return await asyncio.to_thread(Journal.open, _connection_url(connection, conn_id, await connection.aextra_dejson()))


def journal_url(conn_id: str, get_connection: Callable[[str], Connection] = BaseHook.get_connection) -> str:
    """The SQLAlchemy URL of a connection, password included; without that connection, the embedded SQLite file.

    Raises:
        JournalError: the connection's type is not a database's.
    """
    connections.resolve_by(properties_of)  # whoever opens a journal may look at the tables it speaks of
    try:
        connection = get_connection(conn_id)
    except AirflowNotFoundException:
        return _embedded_url()
    return _connection_url(connection, conn_id, connection.extra_dejson)


def _keep() -> timedelta | None:
    """How long history is kept; None: for ever."""
    from airflow_provider_streams.journal.pruning import check_age  # noqa: PLC0415 - SQL when used

    text = conf.get("streams", "journal_keep", fallback="").strip()
    try:
        return check_age(parse_length(text)) if text else None
    except InvalidRequest as error:
        raise InvalidRequest(f"[streams] journal_keep = {text}: {error}") from error


def _embedded_url() -> str:
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return f"sqlite:///{home / 'streams_journal.db'}"


def _connection_url(connection: Connection, conn_id: str, extra: Mapping[str, object]) -> str:
    from sqlalchemy.engine import URL  # noqa: PLC0415

    driver = DRIVERS.get((connection.conn_type or "").lower())
    if driver is None:
        raise JournalError(
            f"connection {conn_id!r} has the type {connection.conn_type!r}; "
            f"the journal lives in one of: {', '.join(sorted(DRIVERS))}"
        )
    if driver == "sqlite":
        return f"sqlite:///{connection.host or connection.schema or ''}"
    query = {name: str(value) for name, value in extra.items() if isinstance(value, str | int)}
    url = URL.create(
        driver,
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema,
        query=query,
    )
    return url.render_as_string(hide_password=False)
