"""A catalog in a database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from pyiceberg.catalog import URI
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO
from airflow_provider_streams.model.database_address import errors_of_driver, unescaped
from airflow_provider_streams.model.database_drivers import passwords_of_environment
from airflow_provider_streams.model.database_tls import with_tls
from airflow_provider_streams.redaction import register_secret

_TABLES = 2
"""How many tables pyiceberg makes: others may be first with each."""


class SharedSqlCatalog(SharedSnapshots, VendedCredentialsFileIO, SqlCatalog):
    """Sends no password without TLS by default, and lets several processes make its tables at the same time.

    pyiceberg's own leaves TLS to the server, and fails if another process is first.
    """

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own.

        Raises:
            InvalidRequest: the uri is no address of a database, or its driver cannot use an option; or see `with_tls`.
        """
        uri = str(properties.get(URI) or "")
        if not uri:
            super().__init__(name, **properties)
            return
        url, database = _url_of(name, uri), f"catalog {name!r}"
        _make_file(url)
        for password in passwords_of_environment(url):
            register_secret(password)
        if (safe := with_tls(url, database)) != url:
            properties[URI] = safe.render_as_string(hide_password=False)
        with errors_of_driver(url, database):
            super().__init__(name, **properties)

    def create_tables(self) -> None:
        """Make the tables that do not exist."""
        for _ in range(_TABLES):
            try:
                return super().create_tables()
            except DBAPIError as error:
                if "already exists" not in str(error):
                    raise
        return super().create_tables()


def _url_of(name: str, uri: str) -> URL:
    """Raises `InvalidRequest`, which does not show the address."""
    if why := unescaped(uri):
        raise InvalidRequest(f"catalog {name!r}: in its uri, {why}")
    try:
        return make_url(uri)
    except (ArgumentError, ValueError):  # their texts show pieces of the address
        raise InvalidRequest(
            f"catalog {name!r}: its uri is no address of a database: write sqlite:////path/catalog.db or "
            "postgresql+psycopg://user:password@host:port/database, where the port is a number"
        ) from None


def _make_file(url: URL) -> None:
    """Make the file of a new SQLite database as open to a group as the umask has it; SQLite's own are the owner's."""
    with suppress(OSError):  # what is wrong, the database says in its own words
        if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":", "file:")):
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
