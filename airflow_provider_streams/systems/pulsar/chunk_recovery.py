"""The first chunks of a message that begins before the split that owns it."""

from __future__ import annotations

from typing import Final

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.chunks import ChunkCollector, Place, Whole
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.fetcher import Feed
from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient

FARTHEST_ENTRIES: Final = 100_000
FARTHEST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""How far is looked back. Chunks of one message stand close together; Pulsar's own consumers give up much earlier."""


class LookBack:
    """Reads a topic again from ever earlier entries, on behalf of one split.

    Where a message's first chunk was looked for in vain, no second one is looked for, unless its first chunk was seen
    there: a producer that writes only last chunks does not make a reader read the topic for each of them.

    Args:
        endpoint: The cluster.
        topic: One partition, by its full name.
    """

    def __init__(self, endpoint: Endpoint, topic: str) -> None:
        self._endpoint, self._topic = endpoint, topic
        self._begun: set[int] | None = None
        """Digests of the uuids whose first chunk was seen when one was looked for in vain; None: none ever was."""

    def find(self, metadata: EntryMetadata, whole: Whole, last: Place) -> Whole | None:
        """The message whose last chunk (with this metadata) is at `last`, and of which `whole` is known.

        Returns:
            The whole message; None if its first chunk is not among the entries before.
        """
        if self._begun is not None and not whole.has_begun and hash(metadata.uuid) not in self._begun:
            return None
        looked = step = min(metadata.num_chunks, FARTHEST_ENTRIES)
        start = self._earlier(whole.places[0], step)
        begun: set[int] = set()
        while start is not None:
            begun = set()
            found, is_far = self._read(metadata.uuid, start, last, begun)
            if found is not None:
                return found
            if is_far or looked >= FARTHEST_ENTRIES:
                break
            step = min(2 * step, FARTHEST_ENTRIES - looked)
            looked += step
            start = self._earlier(start, step)
        self._begun = (self._begun or set()) | begun
        return None

    def _read(self, uuid: bytes | None, start: Place, last: Place, begun: set[int]) -> tuple[Whole | None, bool]:
        """The message, if it begins after `start`, and whether `start` is too far away; fills `begun`."""
        # only this message is collected: its size bounds the memory
        collector = ChunkCollector(self._endpoint.limits)
        feed = Feed(self._endpoint, self._topic, start, Position.of(*last, -1))
        size = 0
        try:
            for deliveries in feed:
                for entry, metadata in deliveries:
                    place = (entry.ledger, entry.entry)
                    size += len(entry.payload)
                    if metadata.num_chunks > 1 and metadata.chunk_id == 0:
                        begun.add(hash(metadata.uuid))
                    whole = collector.add(metadata, place, entry.payload) if metadata.uuid == uuid else None
                    if size > FARTHEST_BYTES:
                        return None, True
                    if place >= last:
                        if whole is None and collector.has_finished(uuid):
                            return Whole((last,), None, is_repeat=True), False
                        is_found = whole is not None and (whole.payload is not None or whole.wrong is not None)
                        return (whole if is_found else None), False
        finally:
            feed.close()
        return None, False

    def _earlier(self, start: Place, step: int) -> Place | None:
        """Some `step` entries earlier, or a ledger's first entry on the way there; None: nothing is stored before."""
        ledger, entry = start
        if entry == 0:
            with BrokerClient(self._endpoint) as client:
                before = client.entry_before(self._topic, Position.of(ledger, 0, -1))
            if before is None:
                return None
            ledger, entry = before.parts[0], before.parts[1] + 1
        return ledger, max(0, entry - step)
