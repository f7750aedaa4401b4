"""What a connection of type `aws` or `generic` says of an S3 store, by the names of Iceberg's file IO.

| the connection | the property |
|---|---|
| login, or extra `aws_access_key_id` | `s3.access-key-id` |
| password, or extra `aws_secret_access_key` | `s3.secret-access-key` |
| extra `aws_session_token` | `s3.session-token` |
| extra `region_name` | `s3.region` |
| extra `service_config.s3.endpoint_url`, or `endpoint_url` | `s3.endpoint` |
| any extra `s3.*` | the same; it wins |

These are the names of Amazon's provider, which need not be installed. Without keys, the processes that read and write
find them as on any machine of AWS: environment, instance profile, web identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal

if TYPE_CHECKING:
    from airflow.sdk import Connection

S3_TYPES = ("aws", "generic")

_OF_EXTRA = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "region_name": "s3.region",
    "endpoint_url": "s3.endpoint",
}
_SECRET = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
_ELSEWHERE = ("role_arn", "profile_name", "assume_role_method")
"""What the provider's own session would do, and a store's client in an executor cannot."""


def s3_properties(connection: Connection) -> dict[str, str]:
    """The properties; keys among them, which no log and no error shows from here on.

    Raises:
        InvalidRequest: the connection asks for what cannot be done for the processes that write.
    """
    extra: Mapping[str, Any] = connection.extra_dejson
    _refuse_unknown(str(connection.conn_id), extra)
    service = (extra.get("service_config") or {}).get("s3") or {}
    named = {
        **{name: extra.get(key) for key, name in _OF_EXTRA.items()},
        **{name: extra_value for name, extra_value in _fields(connection).items() if extra_value},
        **({"s3.endpoint": service["endpoint_url"]} if service.get("endpoint_url") else {}),
        **{name: value for name, value in extra.items() if name.startswith("s3.")},
    }
    properties = {name: str(value) for name, value in named.items() if value not in (None, "")}
    for name in _SECRET:
        conceal(properties.get(name, ""))
    check_endpoint(str(connection.conn_id), properties)
    return properties


def check_endpoint(conn_id: str, properties: Mapping[str, str]) -> None:
    """Refuse a store's address with a password, which clients of stores do not use, and show in their errors.

    Raises:
        InvalidRequest: it has one.
    """
    if "@" in properties.get("s3.endpoint", ""):
        raise InvalidRequest(
            f"connection {conn_id!r}: the address of a store is http(s)://host:port without name and password: put "
            "these into login and password, or s3.access-key-id and s3.secret-access-key"
        )


def _fields(connection: Connection) -> dict[str, str | None]:
    return {"s3.access-key-id": connection.login, "s3.secret-access-key": connection.password}


def _refuse_unknown(conn_id: str, extra: Mapping[str, Any]) -> None:
    asked = [name for name in _ELSEWHERE if extra.get(name)]
    if asked:
        raise InvalidRequest(
            f"connection {conn_id!r}: {', '.join(asked)} would have to be followed by every Spark executor, and is "
            "not: give keys with a session token, or a connection without keys where the executors have the role "
            "themselves"
        )
    if extra.get("verify") not in (None, True, "true", "True"):
        raise InvalidRequest(
            f"connection {conn_id!r}: a store's certificate is always checked, against the authorities of the machine: "
            "add yours there (SSL_CERT_FILE), and leave out 'verify'"
        )
