"""What Airflow's connections say of tables, in the words of Iceberg's catalogs and file IO."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.azure_properties import AZURE_TYPES, azure_properties
from airflow_provider_streams.hooks.s3_properties import S3_TYPES, check_endpoint, s3_properties

if TYPE_CHECKING:
    from airflow.sdk import Connection


CATALOG_TYPES = ("rest", "hive", "glue", "dynamodb", "sql", "in-memory", "bigquery")
"""What pyiceberg knows; it need not be installed where connections are read."""


def properties_of(conn_id: str) -> dict[str, str]:
    """What a connection says of tables; secrets among it.

    Raises:
        InvalidRequest: its type is none of those that tables have, or it says what no connection may.
        AirflowNotFoundException: there is none.
    """
    connection = BaseHook.get_connection(conn_id)
    known = {
        "iceberg": iceberg_properties,
        **dict.fromkeys(S3_TYPES, s3_properties),
        **dict.fromkeys(AZURE_TYPES, azure_properties),
    }
    if connection.conn_type not in known:
        raise InvalidRequest(
            f"connection {conn_id!r} is of type {connection.conn_type!r}: a table in a catalog wants type 'iceberg', "
            f"a folder of a bucket {' or '.join(map(repr, S3_TYPES))}, one of an Azure container "
            f"{' or '.join(map(repr, AZURE_TYPES))}"
        )
    return known[connection.conn_type](connection)


def iceberg_properties(connection: Connection) -> dict[str, str]:
    """A connection of Airflow's type `iceberg` as pyiceberg's properties.

    Host is the catalog's `uri`, login and password are its `credential`, the extra field has any property: `type`
    (`rest`), `warehouse`, `s3.endpoint`, ..

    Raises:
        InvalidRequest: a property that loads code, or one that is no text or number; or no known type of catalog.
    """
    found = {name: _text(connection.conn_id, name, value) for name, value in connection.extra_dejson.items()}
    kind = found.get("type", "")
    if kind and kind.lower() not in CATALOG_TYPES:
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: no Iceberg catalog is of type {kind!r}; known: "
            f"{', '.join(CATALOG_TYPES)}. Without a type, its address tells"
        )
    check_endpoint(str(connection.conn_id), found)
    uri = _uri(connection)
    if uri:
        found.setdefault("uri", uri)
    if connection.login and connection.password:
        found.setdefault("credential", f"{connection.login}:{connection.password}")
    return found


def _uri(connection: Connection) -> str:
    """As it stands in the host; of a connection that was written as a URI, put together again."""
    host = connection.host or ""
    if not host or "://" in host:
        return host.rstrip("/")
    scheme = connection.schema or "https"
    return f"{scheme}://{host}{f':{connection.port}' if connection.port else ''}"


def _text(conn_id: str, name: str, value: object) -> str:
    if name.endswith("-impl"):
        raise InvalidRequest(
            f"connection {conn_id!r}: {name} names code to load, which no connection may: describe that catalog in "
            "~/.pyiceberg.yaml, and give the sink its name"
        )
    if isinstance(value, Mapping | list):
        raise InvalidRequest(f"connection {conn_id!r}: {name} must be one text or number")
    return value if isinstance(value, str) else json.dumps(value)
