"""A connection to an Iceberg catalog, for its form and its test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.hooks.testable_connection import TestableConnection
from airflow_provider_streams.lake import connections
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.systems.connection.endpoint_fields import without_credentials

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


class IcebergHook(TestableConnection, BaseHook):
    """A connection to an Iceberg catalog, as `IcebergSink(.., conn_id=..)` uses it.

    Host is the catalog's address, login and password are its credential; the extra field has any property of pyiceberg.
    Where `apache-airflow-providers-apache-iceberg` is installed, its own hook serves connections of this type.

    Args:
        conn_id: the Airflow connection, of type `iceberg`.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "iceberg_default"
    conn_type = "iceberg"
    hook_name = "Apache Iceberg"

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id

    def get_conn(self) -> Catalog:
        """The catalog; it is asked when used.

        Raises:
            InvalidRequest: the connection has a property that it may not have, or that is nearly a known one.
            MissingDependency: pyiceberg is not installed.
            SinkError: the catalog cannot be used, or does not answer.
        """
        return self._catalog(makes_tables=True)

    def _catalog(self, *, makes_tables: bool) -> Catalog:
        with importing("iceberg"):
            from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of  # noqa: PLC0415 - optional
        connections.resolve_by(properties_of)
        return catalog_of(self._sink(), makes_tables=makes_tables)

    def _test(self) -> str:
        """Whether the catalog lists its namespaces. A catalog in a database is not made for the test."""
        catalog = self._catalog(makes_tables=False)
        from airflow_provider_streams.lake.iceberg.catalogs.catalog import is_absent  # noqa: PLC0415 - optional
        from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of  # noqa: PLC0415 - optional

        where = without_credentials(catalog.properties["uri"]) if "uri" in catalog.properties else catalog.name
        with errors_of(self._sink()):
            if is_absent(catalog):
                return f"There is no catalog at {where} yet: the first landing makes it."
            found = catalog.list_namespaces()
        return f"The catalog at {where} answers: it has {counted(len(found), 'namespace')}."

    def _sink(self) -> IcebergSink:
        return _AnyTable("namespace.table", conn_id=self.conn_id)


class _AnyTable(IcebergSink):
    """Stands for its catalog: errors name the connection, and no table."""

    def __str__(self) -> str:
        return f"connection {self.conn_id!r}"
