"""A catalog in a database."""

from __future__ import annotations

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import DBAPIError

from airflow_provider_streams.lake.iceberg.file_io import VendedCredentialsFileIO

_TABLES = 2
"""How many tables pyiceberg makes: others may be first with each."""


class SharedSqlCatalog(VendedCredentialsFileIO, SqlCatalog):
    """Opens a new database even if another process makes its tables at the same time; pyiceberg's own would fail."""

    def create_tables(self) -> None:
        """Make the tables that do not exist."""
        for _ in range(_TABLES):
            try:
                return super().create_tables()
            except DBAPIError as error:
                if "already exists" not in str(error):
                    raise
        return super().create_tables()
