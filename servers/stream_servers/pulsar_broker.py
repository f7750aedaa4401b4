"""A Pulsar cluster of several brokers: each is a process, over one ZooKeeper and one bookie."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import httpx

from airflow_provider_streams.spark.launch.java_search import find_java
from stream_servers.base import Server
from stream_servers.bundles import PULSAR
from stream_servers.fetch import fetch
from stream_servers.java import QUICK_START
from stream_servers.process import LOOPBACK
from stream_servers.pulsar import VERSION, PulsarServer

_CLUSTER = "cluster"


class PulsarStorage(Server):
    """ZooKeeper and a bookie, for `PulsarBroker`s."""

    title: ClassVar[str] = f"Pulsar {VERSION}'s ZooKeeper and bookie"
    ports: ClassVar[tuple[str, ...]] = ("zookeeper", "bookie")

    def __init__(self) -> None:
        super().__init__()
        self.token_key = secrets.token_bytes(32)
        """What its brokers sign and check tokens with."""

    @property
    def metadata_url(self) -> str:
        """Where brokers find it."""
        return f"zk:{LOOPBACK}:{self.port['zookeeper']}"

    def prepare(self) -> None:
        """Make room for what it stores."""
        for name in ("zookeeper", "bookkeeper"):
            (self.home / name).mkdir()

    def command(self) -> Sequence[str]:
        """`bin/pulsar standalone` without a broker."""
        pulsar = fetch(PULSAR) / f"apache-pulsar-{VERSION}" / "bin" / "pulsar"
        places = ["--zookeeper-dir", str(self.home / "zookeeper"), "--bookkeeper-dir", str(self.home / "bookkeeper")]
        network = ["--zookeeper-port", str(self.port["zookeeper"]), "--bookkeeper-port", str(self.port["bookie"])]
        return [str(pulsar), "standalone", "--no-broker", "-nfw", "-nss", "-a", LOOPBACK, *network, *places]

    def environment(self) -> Mapping[str, str]:
        """Small memory, quiet collector, logs below `home`."""
        return {
            **super().environment(),
            "JAVA_HOME": str(find_java().home),
            "PULSAR_STANDALONE_USE_ZOOKEEPER": "1",
            "PULSAR_LOG_DIR": str(self.home / "logs"),
            "PULSAR_MEM": "-Xms64m -Xmx512m -XX:MaxDirectMemorySize=512m",
            "PULSAR_GC": " ".join(QUICK_START),
            "PULSAR_GC_LOG": "-Xlog:disable",
            "PULSAR_EXTRA_OPTS": f"-Djava.io.tmpdir={self.scratch}",
        }

    def is_ready(self) -> bool:
        """The bookie, which starts last, listens."""
        with socket.create_connection((LOOPBACK, self.port["bookie"]), timeout=1):
            return True


class PulsarBroker(PulsarServer):
    """One of the brokers over `storage`; the others are started in the same way.

    Args:
        storage: Must be running.
        address: What it calls itself; `localhost` is another host than 127.0.0.1 for code that compares names.
        **more: As `PulsarServer`'s.
    """

    title: ClassVar[str] = f"a broker of Pulsar {VERSION}"

    def __init__(self, storage: PulsarStorage, *, address: str = LOOPBACK, **more: Any) -> None:
        super().__init__(token_key=storage.token_key, **{"heap": "512m", "jvm": QUICK_START, **more})
        self._storage, self.address = storage, address

    def prepare(self) -> None:
        """Write `broker.conf` with our settings."""
        replicas = dict.fromkeys(("EnsembleSize", "WriteQuorum", "AckQuorum"), "1")
        more = {
            "clusterName": _CLUSTER,
            "metadataStoreUrl": self._storage.metadata_url,
            "configurationMetadataStoreUrl": self._storage.metadata_url,
            # The topics of a killed broker are free after so long.
            "metadataStoreSessionTimeoutMillis": "5000",
            # Others move when a test moves them.
            "loadBalancerSheddingEnabled": "false",
            **{f"managedLedgerDefault{name}": count for name, count in replicas.items()},
        }
        self.write_configuration("broker.conf", {**self.network, **more})

    def command(self) -> Sequence[str]:
        """`bin/pulsar broker`."""
        return [str(self.distribution / "bin" / "pulsar"), "broker"]

    def environment(self) -> Mapping[str, str]:
        """As a standalone server's."""
        return {**super().environment(), "PULSAR_BROKER_CONF": str(self.home / "broker.conf")}

    def is_ready(self) -> bool:
        """It says so, and the cluster has its tenant and namespace, which the first broker makes."""
        try:
            if not self.says_ready():
                return False
            if _CLUSTER not in self.admin("GET", "clusters"):
                self.admin("PUT", f"clusters/{_CLUSTER}", {"serviceUrl": self.admin_url})
            if "public" not in self.admin("GET", "tenants"):
                self.admin("PUT", "tenants/public", {"allowedClusters": [_CLUSTER]})
        except httpx.HTTPStatusError:
            return False
        return True
