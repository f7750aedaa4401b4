"""A catalog in a database."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog import URI
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier, Properties
from sqlalchemy import URL, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO
from airflow_provider_streams.model.database.address import errors_of_driver, unescaped
from airflow_provider_streams.model.database.drivers import passwords_elsewhere
from airflow_provider_streams.model.database.tls import with_tls
from airflow_provider_streams.redaction import register_secret

_TABLES = 2
"""How many tables pyiceberg makes: others may be first with each."""
_BLOCKING: Final = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql", "sqlite": "pysqlite"}
"""The drivers that this package's extras bring."""
MAKES_TABLES: Final = "init_catalog_tables"
"""pyiceberg's property: with `false`, a catalog makes neither its tables nor, with us, SQLite's file."""


class SharedSqlCatalog(SharedSnapshots, VendedCredentialsFileIO, SqlCatalog):
    """Sends no password without TLS by default, and lets several processes make its tables at the same time.

    pyiceberg's own leaves TLS to the server, and fails if another process is first. If it may not make its tables and
    they are not there, it looks empty.
    """

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own.

        Raises:
            InvalidRequest: the uri is no address of a database, its driver is for asyncio or cannot use an option; or
                see `with_tls`.
        """
        makes_tables = str(properties.get(MAKES_TABLES) or "").lower() != "false"
        if uri := str(properties.get(URI) or ""):
            url, database = _url_of(name, uri), f"catalog {name!r}"
            _check_blocking(url, database)
            if makes_tables:
                _make_file(url)
            for password in passwords_elsewhere(url):
                register_secret(password)
            if (safe := with_tls(url, database)) != url:
                properties[URI] = safe.render_as_string(hide_password=False)
            with errors_of_driver(url, database):
                super().__init__(name, **properties)
        else:
            super().__init__(name, **properties)
        self._is_there = makes_tables

    def _init_catalog(self) -> None:
        """As pyiceberg's own; but to connect would make a file that is not there."""
        if self._lacks_file():
            self._schema_version = "v1"
        else:
            super()._init_catalog()

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; None: it is another database."""
        return _sqlite_file(self.engine.url)

    def is_absent(self) -> bool:
        """Whether its tables were not there yet when they were last looked for."""
        if not self._is_there and not self._lacks_file():
            seen = inspect(self.engine)
            self._is_there = all(seen.has_table(name) for name in SqlCatalogBaseTable.metadata.tables)
        return not self._is_there

    def _lacks_file(self) -> bool:
        """Whether only a SQLite file is missing; without its folder, the database says what is wrong."""
        file = self.file
        return file is not None and file.parent.is_dir() and not file.exists()

    def load_table(self, identifier: str | Identifier) -> Table:
        """See `Catalog`."""
        if self.is_absent():
            raise NoSuchTableError(f"the catalog is not there yet, so it has no table {identifier}")
        return super().load_table(identifier)

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """See `Catalog`."""
        if self.is_absent():
            raise NoSuchNamespaceError(f"the catalog is not there yet, so it has no namespace {namespace}")
        return super().load_namespace_properties(namespace)

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


def _check_blocking(url: URL, database: str) -> None:
    """Raise `InvalidRequest` if a driver is for asyncio: it would fail with words that do not say so."""
    try:
        is_async = url.get_dialect().is_async
    except (ArgumentError, NoSuchModuleError):
        return  # to connect fails, and says which driver it is
    if is_async:
        backend = url.get_backend_name()
        advice = f"write {backend}+{_BLOCKING[backend]}://" if backend in _BLOCKING else "name a blocking one"
        raise InvalidRequest(f"{database}: {url.drivername} is a driver for asyncio, which is of no use here: {advice}")


def _make_file(url: URL) -> None:
    """Make the file of a new SQLite database as open to a group as the umask has it; SQLite's own are the owner's."""
    file = _sqlite_file(url)
    if file is not None:
        with suppress(OSError):  # what is wrong, the database says in its own words
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))


def _sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database; None: it is another database, or not simply a file."""
    is_file = url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":", "file:"))
    return Path(str(url.database)) if is_file else None
