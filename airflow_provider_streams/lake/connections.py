"""What a table's connection says. Airflow tells what its connections hold; a Spark job has it in its spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from airflow_provider_streams.errors import InvalidRequest

Properties = Mapping[str, str]
"""By the names of Iceberg's catalogs and file IO: `uri`, `warehouse`, `s3.endpoint`, ..; secrets among them."""

_given: dict[str, Properties] = {}
_resolvers: list[Callable[[str], Properties]] = []


@contextmanager
def given(conn_id: str | None, properties: Properties) -> Iterator[None]:
    """What a connection says meanwhile: of a job, which may run where nobody can ask Airflow."""
    before = dict(_given)
    if conn_id is not None:
        _given[conn_id] = properties
    try:
        yield
    finally:
        _given.clear()
        _given.update(before)


def resolve_by(resolver: Callable[[str], Properties]) -> None:
    """Who can be asked in this process."""
    _resolvers[:] = [resolver]


def properties_of(conn_id: str | None) -> Properties:
    """What a connection says; nothing of none.

    Raises:
        InvalidRequest: nobody here knows it.
    """
    if conn_id is None:
        return {}
    if conn_id in _given:
        return _given[conn_id]
    if not _resolvers:
        raise InvalidRequest(f"the connection {conn_id!r} of a table is not known here")
    return _resolvers[0](conn_id)


def secrets_of(properties: Properties) -> list[str]:
    """The values among them that must not be shown, and the passwords in addresses."""
    named = [value for name, value in properties.items() if _SECRET.search(name) and value]
    return named + [password for value in properties.values() for password in _PASSWORD.findall(value)]


_SECRET = re.compile(
    "secret|token|password|credential|authorization|cookie|(access|account|sas|api)[-_.]?key", re.IGNORECASE
)
"""How the ecosystem's names of secrets look: `s3.secret-access-key`, `credential`, `header.X-Api-Key`, .."""
_PASSWORD = re.compile(r":/{1,3}[^/\s:@]*:([^/\s@]+)@")
"""That of an address, also of one that is written wrongly."""
