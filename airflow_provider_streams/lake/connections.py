"""The properties of a table's connection: Airflow resolves them in a task, and a Spark job has them in its spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote

from airflow_provider_streams.errors import InvalidRequest, foreseen
from airflow_provider_streams.model.sinks.sink import Sink

Properties = Mapping[str, str]
"""By the names of Iceberg's catalogs and file IO: `uri`, `warehouse`, `s3.endpoint`, ..; secrets among them."""

_given: dict[str, Properties] = {}
_resolvers: list[Callable[[str], Properties]] = []


@contextmanager
def given(conn_id: str | None, properties: Properties) -> Iterator[None]:
    """Give a connection these properties meanwhile: a job may run without Airflow."""
    before = dict(_given)
    if conn_id is not None:
        _given[conn_id] = properties
    try:
        yield
    finally:
        _given.clear()
        _given.update(before)


def resolve_by(resolver: Callable[[str], Properties]) -> None:
    """Resolve connections in this process by this function."""
    _resolvers[:] = [resolver]


def properties_of(conn_id: str | None) -> Properties:
    """The properties of a connection; empty without one. `InvalidRequest`: it is not known in this process."""
    if conn_id is None:
        return {}
    if conn_id in _given:
        return _given[conn_id]
    if not _resolvers:
        raise InvalidRequest(f"the connection {conn_id!r} of a table is not known here")
    with foreseen():
        return _resolvers[0](conn_id)


def connection_of(sink: Sink | None) -> str | None:
    """The connection that a sink names; None: none."""
    return None if sink is None else sink.conn_id


def check_connection(conn_id: str | None) -> None:
    """Raise `InvalidRequest` if a connection is no table's, in a process that can resolve connections."""
    if _resolvers:
        properties_of(conn_id)


def secrets_of(properties: Properties) -> list[str]:
    """The values among them that must not be shown, and the passwords in addresses."""
    named = [value for name, value in properties.items() if _SECRET.search(name) and value and value not in _FLAGS]
    if of_client := properties.get("credential", "").partition(":")[2]:  # which travels alone
        named.append(of_client)
    written = [one for value in properties.values() for kind in _PASSWORDS for one in kind.findall(value)]
    return named + list(dict.fromkeys(form for one in written for form in (one, unquote(one))))  # errors show either


_SECRET = re.compile(
    "secret|token|password|credential|authorization|cookie|(access|account|sas|api)[-_.]?key", re.IGNORECASE
)
"""In names of secrets: `s3.secret-access-key`, `credential`, `header.X-Api-Key`, .."""
_FLAGS = ("true", "false")
"""What `token-refresh-enabled` may be: no secret."""
_PASSWORDS = (
    re.compile(r":/{1,3}[^/\s:@]*:([^/\s@]+)@"),
    re.compile(r"[?&](?:password|passwd|sslpassword|ssl_key_password)=([^&#\s]+)"),
)
"""The passwords in an address, even in a malformed one, and among the options of a database's."""
