"""Where the journal is: the database of an Airflow connection, or a SQLite file in Airflow's home."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowNotFoundException, conf
from airflow.sdk import BaseHook

from airflow_provider_streams.airflow_features import supervisor_turn
from airflow_provider_streams.connections.database_options import check_database_options
from airflow_provider_streams.connections.extra import aextra_of, extra_of
from airflow_provider_streams.connections.missing_connection import refuse_unreadable
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors import InvalidRequest, JournalError, foreseen
from airflow_provider_streams.lake import connections
from airflow_provider_streams.model.window.window import parse_length
from airflow_provider_streams.systems.connection.address import host_and_port
from airflow_provider_streams.systems.connection.contradiction import half_given

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.journal.store import Journal

DEFAULT_CONN_ID = "streams_journal"
DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
}
"""Connection type to SQLAlchemy driver."""
_WAIT = "timeout"


def open_journal(conn_id: str | None = None) -> Journal:
    """The journal of a connection; None: of `[streams] journal_conn_id`. Close it, or use it as a context manager.

    Raises:
        JournalError: the connection's type is not a database's, or the database cannot be used.
        InvalidRequest: `[streams] journal_keep` is no length of time, or less than a day.
    """
    from airflow_provider_streams.journal.store import Journal  # noqa: PLC0415

    return Journal.open(journal_url(conn_id or configured_journal()), keep=_keep())


def configured_journal() -> str:
    """The connection that `[streams] journal_conn_id` names."""
    return str(conf.get("streams", "journal_conn_id", fallback=DEFAULT_CONN_ID))


async def aopen_journal(conn_id: str | None = None) -> Journal:
    """As `open_journal`, for an event loop; the journal's own calls block, so run them in a thread."""
    from airflow_provider_streams.journal.store import Journal  # noqa: PLC0415

    connections.resolve_by(properties_of)
    conn_id = conn_id or configured_journal()
    try:
        connection = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        return await asyncio.to_thread(Journal.open, _embedded_url(conn_id))
    with foreseen():
        url = _connection_url(connection, conn_id, await aextra_of(connection))
    return await asyncio.to_thread(Journal.open, url)


@foreseen()
def journal_url(conn_id: str) -> str:
    """The SQLAlchemy URL of a connection, password included; without that connection, the embedded SQLite file.

    Raises:
        JournalError: the connection's type is not a database's.
        InvalidRequest: Airflow cannot read the connection, or its host is no host.
    """
    connections.resolve_by(properties_of)  # with the journal, its tables may be opened
    try:
        with supervisor_turn():
            connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return _embedded_url(conn_id)
    return _connection_url(connection, conn_id, extra_of(connection))


def _keep() -> timedelta | None:
    """How long history is kept; None: for ever."""
    from airflow_provider_streams.journal.pruning import check_age  # noqa: PLC0415 - SQL when used

    text = conf.get("streams", "journal_keep", fallback="").strip()
    try:
        return check_age(parse_length(text)) if text else None
    except InvalidRequest as error:
        raise InvalidRequest(f"[streams] journal_keep = {text}: {error}") from error


def _embedded_url(conn_id: str) -> str:
    refuse_unreadable(conn_id)  # another journal than the named one would know of no window
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return _sqlite_url(conn_id, str(home / "streams_journal.db"), {})


def _connection_url(connection: Connection, conn_id: str, extra: Mapping[str, object]) -> str:
    from sqlalchemy.engine import URL  # noqa: PLC0415 - SQL when used

    driver = DRIVERS.get((connection.conn_type or "").lower())
    if driver is None:
        raise JournalError(
            f"connection {conn_id!r} has the type {connection.conn_type!r}; "
            f"the journal needs one of: {', '.join(sorted(DRIVERS))}"
        )
    if driver == "sqlite":
        return _sqlite_url(conn_id, connection.host or connection.schema or "", extra)
    if connection.password and not connection.login:
        raise half_given(conn_id, "password", "login")
    host, port = host_and_port(conn_id, connection.host, connection.port)
    query = {name: _text(conn_id, name, value) for name, value in extra.items() if value is not None}
    if host and host.startswith("/"):
        query, host, port = {**query, **_socket(conn_id, driver, host, port, query)}, None, None
    check_database_options(conn_id, query.items())
    url = URL.create(
        driver,
        username=connection.login,
        password=connection.password,
        host=host,
        port=port,
        database=connection.schema,
        query=query,
    )
    return url.render_as_string(hide_password=False)


def _sqlite_url(conn_id: str, file: str, extra: Mapping[str, object]) -> str:
    from sqlalchemy.engine import URL, make_url  # noqa: PLC0415 - as above

    query = {name: _text(conn_id, name, value) for name, value in extra.items() if value is not None}
    if unknown := sorted(query.keys() - {_WAIT}):
        raise InvalidRequest(
            f"connection {conn_id!r}: a journal in SQLite has no option {unknown[0]!r} in its extra: it has {_WAIT} "
            "alone, the seconds that it waits for other writers"
        )
    text = URL.create("sqlite", database=file, query=query).render_as_string()
    if file and make_url(text).database != file:  # SQLAlchemy before 2.1 cannot write such a path
        raise InvalidRequest(
            f"connection {conn_id!r}: with this SQLAlchemy, the path {file} would name another file: choose one "
            "without '?', '#' and '%'"
        )
    return text


def _socket(conn_id: str, driver: str, path: str, port: int | None, query: Mapping[str, str]) -> dict[str, str]:
    """The options that give a driver the path of a socket: hosts of addresses have no slashes."""
    name = "host" if driver.startswith("postgresql") else "unix_socket"
    if query.get(name, path) != path:
        raise InvalidRequest(
            f"connection {conn_id!r}: its host is the socket {path}, and its extra names another {name}: give one of "
            "them"
        )
    # of Postgres, the port is a part of the socket's name
    return {name: path, **({"port": str(port)} if port and name == "host" else {})}


def _text(conn_id: str, name: str, value: object) -> str:
    """An option of the database's address. Raises `InvalidRequest`: it is a list or an object."""
    if not isinstance(value, str | int | float):
        raise InvalidRequest(
            f"connection {conn_id!r}: the option {name!r} in its extra is a {type(value).__name__}: write a text or a "
            "number, as in the options of an address"
        )
    return str(value)
