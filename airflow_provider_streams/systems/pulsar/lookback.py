"""The first chunks of a message that begins before the split that owns it."""

from __future__ import annotations

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.auth import Endpoint
from airflow_provider_streams.systems.pulsar.chunks import ChunkCollector, Place, Whole
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.feed import Feed
from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient


def look_back(endpoint: Endpoint, topic: str, metadata: EntryMetadata, seen: Place, last: Place) -> Whole | None:
    """The message whose last chunk (with this metadata) is at `last`, read again from ever earlier entries.

    Args:
        endpoint: The cluster.
        topic: One partition, by its full name.
        metadata: Of the last chunk.
        seen: The first of its chunks that is known; the search begins before it.
        last: Where its last chunk is.

    Returns:
        The whole message; None if the topic's first stored entry was reached without its first chunk.
    """
    step = metadata.num_chunks
    start = _earlier(endpoint, topic, seen, step)
    while start is not None:
        whole = _read(endpoint, topic, metadata.uuid, start, last)
        if whole is not None:
            return whole
        step *= 2
        start = _earlier(endpoint, topic, start, step)
    return None


def _read(endpoint: Endpoint, topic: str, uuid: bytes | None, start: Place, last: Place) -> Whole | None:
    # only this message is collected: its size bounds the memory
    collector = ChunkCollector(endpoint.limits)
    feed = Feed(endpoint, topic, start, Position.of(*last, -1))
    try:
        for deliveries in feed:
            for entry, metadata in deliveries:
                place = (entry.ledger, entry.entry)
                whole = collector.add(metadata, place, entry.payload) if metadata.uuid == uuid else None
                if place >= last:
                    return whole if whole and (whole.payload is not None or whole.wrong) else None
    finally:
        feed.close()
    return None


def _earlier(endpoint: Endpoint, topic: str, start: Place, step: int) -> Place | None:
    """Some `step` entries earlier, or a ledger's first entry on the way there; None: nothing is stored before."""
    ledger, entry = start
    if entry == 0:
        with BrokerClient(endpoint) as client:
            before = client.entry_before(topic, Position.of(ledger, 0, -1))
        if before is None:
            return None
        ledger, entry = before.parts[0], before.parts[1] + 1
    return ledger, max(0, entry - step)
