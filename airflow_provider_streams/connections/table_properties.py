"""What Airflow's connections say of tables, in the words of Iceberg's catalogs and file IO."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.airflow_features import supervisor_turn
from airflow_provider_streams.connections.database_options import check_database_options
from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.missing_connection import no_connection
from airflow_provider_streams.connections.store_properties import (
    AZURE_TYPES,
    S3_TYPES,
    azure_properties,
    check_store,
    refuse_never_used,
    s3_properties,
)
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection.address import (
    Parts,
    address_of,
    check_was_read,
    check_whole,
    scheme_of,
    shown_scheme,
)
from airflow_provider_streams.systems.connection.catalog_properties import (
    ADDRESS,
    CATALOG_TYPES,
    ICEBERG_NAMES,
    refuse_near_misses,
)
from airflow_provider_streams.systems.connection.contradiction import check_one_credential, half_given

if TYPE_CHECKING:
    from airflow.sdk import Connection


_METASTORE = "thrift"
_DATABASES = ("sqlite", "postgresql")
"""Schemes by which pyiceberg tells a catalog in a database; a driver may follow: `postgresql+psycopg`."""
_TOKENS_AT = "oauth2-server-uri"
_TOKENS = replace(ADDRESS, takes_others=False)
_GROUPS = ("auth", "ssl")
"""Settings of pyiceberg that are objects."""


def properties_of(conn_id: str) -> dict[str, str]:
    """What a connection says of tables, secrets included.

    Raises:
        InvalidRequest: there is none, it is of another type than tables use, or it has a property that it may not.
    """
    try:
        with supervisor_turn():
            connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        types = ("iceberg", *S3_TYPES, *AZURE_TYPES)
        raise no_connection(
            conn_id, types, "a table's `conn_id` names a connection under Admin, Connections"
        ) from error
    known = {
        **dict.fromkeys(S3_TYPES, s3_properties),
        **dict.fromkeys(AZURE_TYPES, azure_properties),
    }
    if connection.conn_type and ADDRESS.scheme_of_type(connection.conn_type) is not None:
        return iceberg_properties(connection)
    if not connection.conn_type:
        check_was_read(Parts(conn_id, host=connection.host, schema=connection.schema), ADDRESS)
    if connection.conn_type not in known:
        raise InvalidRequest(
            f"connection {conn_id!r} is of type {connection.conn_type!r}: a table in a catalog needs type 'iceberg', "
            f"a folder of a bucket {' or '.join(map(repr, S3_TYPES))}, and a folder of an Azure container "
            f"{' or '.join(map(repr, AZURE_TYPES))}"
        )
    return known[connection.conn_type](connection)


def iceberg_properties(connection: Connection) -> dict[str, str]:
    """A connection of Airflow's type `iceberg` as pyiceberg's properties.

    Host is the catalog's `uri`, login and password are its `credential`, the extra field has any property: `type`
    (`rest`), `warehouse`, `s3.endpoint`, ..

    Raises:
        InvalidRequest: a property loads code, is no text or number, or is nearly a known one; or the type of catalog
            is not known.
    """
    given = {name: value for name, value in extra_of(connection).items() if value not in (None, "")}
    refuse_never_used(connection, given)
    refuse_near_misses(str(connection.conn_id), given, ICEBERG_NAMES)
    found = {name: _text(connection.conn_id, name, value) for name, value in given.items()}
    kind = found.get("type", "")
    if kind and kind.lower() not in CATALOG_TYPES:
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: no Iceberg catalog is of type {kind!r}; known: "
            f"{', '.join(CATALOG_TYPES)}. Without a type, the address decides"
        )
    check_store(str(connection.conn_id), found)
    if uri := _uri(connection, found.get("uri", ""), kind):
        found["uri"] = uri
    if tokens_at := found.get(_TOKENS_AT):
        found[_TOKENS_AT] = check_whole(str(connection.conn_id), f"extra {_TOKENS_AT}", tokens_at, _TOKENS)
    _check_credentials(connection, found)
    if connection.login:
        found["credential"] = f"{connection.login}:{connection.password}"
    return found


def _uri(connection: Connection, extra: str, kind: str) -> str:
    """The address in the extra, or else the one of type, host and port; empty: none is given."""
    conn_id = str(connection.conn_id)
    fields = (connection.conn_type, connection.host, connection.port, connection.schema)
    uri = address_of(Parts(conn_id, *fields, whole=extra, place="extra uri"), ADDRESS)
    if extra:
        uri = check_whole(conn_id, "extra uri", uri, ADDRESS)
    scheme = scheme_of(uri)
    if uri and not _is_of_catalog(scheme, kind):
        raise InvalidRequest(
            f"connection {conn_id!r}: {'extra uri' if extra else 'host'} has the unknown scheme "
            f"{shown_scheme(scheme, ADDRESS)}: a REST catalog has https:// (with TLS) or http:// (without), Hive's "
            "metastore thrift://, and a database sqlite:// or postgresql://. For another database, give the type 'sql' "
            "as well"
        )
    check_database_options(conn_id, parse_qsl(uri.partition("?")[2]))
    return uri


def _is_of_catalog(scheme: str, kind: str) -> bool:
    """Whether a scheme, or else the type, says which catalog it is."""
    if kind.lower() == "rest" or ADDRESS.is_tls(scheme) is not None:
        return ADDRESS.is_tls(scheme) is not None
    database, _, _driver = scheme.partition("+")
    return bool(kind) or scheme == _METASTORE or database in _DATABASES


def _check_credentials(connection: Connection, found: Mapping[str, str]) -> None:
    """Refuse credentials that the catalog would not get, or not as they are meant.

    Raises:
        InvalidRequest: there are two of them, or half of one; the catalog is no REST catalog; or the client's id has a
            colon, after which the secret would begin. It shows none.
    """
    fields = [name for name in ("login", "password") if getattr(connection, name)]
    extras = [f"extra {name}" for name in ("credential", "token") if found.get(name)]
    if len(fields) == 1:
        (lacking,) = {"login", "password"} - {*fields}
        advice = (
            "they are OAuth2's client id and secret. Give both, or put the whole into the extra credential or token"
        )
        raise half_given(connection.conn_id, fields[0], lacking, advice)
    given = [*([" and ".join(fields)] if fields else []), *extras]
    check_one_credential(connection.conn_id, given, "catalog")
    is_rest = ADDRESS.is_tls(scheme_of(found.get("uri", "https://"))) is not None
    if given and (found.get("type", "rest").lower() != "rest" or not is_rest):
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: {given[0]}: only REST catalogs take this, and this is no "
            "REST catalog: leave it empty, and use the properties of that catalog in extra"
        )
    if ":" in (connection.login or ""):
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: login holds a colon, and a catalog takes the rest for the secret: "
            "client ids with a colon cannot be sent"
        )


def _text(conn_id: str, name: str, value: object) -> str:
    if name.endswith("-impl"):
        raise InvalidRequest(
            f"connection {conn_id!r}: {name} would load code, which a connection may not do: describe that catalog in "
            "~/.pyiceberg.yaml, and give the sink its name"
        )
    if name.partition(".")[0] in _GROUPS:
        raise InvalidRequest(
            f"connection {conn_id!r}: {name} is of pyiceberg's settings that can load code or name files, which a "
            "connection may not do: describe that catalog in ~/.pyiceberg.yaml, and give the sink its name"
        )
    if isinstance(value, Mapping | list):
        raise InvalidRequest(f"connection {conn_id!r}: {name} must be a text or a number")
    return value if isinstance(value, str) else json.dumps(value)
