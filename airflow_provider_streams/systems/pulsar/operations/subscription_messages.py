"""The next messages of a subscription, in bounded number; a separate call acknowledges them.

The subscription has no consumer. A temporary consumer reads the entries after its mark, and the admin API moves the
mark later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.model.plan.plan import Span
from airflow_provider_streams.systems.pulsar.client.admin import changes, requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, by_shard, shards_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout, after

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pulsar.operations.peeked_messages import MessageLimits, NextMessages

Unread = Mapping[str, tuple[Span, ...]]
"""The stored entries after the mark, by shard, without the shards that have none."""


@dataclass(frozen=True, slots=True)
class Messages:
    """What came next on the shards of a source."""

    messages: tuple[Mapping[str, Any], ...]
    """Plain JSON values, each with its `shard`, `ledger`, `entry`, `batch_index` and `publish_time`."""
    ends: Mapping[str, EntryId]
    """Each shard's last entry among them: an acknowledgement up to there covers them all."""
    left: Unread
    """Stored entries that consumers were not sent: markers, and messages of aborted or open transactions."""


def unread(topics: Sequence[Topic], subscription: str) -> Question[Unread]:
    """What a subscription has not acknowledged; raises `SourceNotFound` if a shard has no such subscription."""
    stats = yield from by_shard(shards_of(topics), requests.internal_stats)
    found = {shard: _unread(one, shard, subscription) for shard, one in stats.items()}
    return {shard: spans for shard, spans in found.items() if spans}


def read_next(reader: NextMessages, stored: Unread, bounds: MessageLimits) -> Messages:
    """The next messages of each shard, in order, and of each shard some. Blocks, and raises as `Feed`."""
    shown: list[Mapping[str, Any]] = []
    ends: dict[str, EntryId] = {}
    silent: dict[str, tuple[Span, ...]] = {}
    chosen = dict(islice(stored.items(), bounds.entries))
    parts = max(1, len(chosen))
    share = replace(bounds, entries=bounds.entries // parts, messages=max(1, bounds.messages // parts))
    for shard, spans in chosen.items():
        part = reader.read(shard, (spans[0].run, spans[0].first), share)
        shown += part.messages
        if part.end:
            ends[shard] = EntryId(*part.end)
        if part.is_all:
            silent[shard] = tuple(_after(spans, part.end))
    return Messages(tuple(shown), ends, {shard: spans for shard, spans in silent.items() if spans})


def is_never_sent(shard: str, place: EntryId) -> Question[bool]:
    """Whether no consumer is ever sent this entry, so that it may be acknowledged unread."""
    (entry,) = yield [requests.peek(shard, *place)]
    return entry is not None and (entry.marker_type is not None or entry.aborted)


def acknowledge(ends: Mapping[str, EntryId], subscription: str) -> Question[None]:
    """Acknowledge everything up to these entries. A repetition, or a mark that is further already, changes nothing."""
    yield from by_shard(ends, lambda shard: changes.acknowledge_up_to(shard, subscription, ends[shard]))


def is_acknowledged(ends: Mapping[str, EntryId], subscription: str) -> Question[bool]:
    """Whether the marks have reached these entries: a broker moves them a little later than asked."""
    stats = yield from by_shard(ends, requests.internal_stats)
    marks = {shard: one.cursors.get(subscription) for shard, one in stats.items()}
    return all((mark := marks[shard]) is not None and mark >= end for shard, end in ends.items())


def _unread(stats: InternalStats, shard: str, subscription: str) -> tuple[Span, ...]:
    if subscription not in stats.cursors:
        raise SourceNotFound(f"subscription {subscription} of {shard}")
    mark = stats.cursors[subscription]
    layout = Layout.of(stats)
    return layout.spans(EARLIEST if mark is None else after(mark), layout.end)


def _after(spans: Sequence[Span], end: tuple[int, int] | None) -> Iterator[Span]:
    for span in spans:
        first = span.first if end is None or span.run > end[0] else max(span.first, end[1] + 1)
        if (end is None or span.run >= end[0]) and first < span.end:
            yield Span(span.run, first, span.end)
