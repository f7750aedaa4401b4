"""Commands that add the connections of a DAG, for people to paste. Secrets stay in variables of their shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_streams.model.schema.payload import Registry
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.source_json import payloads_of


@dataclass(frozen=True, slots=True)
class Example:
    """What a connection of a type may look like.

    Args:
        type: the connection's.
        fields: Airflow's own, by the names of `airflow connections add`, without `--conn-`.
        extra: its extra.
        secrets: fields with credentials, and the shell variables that hold them.
    """

    type: str
    fields: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)

    def commands(self, conn_id: str) -> tuple[str, ...]:
        """The command that adds it, and a remark about credentials."""
        words = ["airflow", "connections", "add", conn_id, "--conn-type", self.type]
        for name, value in self.fields.items():
            words += [f"--conn-{name}", value]
        if self.extra:
            words += ["--conn-extra", json.dumps(dict(self.extra))]
        command = shlex.join(words)
        if not self.secrets:
            return (command,)
        given = " ".join(f'--conn-{name} "${variable}"' for name, variable in self.secrets.items())
        return (command, f"# with credentials, add: {given}")


_BROKER: Final = {"service_url": "pulsar+ssl://broker.example.com:6651", "admin_url": "https://broker.example.com:8443"}
_CATALOG: Final = {"type": "rest", "uri": "https://catalog.example.com", "warehouse": "lake"}
_EXAMPLES: Final = {
    "pulsar": Example("pulsar", extra=_BROKER, secrets={"password": "PULSAR_TOKEN"}),
    "pravega": Example(
        "pravega",
        {"host": "tls://controller.example.com", "port": "9090"},
        secrets={"login": "PRAVEGA_USER", "password": "PRAVEGA_PASSWORD"},
    ),
    "schema_registry": Example(
        "schema_registry",
        {"host": "https://registry.example.com", "port": "9092"},
        secrets={"login": "REGISTRY_USER", "password": "REGISTRY_PASSWORD"},
    ),
    "iceberg": Example(
        "iceberg", extra=_CATALOG, secrets={"login": "ICEBERG_CLIENT_ID", "password": "ICEBERG_CLIENT_SECRET"}
    ),
    "aws": Example(
        "aws",
        extra={"region_name": "us-east-1"},
        secrets={"login": "AWS_ACCESS_KEY_ID", "password": "AWS_SECRET_ACCESS_KEY"},
    ),
    "wasb": Example("wasb", {"login": "ACCOUNT"}, secrets={"password": "AZURE_STORAGE_KEY"}),
}


def connections_of(source: Source, sink: Sink) -> dict[str, str]:
    """The connections that a DAG needs, by id, with their types."""
    found = {source.conn_id: source.system}
    for payload in payloads_of(source).values():
        if isinstance(payload, Registry):
            found[payload.conn_id] = "schema_registry"
    if sink.conn_id:
        is_azure = sink.asset_uri.startswith("abfs")
        found[sink.conn_id] = sink.kind if sink.kind in _EXAMPLES else "wasb" if is_azure else "aws"
    return found


def commands_of(conn_id: str, type_: str) -> tuple[str, ...]:
    """The command that adds a connection of a type, with placeholders."""
    return _EXAMPLES.get(type_, Example(type_, {"host": f"{type_}.example.com"})).commands(conn_id)
