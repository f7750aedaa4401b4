"""The next few messages of a shard as plain JSON values, for people and small events; bounded, whatever is stored.

A temporary consumer reads them through the binary protocol. A notice with the cause takes the place of an entry that
cannot be shown, so that the caller can go on after it.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.model.window.window import moment_of_ms
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of, partition_of
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.entry_fetcher import Delivery, Feed
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits

log = logging.getLogger(__name__)

ENTRY_BYTES: Final = 32 * 1024 * 1024
"""The limit of a decompressed entry here; windows may read larger ones, but far less is shown."""

Place = tuple[int, int]
"""Ledger and entry."""
Shown = Mapping[str, Any]
"""A message, or a notice in its place: `hidden` says why."""


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """How much is shown."""

    entries: int = 100
    """Stored entries; a batch is one entry."""
    messages: int = 1000
    """A notice `hidden: more` takes the place of the rest."""
    value_bytes: int = 4096
    """Only the place and size of longer values are shown."""


@dataclass(frozen=True, slots=True)
class Part:
    """What came next in one shard."""

    messages: Sequence[Shown]
    end: Place | None
    """The last entry among them; None: nothing came."""
    is_all: bool
    """Whether the broker had nothing more to send at that moment."""


class NextMessages:
    """Reads the next messages, blocking; `close` ends a read from another thread."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._feed: Feed | None = None
        self._closed = False

    def close(self) -> None:
        """End a read that is under way."""
        self._closed = True
        if self._feed:
            self._feed.close()

    def read(self, shard: str, start: Place, bounds: MessageLimits) -> Part:
        """The next entries from a place on, at least one if there is one; raises as `Feed`."""
        messages: list[Shown] = []
        end: Place | None = None
        for number, (place, shown) in enumerate(self._entries(shard, start, bounds)):
            if number == bounds.entries or (number and len(messages) + len(shown) > bounds.messages):
                return Part(messages, end, is_all=False)
            messages += shown
            end = place
        return Part(messages, end, is_all=True)

    def _entries(self, shard: str, start: Place, bounds: MessageLimits) -> Iterator[tuple[Place, list[Shown]]]:
        place: Place | None = start
        while place is not None and not self._closed:
            self._feed = feed = Feed(self._endpoint, shard, place, "the next messages")
            try:
                for deliveries in feed:
                    for delivery in deliveries:
                        yield (delivery[0].ledger, delivery[0].entry), self._shown(shard, delivery, bounds)
                place = None
            except CorruptFrame as error:
                if error.place is None:
                    raise
                yield error.place, [_notice(shard, error)]
                place = (error.place[0], error.place[1] + 1)
            finally:
                feed.close()

    def _shown(self, shard: str, delivery: Delivery, bounds: MessageLimits) -> list[Shown]:
        entry, metadata = delivery
        if metadata.marker_type is not None:
            return []
        where = {"shard": shard, "ledger": entry.ledger, "entry": entry.entry, "publish_time": _time(metadata)}
        if metadata.encrypted or metadata.num_chunks > 1:
            return [{**where, **_HIDDEN, "hidden": "encrypted" if metadata.encrypted else "part"}]
        try:
            rows = self._rows(shard, delivery, bounds.messages)
        except CorruptFrame as error:
            return [_notice(shard, error)]
        shown: list[Shown] = [{**where, **_message(row, bounds.value_bytes)} for row in rows[: bounds.messages]]
        if len(rows) > bounds.messages:
            more = (metadata.num_messages or 1) - rows[bounds.messages]["batch_index"]
            shown[-1:] = [
                {**where, **_HIDDEN, "batch_index": shown[-1]["batch_index"], "hidden": "more", "messages": more + 1}
            ]
        return shown

    def _rows(self, shard: str, delivery: Delivery, most: int) -> Sequence[dict[str, Any]]:
        """The first rows of an entry, one more than `most` if there are as many."""
        entry, metadata = delivery
        limits = Limits(min(self._endpoint.max_entry_bytes, ENTRY_BYTES), self._endpoint.max_entry_rows)
        decoder = Decoder(("value", "key", "batch_index"), parent_of(shard), partition_of(shard), limits)
        decoder.add(entry.ledger, entry.entry, None, metadata, entry.payload)
        rows: list[dict[str, Any]] = []
        for batch in decoder.flush():
            rows += batch.slice(0, most + 1 - len(rows)).to_pylist()
            if len(rows) > most:
                break
        return rows


_HIDDEN: Final = {"batch_index": -1, "key": None}


def _notice(shard: str, error: CorruptFrame) -> Shown:
    """The notice for an entry that cannot be read."""
    log.warning("An entry is left out: %s", error)
    ledger, entry = error.place or (-1, -1)
    where = {"shard": shard, "ledger": ledger, "entry": entry, "publish_time": None}
    return {**where, **_HIDDEN, "hidden": "unreadable", "cause": str(error)}


def _message(row: Mapping[str, Any], longest: int) -> Shown:
    """The value as `text` where it is UTF-8, else as `base64`; of a longer value only its size."""
    value = row["value"]
    shown = {"batch_index": row["batch_index"], "key": row["key"]}
    if value is None or len(value) > longest:
        return {**shown, "bytes": None if value is None else len(value)}
    try:
        return {**shown, "text": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {**shown, "base64": base64.b64encode(value).decode("ascii")}


def _time(metadata: EntryMetadata) -> str | None:
    moment = moment_of_ms(metadata.publish_ms)
    return moment.isoformat() if moment else None
