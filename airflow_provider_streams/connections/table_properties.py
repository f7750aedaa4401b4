"""What Airflow's connections say of tables, in the words of Iceberg's catalogs and file IO."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.airflow_features import supervisor_turn
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
)
from airflow_provider_streams.systems.connection.catalog_properties import (
    ADDRESS,
    CATALOG_TYPES,
    ICEBERG_NAMES,
    refuse_near_misses,
)

if TYPE_CHECKING:
    from airflow.sdk import Connection


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
    uri = _uri(connection, found.get("uri", ""))
    if uri:
        _check_scheme(str(connection.conn_id), "extra uri" if found.get("uri") else "host", uri, kind)
        found["uri"] = uri
    if tokens_at := found.get(_TOKENS_AT):
        found[_TOKENS_AT] = check_whole(str(connection.conn_id), f"extra {_TOKENS_AT}", tokens_at, _TOKENS)
    _check_credentials(connection, found)
    if connection.login:
        found["credential"] = f"{connection.login}:{connection.password}"
    return found


def _has_port(address: str, port: int) -> bool:
    return urlsplit(address).netloc.endswith(f":{port}")


def _check_scheme(conn_id: str, place: str, uri: str, kind: str) -> None:
    """Refuse an address whose scheme says no catalog, where the type does not say it either."""
    scheme = scheme_of(uri)
    known = _SCHEMES if not kind else ADDRESS.secure + ADDRESS.plain if kind.lower() == "rest" else ("",)
    if not scheme.startswith(known):
        shown = f"{scheme}://" if _SHOWN.fullmatch(scheme) else "of another system"
        raise InvalidRequest(
            f"connection {conn_id!r}: {place} has the unknown scheme {shown}: a REST catalog has https:// (with TLS) "
            "or http:// (without), Hive's metastore thrift://, and a database sqlite:// or postgresql://. For another "
            "database, give the type 'sql' as well"
        )


_SCHEMES = ("http", "thrift", "sqlite", "postgresql")
"""Beginnings of schemes by which pyiceberg tells the type of a catalog."""
_SHOWN = re.compile(r"[a-z][a-z+]{1,11}")  # anything else may be a token in the wrong place
_TOKENS_AT = "oauth2-server-uri"
_TOKENS = replace(ADDRESS, takes_others=False)


def _uri(connection: Connection, extra: str) -> str:
    """The address in the extra, or else the one of type, host and port."""
    conn_id = str(connection.conn_id)
    fields = (connection.conn_type, connection.host, connection.port, connection.schema)
    parts = Parts(conn_id, *fields, whole=extra, place="extra uri")
    own = address_of(parts, ADDRESS)
    if extra and connection.port and not connection.host and not _has_port(extra, connection.port):
        raise InvalidRequest(
            f"connection {conn_id!r}: the field port is for the field host, and extra uri has another port, or none: "
            "write the port into the address, and leave the field empty"
        )
    return check_whole(conn_id, "extra uri", extra, ADDRESS) or own


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
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: {fields[0]} is given without {lacking}: they are OAuth2's client id "
            "and secret. Give both, or put the whole into the extra credential or token"
        )
    given = [*([" and ".join(fields)] if fields else []), *extras]
    if len(given) > 1:
        raise InvalidRequest(
            f"connection {connection.conn_id!r} contradicts itself: {' and '.join(given)} are credentials of the same "
            "catalog, which gets only one: leave out the others"
        )
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
    if isinstance(value, Mapping | list):
        raise InvalidRequest(f"connection {conn_id!r}: {name} must be a text or a number")
    return value if isinstance(value, str) else json.dumps(value)
