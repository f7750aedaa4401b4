"""What a connection says of an object store, by the names of Iceberg's file IO.

| type `aws`, `generic` | the property |
|---|---|
| login, or extra `aws_access_key_id` | `s3.access-key-id` |
| password, or extra `aws_secret_access_key` | `s3.secret-access-key` |
| extra `aws_session_token` | `s3.session-token` |
| extra `region_name` | `s3.region` |
| extra `service_config.s3.endpoint_url`, or else `endpoint_url` | `s3.endpoint` |
| any extra `s3.*` | the same |

| type `wasb`, `adls` | the property |
|---|---|
| login | `adls.account-name`; with extra `tenant_id`, `adls.client-id` |
| password, or extra `shared_access_key` | `adls.account-key`; with `tenant_id`, the password is `adls.client-secret` |
| extra `tenant_id` | `adls.tenant-id` |
| extra `sas_token` | `adls.sas-token` |
| extra `account_name` | `adls.account-name` |
| any extra `adls.*` | the same |

Two places that say different things of one property are an error. Only the address for S3 alone may be another one than
`endpoint_url`, and must agree with it about TLS.

These are the names of Amazon's and Microsoft's providers, which need not be installed. Without keys, the processes that
read and write find them as on any machine of that cloud: environment, instance profile, managed or workload identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.unused_settings import refuse_extras, refuse_fields
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.connection.address import AddressRules, check_whole, normal, scheme_of
from airflow_provider_streams.systems.connection.catalog_properties import AZURE_NAMES, S3_NAMES, refuse_near_misses
from airflow_provider_streams.systems.connection.contradiction import check_one_credential, contradiction, half_given

if TYPE_CHECKING:
    from airflow.sdk import Connection

S3_TYPES = ("aws", "generic")
AZURE_TYPES = ("wasb", "adls")

_STORE = AddressRules(kind="aws", option="s3.endpoint", secure=("https",), plain=("http",), default="https")
_STORES = ("s3.endpoint", "gcs.service.host", "glue.endpoint")
"""Properties with the address of a store, or of another service that takes the same keys."""
_OF_KEYS = ("s3", "client", "glue", "dynamodb")
"""Whose keys are a pair."""
_OF_AZURE = ("adls.account-key", "adls.sas-token", "adls.client-secret")
"""Credentials of one account, which uses one of them."""
_UNCHECKED = ("verify", "ssl_verify", "ssl-verify", "verify_ssl", "verify-ssl")
"""Extras of other clients that would leave a certificate unchecked."""
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
    **{f"{family}.access-key-id": f"{family}.secret-access-key" for family in _OF_KEYS},
    **{f"{family}.secret-access-key": f"{family}.access-key-id" for family in _OF_KEYS},
    **{f"{family}.session-token": f"{family}.access-key-id" for family in _OF_KEYS},
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
_UNUSED_FIELDS = ("host", "port", "schema")
_ADDRESS_OF_S3 = (
    "put the store's address into the extra endpoint_url, with its scheme and port; the table's address names the "
    "bucket"
)
_ADDRESS_OF_AZURE = (
    "the table's address names the account (abfss://container@account.dfs.core.windows.net/..). For another place than "
    "Azure's own, give the extras adls.blob-storage-authority, adls.dfs-storage-authority and, without TLS, "
    "adls.blob-storage-scheme and adls.dfs-storage-scheme (http)"
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


def s3_properties(connection: Connection) -> dict[str, str]:
    """The properties of an S3 store; from here on, no log and no error shows its keys.

    Raises:
        InvalidRequest: the connection asks for what executors cannot do, or has an extra that is nearly a known one.
    """
    extra: Mapping[str, Any] = extra_of(connection)
    advice = "give keys with a session token, or a connection without keys if the executors have the role themselves"
    _refuse(connection, _NOT_OF_AMAZON, advice)
    refuse_never_used(connection, extra)
    refuse_fields(connection, dict.fromkeys(_UNUSED_FIELDS, _ADDRESS_OF_S3))
    refuse_extras(connection, extra, _ELSEWHERE)
    refuse_near_misses(str(connection.conn_id), extra, (*_OF_AMAZON, *_NOT_OF_AMAZON, *_OTHERS_OF_AMAZON, *S3_NAMES))
    service = (extra.get("service_config") or {}).get("s3") or {}
    own_address, address = service.get("endpoint_url"), extra.get("endpoint_url")
    if own_address and address and _is_tls(own_address) is not _is_tls(address):
        raise _different(connection, "s3.endpoint", "extra service_config.s3.endpoint_url", "extra endpoint_url")
    properties = _properties(
        connection,
        [
            ("login", "s3.access-key-id", connection.login),
            ("password", "s3.secret-access-key", connection.password),
            *((f"extra {key}", name, extra.get(key)) for key, name in _OF_AMAZON.items() if key != "endpoint_url"),
            ("extra service_config.s3.endpoint_url", "s3.endpoint", own_address)
            if own_address
            else ("extra endpoint_url", "s3.endpoint", address),
            *((f"extra {name}", name, value) for name, value in extra.items() if name.startswith("s3.")),
        ],
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
    refuse_never_used(connection, extra)
    refuse_fields(connection, dict.fromkeys(_UNUSED_FIELDS, _ADDRESS_OF_AZURE))
    refuse_extras(connection, extra, {"account_url": _ADDRESS_OF_AZURE})
    refuse_near_misses(str(connection.conn_id), extra, (*_OF_MICROSOFT, *_NOT_OF_MICROSOFT, *AZURE_NAMES))
    name, secret = ("client-id", "client-secret") if extra.get("tenant_id") else ("account-name", "account-key")
    properties = _properties(
        connection,
        [
            ("login", f"adls.{name}", connection.login),
            ("password", f"adls.{secret}", connection.password),
            ("extra account_name", "adls.account-name", extra.get("account_name")),
            ("extra shared_access_key", "adls.account-key", extra.get("shared_access_key")),
            ("extra tenant_id", "adls.tenant-id", extra.get("tenant_id")),
            # Microsoft's provider takes it with and without the mark of a query, stores' clients without
            ("extra sas_token", "adls.sas-token", str(extra.get("sas_token") or "").removeprefix("?")),
            *((f"extra {name}", name, value) for name, value in extra.items() if name.startswith("adls.")),
        ],
    )
    check_store(str(connection.conn_id), properties)
    return properties


def check_store(conn_id: str, properties: dict[str, str]) -> None:
    """Check a store's address and keys, and write the address's scheme as clients expect it.

    Raises:
        InvalidRequest: the address has a password, which clients of stores show in their errors; or no scheme, so
            that each client would guess one; a property is one that the tasks' clients ignore; a key is given
            without its other half; or one account has several credentials.
    """
    for name in _STORES:
        if address := properties.get(name):
            properties[name] = check_whole(conn_id, f"the address of a store ({name})", address, _STORE)
    for name, advice in _NOT_OURS.items():
        if properties.get(name):
            raise InvalidRequest(f"connection {conn_id!r}: tables' files are not reached by {name}: {advice}")
    for name in _AZURE_SCHEMES:
        if scheme := properties.get(name):
            properties[name] = scheme.lower()  # as all clients expect it
            if properties[name] not in ("http", "https"):
                raise InvalidRequest(f"connection {conn_id!r}: {name} is http or https")
    if len({properties.get(name, "https") for name in _AZURE_SCHEMES}) > 1:
        said = f"{' and '.join(_AZURE_SCHEMES)} are of the same account, and differ"
        raise contradiction(conn_id, said, "Write http into both, or leave both out for https")
    _check_credentials(conn_id, properties)


def _check_credentials(conn_id: str, properties: Mapping[str, str]) -> None:
    """Refuse half of a pair, and two credentials of which a client would use one."""
    for name, other in _HALVES.items():
        if properties.get(name) and not properties.get(other):
            raise half_given(conn_id, name, other)
    check_one_credential(conn_id, [name for name in _OF_AZURE if properties.get(name)], "account")


def refuse_never_used(connection: Connection, extra: Mapping[str, Any]) -> None:
    """Refuse extras that no client of ours uses: names of old versions of Airflow, and unchecked certificates.

    Raises:
        InvalidRequest: with what to write instead.
    """
    given = [name for name, value in extra.items() if value not in (None, "")]
    if old := next((name for name in given if name.startswith("extra__")), None):
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: extra {old!r} is a name of old versions of Airflow, and is not used: "
            f"write {old.rpartition('__')[2]!r}"
        )
    if name := next((one for one in given if one in _UNCHECKED and str(extra[one]).lower() != "true"), None):
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: certificates are always checked, against the authorities of the "
            f"machine. Add yours there (SSL_CERT_FILE, for a REST catalog REQUESTS_CA_BUNDLE), and leave out {name!r}"
        )


def _refuse(connection: Connection, names: tuple[str, ...], advice: str) -> None:
    if asked := [name for name in names if extra_of(connection).get(name)]:
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: Spark's executors cannot follow {', '.join(asked)}: {advice}"
        )


def _properties(connection: Connection, given: Iterable[tuple[str, str, object]]) -> dict[str, str]:
    """The properties by their names, with their secrets masked; each is given as its place, its name and its value.

    Raises:
        InvalidRequest: two places say different things of one property.
    """
    found: dict[str, str] = {}
    places: dict[str, str] = {}
    for place, name, value in given:
        if value in (None, ""):
            continue
        if normal(found.setdefault(name, str(value))) != normal(str(value)):
            raise _different(connection, name, places[name], place)
        places.setdefault(name, place)
    for secret in secrets_of(found):
        register_secret(secret)
    return found


def _different(connection: Connection, name: str, *places: str) -> InvalidRequest:
    said = f"{' and '.join(places)} say different things of {name}"
    return contradiction(connection.conn_id, said, "Leave one of them out")


def _is_tls(address: object) -> bool | None:
    return _STORE.is_tls(scheme_of(str(address)))
