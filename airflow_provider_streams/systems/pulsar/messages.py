"""The next messages of a subscription: bounded, and acknowledged by an act of its own.

The subscription has no consumer: the entries after its mark are read by one that leaves nothing behind, and the mark is
moved later, through the admin API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.model.plan import Span
from airflow_provider_streams.systems.pulsar.admin import changes, requests
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, InternalStats, MessageId
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout, after
from airflow_provider_streams.systems.pulsar.questions import Question, Topic

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
    from airflow_provider_streams.systems.pulsar.next_messages import MessageLimits, NextMessages

Unread = Mapping[str, tuple[Span, ...]]
"""The stored entries after the mark, by shard; shards without any are left out."""


@dataclass(frozen=True, slots=True)
class Messages:
    """What came next on the shards of a source."""

    messages: tuple[Mapping[str, Any], ...]
    """Plain JSON values, each with its `shard`, `ledger`, `entry`, `batch_index` and `publish_time`."""
    ends: Mapping[str, EntryId]
    """Each shard's last entry among them: acknowledging up to there acknowledges them all."""
    left: Unread
    """What consumers were not sent, though it is stored: markers, messages of aborted or open transactions."""


def unread(topics: Sequence[Topic], subscription: str) -> Question[Unread]:
    """What a subscription has not acknowledged.

    Raises:
        SourceNotFound: a shard has no such subscription.
    """
    shards = [shard for topic in topics for shard in topic.shards]
    stats: list[InternalStats] = yield [requests.internal_stats(shard) for shard in shards]
    found = {shard: _unread(one, shard, subscription) for shard, one in zip(shards, stats, strict=True)}
    return {shard: spans for shard, spans in found.items() if spans}


def read_next(reader: NextMessages, stored: Unread, bounds: MessageLimits) -> Messages:
    """The next messages of each shard, in order; a full shard does not starve the others. Blocks.

    Raises:
        AccessError, SystemUnavailable: a broker refuses or does not answer.
    """
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
            silent[shard] = tuple(_behind(spans, part.end))
    return Messages(tuple(shown), ends, {shard: spans for shard, spans in silent.items() if spans})


def is_never_sent(shard: str, place: EntryId) -> Question[bool]:
    """Whether an entry is one that no consumer is ever sent, and that may be acknowledged unread."""
    seen: list[PeekedEntry | None] = yield [requests.peek(shard, place.ledger, place.entry)]
    return seen[0] is not None and (seen[0].marker_type is not None or seen[0].aborted)


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


def _unread(stats: InternalStats, shard: str, subscription: str) -> tuple[Span, ...]:
    if subscription not in stats.cursors:
        raise SourceNotFound(f"subscription {subscription} of {shard}")
    mark = stats.cursors[subscription]
    layout = Layout.of(stats)
    return layout.spans(EARLIEST if mark is None else after(mark), layout.end)


def _behind(spans: Sequence[Span], end: tuple[int, int] | None) -> Iterator[Span]:
    for span in spans:
        first = span.first if end is None or span.run > end[0] else max(span.first, end[1] + 1)
        if (end is None or span.run >= end[0]) and first < span.end:
            yield Span(span.run, first, span.end)
