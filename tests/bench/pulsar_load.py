"""Topics for the benchmarks: numbered events of one size, with or without keys, in batches of 1,000."""

from __future__ import annotations

from dataclasses import dataclass

import pulsar

from stream_servers.pulsar import PulsarServer

BATCH = 1000


def roomy_server() -> PulsarServer:
    """A broker whose bookie reads ahead as one of a cluster does, into a quarter of its direct memory.

    With the little that `pulsar standalone` gives it, two readers of a ledger push each other's entries out: the broker
    works four times as much, and readers wait so long.
    """
    ahead = {"dbStorage_readAheadCacheMaxSizeMb": "512"}
    return PulsarServer(ahead, heap="2g", jvm=("-XX:+UseG1GC", "-XX:MaxDirectMemorySize=2g"))


@dataclass(frozen=True)
class Load:
    """One topic to read."""

    name: str
    events: int
    event_bytes: int
    keyed: bool = False
    batch: int = BATCH

    @property
    def topic(self) -> str:
        """Its full name."""
        return f"persistent://public/default/{self.name}"


def publish(server: PulsarServer, load: Load) -> None:
    """Create and fill the topic."""
    server.create_topic(f"public/default/{load.name}")
    client = pulsar.Client(server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        load.topic,
        batching_enabled=load.batch > 1,
        batching_max_messages=max(load.batch, 2),
        batching_max_allowed_size_in_bytes=4 << 20,
        batching_max_publish_delay_ms=200,
        max_pending_messages=20_000,
        block_if_queue_full=True,
    )
    padding = b"x" * (load.event_bytes - 10)
    for number in range(load.events):
        key = {"partition_key": f"key-{number % 1009}"} if load.keyed else {}
        producer.send_async(b"%010d" % number + padding, callback=lambda *_: None, **key)
    producer.flush()
    client.close()
