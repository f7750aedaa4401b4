"""What a connection of type `wasb` or `adls` says of an Azure store, by the names of Iceberg's file IO.

| the connection | the property |
|---|---|
| login | `adls.account-name`; with extra `tenant_id`, `adls.client-id` |
| password, or extra `shared_access_key` | `adls.account-key`; with `tenant_id`, the password is `adls.client-secret` |
| extra `tenant_id` | `adls.tenant-id` |
| extra `sas_token` | `adls.sas-token` |
| any extra `adls.*` | the same; it wins |

These are the names of Microsoft's provider, which need not be installed. Without keys, the processes that read and
write find them as on any machine of Azure: environment, managed identity, workload identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal

if TYPE_CHECKING:
    from airflow.sdk import Connection

AZURE_TYPES = ("wasb", "adls")

_SECRET = ("adls.account-key", "adls.client-secret", "adls.sas-token")
_ELSEWHERE = (
    "connection_string",
    "client_secret_auth_config",
    "managed_identity_client_id",
    "workload_identity_tenant_id",
)
"""What the provider's own client would do, and a store's client in an executor does not."""


def azure_properties(connection: Connection) -> dict[str, str]:
    """The properties; keys among them, which no log and no error shows from here on.

    Raises:
        InvalidRequest: the connection asks for what cannot be done for the processes that write.
    """
    extra: Mapping[str, Any] = connection.extra_dejson
    asked = [name for name in _ELSEWHERE if extra.get(name)]
    if asked:
        raise InvalidRequest(
            f"connection {connection.conn_id!r}: {', '.join(asked)} would have to be followed by every Spark executor, "
            "and is not: give the account's name and key, a SAS token, or an application's id, secret and tenant; or "
            "a connection without any where the executors have an identity themselves"
        )
    named = {
        **_login(connection, extra.get("tenant_id")),
        **({"adls.account-key": extra["shared_access_key"]} if extra.get("shared_access_key") else {}),
        "adls.tenant-id": extra.get("tenant_id"),
        # the provider takes it with and without the mark of a query, stores' clients without
        "adls.sas-token": str(extra.get("sas_token") or "").removeprefix("?"),
        **{name: value for name, value in extra.items() if name.startswith("adls.")},
    }
    properties = {name: str(value) for name, value in named.items() if value not in (None, "")}
    for name in _SECRET:
        conceal(properties.get(name, ""))
    return properties


def _login(connection: Connection, tenant: object) -> dict[str, str | None]:
    name, secret = ("client-id", "client-secret") if tenant else ("account-name", "account-key")
    return {f"adls.{name}": connection.login, f"adls.{secret}": connection.password}
