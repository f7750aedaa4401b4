"""Debezium Server: reads a database's log, and writes its changes into a stream."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import ClassVar

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers.base import Server
from stream_servers.bundles import DEBEZIUM, DEBEZIUM_VERSION
from stream_servers.fetch import fetch
from stream_servers.process import LOOPBACK


class DebeziumServer(Server):
    """One connector and one sink. Its offsets survive `kill()` and `start()`, as they were last written.

    Args:
        settings: lines of `application.properties`: of source, sink and format.
        offsets_ms: how often it writes its offsets: what it published since, it sends again after a kill.
    """

    title: ClassVar[str] = f"Debezium Server {DEBEZIUM_VERSION}"
    ports: ClassVar[tuple[str, ...]] = ("http",)

    def __init__(self, settings: Mapping[str, str], *, offsets_ms: int = 2000) -> None:
        super().__init__()
        self._settings, self._offsets_ms = dict(settings), offsets_ms

    def prepare(self) -> None:
        """Write its settings, which hold passwords."""
        lines = {
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": str(self.port["http"]),
            "quarkus.log.console.json": "false",
            "debezium.source.offset.storage.file.filename": str(self.home / "offsets.dat"),
            "debezium.source.offset.flush.interval.ms": str(self._offsets_ms),
            **self._settings,
        }
        folder = self.home / "conf"
        folder.mkdir()
        file = folder / "application.properties"
        file.touch(mode=0o600)
        file.write_text("\n".join(f"{name}={value}" for name, value in lines.items()))

    def command(self) -> Sequence[str]:
        """As its `run.sh` starts it."""
        root = fetch(DEBEZIUM)
        runner = next(root.glob("**/debezium-server-*-runner.jar"))
        path = os.pathsep.join([str(runner), str(self.home / "conf"), f"{runner.parent}/lib/*"])
        flags = ["-Xmx512m", f"-Djava.io.tmpdir={self.scratch}"]
        return [str(find_java().program), *flags, "-cp", path, "io.debezium.server.Main"]

    def is_ready(self) -> bool:
        """It says so itself, once source and sink are connected."""
        return self._http.get(f"http://{LOOPBACK}:{self.port['http']}/q/health/ready").is_success
