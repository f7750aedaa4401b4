"""A catalog in a database."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO

_TABLES = 2
"""How many tables pyiceberg makes: others may be first with each."""


class SharedSqlCatalog(SharedSnapshots, VendedCredentialsFileIO, SqlCatalog):
    """Opens a new database even if another process makes its tables at the same time; pyiceberg's own would fail."""

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own."""
        _make_file(str(properties.get("uri") or ""))
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


def _make_file(uri: str) -> None:
    """Make the file of a new SQLite database as open to a group as the umask has it; SQLite's own are the owner's."""
    with suppress(ArgumentError, OSError):  # what is wrong, the database says in its own words
        url = make_url(uri)
        if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":", "file:")):
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
