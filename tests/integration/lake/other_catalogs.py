"""Iceberg's catalogs besides REST and SQL: Hive's metastore from Maven Central, and what stands for Amazon's Glue."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import escape

import pytest

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers import FetchFailed
from stream_servers.base import Server
from stream_servers.bundles import HIVE, HIVE_VERSION
from stream_servers.fetch import jars
from stream_servers.java import QUICK_START, compile_java
from stream_servers.process import LOOPBACK


class HiveMetastore(Server):
    """Hive's metastore at `uri`, with Derby; tables without a location are in `warehouse`."""

    title: ClassVar[str] = f"Hive metastore {HIVE_VERSION}"
    ports: ClassVar[tuple[str, ...]] = ("thrift",)

    @property
    def uri(self) -> str:
        """As catalogs name it: `thrift://127.0.0.1:<port>`."""
        return f"thrift://{LOOPBACK}:{self.port['thrift']}"

    @property
    def warehouse(self) -> Path:
        """Its own folder."""
        return self.home / "ware house"

    def prepare(self) -> None:
        """Fetch it, once, and write its configuration."""
        try:
            self._classpath = jars(HIVE)
        except FetchFailed as error:
            pytest.skip(str(error))
        self._classes = compile_java(Path(__file__).with_name("Metastore.java"), self._classpath)
        properties = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.home}/database;create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "metastore.schema.verification": "false",
            "metastore.thrift.bind.host": LOOPBACK,
            "metastore.thrift.port": str(self.port["thrift"]),
            "metastore.warehouse.dir": self.warehouse.as_uri(),
            # the others come with Hive itself
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            "fs.s3.impl": "Metastore$Bucket",
        }
        lines = (
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in properties.items()
        )
        (self.home / "metastore-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")

    def command(self) -> Sequence[str]:
        """The JVM; Hadoop of that time looks for Kerberos inside of Java."""
        opened = "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
        classpath = ":".join([str(self._classes), str(self.home), *self._classpath])
        return [str(find_java().program), "-Xmx512m", *QUICK_START, opened, "-cp", classpath, "Metastore"]

    def is_ready(self) -> bool:
        """It listens once it is."""
        with socket.create_connection((LOOPBACK, self.port["thrift"]), timeout=5):
            return True


class GlueServer(Server):
    """moto's Glue, in memory; it takes any keys."""

    title: ClassVar[str] = "moto"
    ports: ClassVar[tuple[str, ...]] = ("http",)
    ready_seconds: ClassVar[float] = 60.0

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{LOOPBACK}:{self.port['http']}"

    def prepare(self) -> None:
        """It needs nothing."""

    def environment(self) -> Mapping[str, str]:
        """It knows only its own account, and asks no service for one."""
        return {**super().environment(), "AWS_EC2_METADATA_DISABLED": "true"}

    def command(self) -> Sequence[str]:
        """This Python, with the programs that pip installed for it."""
        program = str(Path(__file__).with_name("glue_server.py"))
        return [sys.executable, program, "-H", LOOPBACK, "-p", str(self.port["http"])]

    def is_ready(self) -> bool:
        """It answers."""
        return bool(self._http.get(f"{self.url}/moto-api/").is_success)
