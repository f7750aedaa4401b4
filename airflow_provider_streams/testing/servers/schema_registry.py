"""Pravega Schema Registry with its store in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from airflow_provider_streams.testing.servers.base import Server
from airflow_provider_streams.testing.servers.fetch import Artifact, Bundle, fetch
from airflow_provider_streams.testing.servers.java import find_java
from airflow_provider_streams.testing.servers.process import LOOPBACK

VERSION = "0.6.0"
BUNDLE = Bundle(
    title=f"Pravega Schema Registry {VERSION}",
    artifacts=(
        Artifact("io.pravega", "schemaregistry-server", VERSION),
        # For Java programs that write events with schemas.
        Artifact("io.pravega", "schemaregistry-serializers", VERSION),
        Artifact("io.pravega", "schemaregistry-client", VERSION),
    ),
    excludes=(("io.pravega", "pravega-keycloak-client"),),
)


class SchemaRegistryServer(Server):
    """A schema registry at `url`. It listens on all interfaces, whatever it is told.

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
    def classpath(self) -> list[str]:
        """For Java programs that write with schemas (see `java.run_java`)."""
        return [f"{fetch(BUNDLE)}/*"]

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
            find_java(),
            "-Xmx512m",
            *flags,
            "-cp",
            ":".join(self.classpath),
            "io.pravega.schemaregistry.service.Main",
        ]

    def is_ready(self) -> bool:
        """It lists the groups of a namespace."""
        return self._http.get(f"{self.url}/v1/groups", params={"namespace": "ready"}).is_success
