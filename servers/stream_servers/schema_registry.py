"""Pravega Schema Registry with its store in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers.base import Server
from stream_servers.bundles import SCHEMA_REGISTRY, SCHEMA_REGISTRY_VERSION
from stream_servers.fetch import jars
from stream_servers.java import QUICK_START
from stream_servers.process import LOOPBACK

VERSION = SCHEMA_REGISTRY_VERSION


class SchemaRegistryServer(Server):
    """A schema registry at `url`. It listens on all interfaces, whatever its settings say.

    Args:
        settings: System properties to set or override, by their names in the registry's documentation.
    """

    title: ClassVar[str] = f"Schema Registry {VERSION}"
    ports: ClassVar[tuple[str, ...]] = ("rest",)

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._settings = dict(settings or {})

    @property
    def url(self) -> str:
        """The REST API: `http://127.0.0.1:<port>`."""
        return f"http://{LOOPBACK}:{self.port['rest']}"

    @property
    def variables(self) -> Mapping[str, str]:
        """As Airflow connections of type `pravega_schema_registry` read them."""
        return {"PRAVEGA_SCHEMA_REGISTRY_URI": self.url}

    @property
    def classpath(self) -> list[str]:
        """For Java programs that write with schemas (see `java.run_java`)."""
        return [*jars(SCHEMA_REGISTRY)]

    def prepare(self) -> None:
        """Nothing: it has no files."""

    def command(self) -> Sequence[str]:
        """The JVM with the registry's main class."""
        properties = {
            "java.io.tmpdir": str(self.scratch),
            "schemaRegistry.store.type.name": "InMemory",
            "schemaRegistry.service.rest.listener.port": str(self.port["rest"]),
            "schemaRegistry.service.rest.listener.host.nameOrIp": LOOPBACK,
            **self._settings,
        }
        flags = [f"-D{name}={value}" for name, value in properties.items()]
        return [
            str(find_java().program),
            "-Xmx512m",
            *QUICK_START,
            *flags,
            "-cp",
            ":".join(self.classpath),
            "io.pravega.schemaregistry.service.Main",
        ]

    def is_ready(self) -> bool:
        """It lists the groups of a namespace."""
        return self._http.get(f"{self.url}/v1/groups", params={"namespace": "ready"}).is_success
