"""What a connection says of an object store, by the names of Iceberg's file IO.

| type `aws`, `generic` | the property |
|---|---|
| login, or extra `aws_access_key_id` | `s3.access-key-id` |
| password, or extra `aws_secret_access_key` | `s3.secret-access-key` |
| extra `aws_session_token` | `s3.session-token` |
| extra `region_name` | `s3.region` |
| extra `service_config.s3.endpoint_url`, or `endpoint_url` | `s3.endpoint` |
| any extra `s3.*` | the same; it wins |

| type `wasb`, `adls` | the property |
|---|---|
| login | `adls.account-name`; with extra `tenant_id`, `adls.client-id` |
| password, or extra `shared_access_key` | `adls.account-key`; with `tenant_id`, the password is `adls.client-secret` |
| extra `tenant_id` | `adls.tenant-id` |
| extra `sas_token` | `adls.sas-token` |
| extra `account_name` | `adls.account-name` |
| any extra `adls.*` | the same; it wins |

These are the names of Amazon's and Microsoft's providers, which need not be installed. Without keys, the processes that
read and write find them as on any machine of that cloud: environment, instance profile, managed or workload identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.connection.address import AddressRules, check_whole
from airflow_provider_streams.systems.connection.catalog_properties import AZURE_NAMES, S3_NAMES, refuse_near_misses

if TYPE_CHECKING:
    from airflow.sdk import Connection

S3_TYPES = ("aws", "generic")
AZURE_TYPES = ("wasb", "adls")

_STORE = AddressRules(kind="aws", option="s3.endpoint", secure=("https",), plain=("http",), default="https")
_STORES = ("s3.endpoint", "gcs.service.host")
"""Properties with the address of a store."""
_NOT_OURS = {
    "s3.profile-name": "give keys, or set AWS_PROFILE in the environment of driver and executors",
    "s3.server-side-encryption": "let the bucket encrypt by default",
    "s3.sse-kms-key-id": "let the bucket encrypt by default, with this key",
    "adls.connection-string": "give adls.account-name with adls.account-key or adls.sas-token",
    "adls.account-host": "give adls.blob-storage-authority and adls.dfs-storage-authority",
    "adls.credential": "give adls.account-key, adls.sas-token, or an application's id and secret",
    "adls.token": "give adls.account-key, adls.sas-token, or an application's id and secret",
    "adls.anon": "give adls.account-key, adls.sas-token, or nothing of them",
}
"""Properties of other clients than the tasks' own, which would ignore them, and what to write instead."""
_AZURE_SCHEMES = ("adls.blob-storage-scheme", "adls.dfs-storage-scheme")
_HALVES = {
    "s3.access-key-id": "s3.secret-access-key",
    "s3.secret-access-key": "s3.access-key-id",
    "s3.session-token": "s3.access-key-id",
    "adls.client-secret": "adls.client-id",
}
_OF_AMAZON = {
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
    "region_name": "s3.region",
    "endpoint_url": "s3.endpoint",
}
_OTHERS_OF_AMAZON = (
    *("aws_account_id", "aws_iam_role", "assume_role_kwargs", "assume_role_with_saml", "external_id", "config_kwargs"),
    *("session_kwargs", "service_config", "verify", "extra_args"),
)
_ELSEWHERE = {
    "host": "put the store's address into the extra endpoint_url, with its scheme",
    "use_ssl": "the scheme of the extra endpoint_url says whether to use TLS",
    "region": "put the region into the extra region_name",
}
"""Extras that Amazon's provider does not read any more, or that contradict an address."""
_OF_MICROSOFT = ("tenant_id", "shared_access_key", "sas_token", "account_name")
_NOT_OF_AMAZON = ("role_arn", "profile_name", "assume_role_method")
"""What the provider's own session would do, and a store's client in an executor cannot. The same of Microsoft's:"""
_NOT_OF_MICROSOFT = (
    *("connection_string", "client_secret_auth_config", "managed_identity_client_id", "workload_identity_tenant_id"),
    "proxies",
)
_SECRETS = (
    *("s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
    *("adls.account-key", "adls.client-secret", "adls.sas-token"),
)


def s3_properties(connection: Connection) -> dict[str, str]:
    """The properties of an S3 store; from here on, no log and no error shows its keys.

    Raises:
        InvalidRequest: the connection asks for what executors cannot do, or has an extra that is nearly a known one.
    """
    extra: Mapping[str, Any] = extra_of(connection)
    advice = "give keys with a session token, or a connection without keys if the executors have the role themselves"
    _refuse(connection, _NOT_OF_AMAZON, advice)
    if extra.get("verify") not in (None, True, "true", "True"):
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: a store's certificate is always checked, against the authorities of "
            "the machine. Add yours there (SSL_CERT_FILE), and leave out 'verify'"
        )
    if connection.host:
        raise InvalidRequest(
            f"connection {connection.conn_id!r} of type {connection.conn_type!r} does not use the field host, which "
            "must be empty: put the store's address into the extra endpoint_url, with its scheme"
        )
    if (name := next((name for name in _ELSEWHERE if extra.get(name) not in (None, "")), None)) is not None:
        raise InvalidRequest(
            f"connection {connection.conn_id!r} of type {connection.conn_type!r} does not use the extra {name}: "
            f"{_ELSEWHERE[name]}"
        )
    refuse_near_misses(str(connection.conn_id), extra, (*_OF_AMAZON, *_NOT_OF_AMAZON, *_OTHERS_OF_AMAZON, *S3_NAMES))
    fields = {"s3.access-key-id": connection.login, "s3.secret-access-key": connection.password}
    service = (extra.get("service_config") or {}).get("s3") or {}
    properties = _properties(
        {name: extra.get(key) for key, name in _OF_AMAZON.items()},
        fields,
        {"s3.endpoint": service.get("endpoint_url")},
        {name: value for name, value in extra.items() if name.startswith("s3.")},
    )
    check_store(str(connection.conn_id), properties)
    return properties


