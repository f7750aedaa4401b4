"""A catalog in Hive's metastore."""

from __future__ import annotations

from typing import Any, NamedTuple
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

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.iceberg.catalogs import timeouts
from airflow_provider_streams.lake.iceberg.catalogs.shared_snapshots import SharedSnapshots
from airflow_provider_streams.lake.iceberg.files.file_io import VendedCredentialsFileIO


class BoundedHiveCatalog(SharedSnapshots, VendedCredentialsFileIO, HiveCatalog):
    """Has a timeout, and makes a namespace in its own warehouse.

    pyiceberg's own waits for ever, and leaves namespaces to the metastore, whose warehouse may be a folder of its
    machine.
    """

    def __init__(self, name: str, **properties: Any) -> None:
        """As pyiceberg's own.

        Raises:
            InvalidRequest: the uri does not say host and port, or it has a user, whom a metastore does not ask for.
            SinkError: a package for Kerberos is not installed.
        """
        try:
            _address_of(properties[URI])
        except ValueError:  # its text shows pieces of the address
            raise InvalidRequest(
                f"catalog {name!r}: the uri of a metastore is thrift://host:port, without user and password"
            ) from None
        try:
            super().__init__(name, **properties)
        except ImportError as error:
            raise SinkError(
                f"catalog {name!r}",
                f"{HIVE_KERBEROS_AUTH} needs {error.name}: pip install 'pyiceberg[hive-kerberos]'",
            ) from error

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _BoundedClient(
            properties[URI],
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


class _Address(NamedTuple):
    host: str
    port: int


def _address_of(uri: str) -> _Address:
    """The first of the addresses in a uri. `ValueError`: it is none, or has a user."""
    split = urlsplit(uri.partition(",")[0])
    if not (split.hostname and split.port) or "@" in split.netloc:
        raise ValueError(uri)
    return _Address(split.hostname, split.port)


class _BoundedClient(_HiveClient):
    def _init_thrift_transport(self) -> TTransportBase:
        address = _address_of(self._uri)
        socket = TSocket(address.host, address.port)
        socket.setTimeout(timeouts.ANSWER_SECONDS * 1000)
        if self._kerberos_auth:
            return TSaslClientTransport(socket, host=address.host, service=self._kerberos_service_name)
        return TBufferedTransport(socket)
