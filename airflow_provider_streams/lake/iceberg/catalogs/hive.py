"""A catalog in Hive's metastore."""

from __future__ import annotations

from urllib.parse import urlsplit

from pyiceberg.catalog import LOCATION, URI, WAREHOUSE_LOCATION
from pyiceberg.catalog.hive import (
    HIVE_KERBEROS_AUTH,
    HIVE_KERBEROS_AUTH_DEFAULT,
    HIVE_KERBEROS_SERVICE_NAME,
    HIVE_KERBEROS_SERVICE_NAME_DEFAULT,
    HiveCatalog,
    _HiveClient,
)
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.properties import property_as_bool
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportBase

from airflow_provider_streams.lake.iceberg.catalogs import catalog
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO


class BoundedHiveCatalog(SharedSnapshots, VendedCredentialsFileIO, HiveCatalog):
    """Has a timeout, and makes a namespace in its own warehouse.

    pyiceberg's own waits for ever, and leaves namespaces to the metastore, whose warehouse may be a folder of its
    machine.
    """

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _BoundedClient(
            properties[URI].partition(",")[0],
            properties.get("ugi"),
            property_as_bool(properties, HIVE_KERBEROS_AUTH, HIVE_KERBEROS_AUTH_DEFAULT),
            properties.get(HIVE_KERBEROS_SERVICE_NAME, HIVE_KERBEROS_SERVICE_NAME_DEFAULT),
        )

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """As Iceberg's catalogs in Java do: `<warehouse>/<namespace>.db`."""
        if warehouse := self.properties.get(WAREHOUSE_LOCATION):
            place = f"{warehouse.rstrip('/')}/{self.identifier_to_database(namespace)}.db"
            properties = {LOCATION: place, **properties}
        super().create_namespace(namespace, properties)


class _BoundedClient(_HiveClient):
    def _init_thrift_transport(self) -> TTransportBase:
        address = urlsplit(self._uri)
        socket = TSocket(address.hostname, address.port)
        socket.setTimeout(catalog.ANSWER_SECONDS * 1000)
        if self._kerberos_auth:
            return TSaslClientTransport(socket, host=address.hostname, service=self._kerberos_service_name)
        return TBufferedTransport(socket)