def azure_properties(connection: Connection) -> dict[str, str]:
    """As `s3_properties`, of an Azure store."""
    extra: Mapping[str, Any] = extra_of(connection)
    advice = (
        "give the account's name and key, a SAS token, or an application's id, secret and tenant; or a connection "
        "without any of these if the executors have an identity themselves"
    )
    _refuse(connection, _NOT_OF_MICROSOFT, advice)
    if place := "field host" if connection.host else "extra account_url" if extra.get("account_url") else "":
        raise InvalidRequest(
            f"connection {connection.conn_id!r} of type {connection.conn_type!r} does not use the {place}, which must "
            "be empty: the table's address names the account (abfss://container@account.dfs.core.windows.net/..). For "
            "another place than Azure's own, give the extras adls.blob-storage-authority, adls.dfs-storage-authority "
            "and, without TLS, adls.blob-storage-scheme and adls.dfs-storage-scheme (http)"
        )
    refuse_near_misses(str(connection.conn_id), extra, (*_OF_MICROSOFT, *_NOT_OF_MICROSOFT, *AZURE_NAMES))
    name, secret = ("client-id", "client-secret") if extra.get("tenant_id") else ("account-name", "account-key")
    properties = _properties(
        {"adls.account-name": extra.get("account_name")},
        {f"adls.{name}": connection.login, f"adls.{secret}": connection.password},
        {"adls.account-key": extra.get("shared_access_key"), "adls.tenant-id": extra.get("tenant_id")},
        # Microsoft's provider takes it with and without the mark of a query, stores' clients without
        {"adls.sas-token": str(extra.get("sas_token") or "").removeprefix("?")},
        {name: value for name, value in extra.items() if name.startswith("adls.")},
    )
    check_store(str(connection.conn_id), properties)
    return properties


def check_store(conn_id: str, properties: dict[str, str]) -> None:
    """Check a store's address and keys, and write the address's scheme as clients expect it.

    Raises:
        InvalidRequest: the address has a password, which clients of stores show in their errors; or no scheme, so
            that each client would guess one; a property is one that the tasks' clients ignore; or a key is given
            without its other half.
    """
    for name in _STORES:
        if address := properties.get(name):
            properties[name] = check_whole(conn_id, f"the address of a store ({name})", address, _STORE)
    for name, advice in _NOT_OURS.items():
        if properties.get(name):
            raise InvalidRequest(f"connection {conn_id!r}: tables' files are not reached by {name}: {advice}")
    for name in _AZURE_SCHEMES:
        if properties.get(name) and properties[name] not in ("http", "https"):
            raise InvalidRequest(f"connection {conn_id!r}: {name} is http or https, in small letters")
    for name, other in _HALVES.items():
        if properties.get(name) and not properties.get(other):
            raise InvalidRequest(f"connection {conn_id!r}: {name} is given without {other}: give both, or none")


def _refuse(connection: Connection, names: tuple[str, ...], advice: str) -> None:
    if asked := [name for name in names if extra_of(connection).get(name)]:
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: Spark's executors cannot follow {', '.join(asked)}: {advice}"
        )


def _properties(*layers: Mapping[str, Any]) -> dict[str, str]:
    """Those that are given, the last layer first; their secrets are concealed."""
    found = {name: str(value) for one in layers for name, value in one.items() if value not in (None, "")}
    for name in _SECRETS:
        register_secret(found.get(name, ""))
    return found
