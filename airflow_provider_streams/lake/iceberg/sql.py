"""A catalog in a database."""

from __future__ import annotations

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import DBAPIError

from airflow_provider_streams.lake.iceberg.lent import OwnFileIO

_TABLES = 2
"""Of pyiceberg: so often may others be first with one."""


class SharedSqlCatalog(OwnFileIO, SqlCatalog):
    """Opens a new database also where another one makes its tables at the same time; pyiceberg's own would fail."""

    def create_tables(self) -> None:
        """Make those that are not there."""
        for _ in range(_TABLES):
            try:
                return super().create_tables()
            except DBAPIError as error:
                if "already exists" not in str(error):
                    raise
        return super().create_tables()
