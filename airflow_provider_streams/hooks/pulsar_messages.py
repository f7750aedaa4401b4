"""The next messages of a subscription through the admin API: bounded, and acknowledged by an act of its own.

No consumer connects: the entries after the subscription's mark are read one by one, and the mark is moved later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.model.plan import Span
from airflow_provider_streams.systems.pulsar.admin import changes, requests
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, InternalStats, MessageId
from airflow_provider_streams.systems.pulsar.admin.messages import ReadEntry
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout, after
from airflow_provider_streams.systems.pulsar.questions import Question, Topic


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one event carries."""

    entries: int = 100
    """Stored entries, of all shards together; a batch is one entry, and comes as a whole."""
    value_bytes: int = 4096
    """Longer values are left out; their place and size are told."""


@dataclass(frozen=True, slots=True)
class Messages:
    """What came next on the shards of a source."""

    messages: tuple[dict[str, Any], ...]
    """Plain JSON values, each with its `shard`, `ledger`, `entry`, `batch_index` and `publish_time`."""
    ends: Mapping[str, EntryId]
    """Each shard's last entry among them: acknowledging up to there acknowledges them all."""


def next_messages(topics: Sequence[Topic], subscription: str, bounds: Bounds) -> Question[Messages | None]:
    """What comes after the subscription's mark; None: nothing. Entries without messages (markers) are passed over.

    Raises:
        SourceNotFound: a shard has no such subscription.
    """
    shards = [shard for topic in topics for shard in topic.shards]
    stats: list[InternalStats] = yield [requests.internal_stats(shard) for shard in shards]
    places = _fair(
        {shard: unread(one, shard, subscription) for shard, one in zip(shards, stats, strict=True)}, bounds.entries
    )
    entries: list[ReadEntry | None] = yield [requests.read_entry(shard, one.ledger, one.entry) for shard, one in places]
    found: list[dict[str, Any]] = []
    ends: dict[str, EntryId] = {}
    held: set[str] = set()
    for (shard, place), entry in zip(places, entries, strict=True):
        if entry is not None and entry.peeked.uncommitted:
            held.add(shard)
        if shard in held:
            continue  # an open transaction holds back everything behind it
        ends[shard] = place
        found += _shown(shard, place, entry, bounds.value_bytes)
    return Messages(tuple(found), ends) if ends else None


def acknowledge(ends: Mapping[str, EntryId], subscription: str) -> Question[None]:
    """Everything up to these entries is read; doing it twice, or after others went further, changes nothing."""
    yield [
        changes.acknowledge_up_to(shard, subscription, MessageId(end.ledger, end.entry)) for shard, end in ends.items()
    ]


def is_acknowledged(ends: Mapping[str, EntryId], subscription: str) -> Question[bool]:
    """Whether the marks have come up to these entries: a broker moves them a little after it was told to."""
    stats: list[InternalStats] = yield [requests.internal_stats(shard) for shard in ends]
    marks = [one.cursors.get(subscription) for one in stats]
    return all(mark is not None and after(mark) >= after(end) for mark, end in zip(marks, ends.values(), strict=True))


def unread(stats: InternalStats, shard: str, subscription: str) -> tuple[Span, ...]:
    """The stored entries after a subscription's mark.

    Raises:
        SourceNotFound: there is no such subscription.
    """
    if subscription not in stats.cursors:
        raise SourceNotFound(f"subscription {subscription} of {shard}")
    mark = stats.cursors[subscription]
    layout = Layout.of(stats)
    return layout.spans(EARLIEST if mark is None else after(mark), layout.end)


def _fair(spans: Mapping[str, Sequence[Span]], most: int) -> list[tuple[str, EntryId]]:
    """The first entries of each shard, in order, at most so many in all: a full shard does not starve the others."""
    share = max(1, most // max(1, sum(bool(parts) for parts in spans.values())))
    chosen: list[tuple[str, EntryId]] = []
    for shard, parts in spans.items():
        ids = (EntryId(span.run, number) for span in parts for number in range(span.first, span.end))
        chosen += [(shard, one) for one, _ in zip(ids, range(share), strict=False)]
    return chosen[:most]


def _shown(shard: str, place: EntryId, entry: ReadEntry | None, longest: int) -> list[dict[str, Any]]:
    if entry is None or entry.peeked.marker_type is not None or entry.peeked.aborted:
        return []
    published = entry.peeked.publish_time
    where = {
        "shard": shard,
        "ledger": place.ledger,
        "entry": place.entry,
        "publish_time": published.isoformat() if published else None,
    }
    if not entry.messages:
        return [{**where, "batch_index": -1, "key": None, "hidden": "encrypted" if entry.peeked.encrypted else "part"}]
    return [{**where, **message.to_json(longest)} for message in entry.messages]
