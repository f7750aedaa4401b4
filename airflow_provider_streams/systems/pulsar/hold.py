"""Placing, moving, dropping and listing pin subscriptions, without I/O: as questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin import changes, requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId, TopicStats
from airflow_provider_streams.systems.pulsar.administration import drop_subscription
from airflow_provider_streams.systems.pulsar.cuts import lookup_ms, milliseconds
from airflow_provider_streams.systems.pulsar.edges import start_of
from airflow_provider_streams.systems.pulsar.hold_subscription import (
    Mark,
    PinSubscription,
    anchor,
    is_held,
    subscription_name,
)
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout, at
from airflow_provider_streams.systems.pulsar.looks import side_by_side
from airflow_provider_streams.systems.pulsar.questions import Question, Topic, topics_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pin shall stand, for whom."""

    name: str
    reader: str
    cut: Cut
    since: datetime | None = None
    plan: str = ""

    def mark(self, shard: str, now: datetime) -> Mark:
        """What is written on its subscription of one shard."""
        return Mark(self.reader, self.cut[shard], now, self.since, self.plan)


def cut_at(source: PulsarSource, moment: datetime, slack: timedelta) -> Question[Cut]:
    """In each shard the place where a window that starts at `moment` begins to be read."""
    shards = _shards((yield from topics_of(source)))
    since_ms = lookup_ms(moment, -slack)
    ids: list[MessageId] = yield [requests.message_id_at(shard, since_ms) for shard in shards]
    layouts = {shard: Layout.of(one) for shard, one in (yield from _stats(shards)).items()}
    # proven like a plan's start: the lookup alone may lie behind it
    guesses = {shard: at(one.ledger, one.entry) for shard, one in zip(shards, ids, strict=True)}
    starts = yield from side_by_side(
        {
            shard: start_of(shard, layout, guesses[shard], lookup_ms(moment, timedelta(0)), milliseconds(slack))
            for shard, layout in layouts.items()
            if not layout.is_empty
        }
    )
    return Cut({shard: starts[shard].position if shard in starts else guesses[shard] for shard in shards})


def cut_at_head(source: PulsarSource) -> Question[Cut]:
    """In each shard the first entry still stored."""
    shards = _shards((yield from topics_of(source)))
    return Cut(dict.fromkeys(shards, EARLIEST))


def place(placement: Placement) -> Question[dict[str, Any]]:
    """A pin on every shard of the cut; one that holds the place already stays where it stands.

    Raises:
        StartTrimmed: a shard no longer stores what the pin shall hold.
    """
    subscription, now = subscription_name(placement.name), datetime.now(UTC)
    before = yield from _stats(placement.cut)
    todo = [shard for shard, position in placement.cut.items() if not _stands(before[shard], subscription, position)]
    bodies = {shard: _entry(anchor(before[shard], placement.cut[shard])) for shard in todo}
    created = yield [
        changes.create_subscription(shard, subscription, place, placement.mark(shard, now).to_properties())
        for shard, place in bodies.items()
    ]
    later = [shard for shard, made in zip(todo, created, strict=True) if made is None]
    yield from _put(placement, {shard: bodies[shard] for shard in later}, now)
    after = yield from _stats(placement.cut)
    for shard, position in placement.cut.items():
        # an entry that went between asking and pinning is not held, whatever the broker answered
        wanted = max(position, Layout.of(before[shard]).head)
        if position != EARLIEST and not is_held(after[shard], subscription, wanted):
            raise StartTrimmed(shard, wanted, Layout.of(after[shard]).head, "it was removed while the pin was placed")
    return {"pin": placement.name, "placed": todo, "cut": placement.cut.to_json()}


def move(placement: Placement) -> Question[dict[str, Any]]:
    """The pin on every shard stands at the cut, and nothing before it is held; it is never moved backwards."""
    subscription, now = subscription_name(placement.name), datetime.now(UTC)
    found = yield from _stats(placement.cut)
    anchors = {shard: anchor(found[shard], position) for shard, position in placement.cut.items()}
    ahead = {shard: _entry(place) for shard, place in anchors.items() if is_held(found[shard], subscription, place)}
    yield from _put(placement, ahead, now)
    return {"pin": placement.name, "moved": list(ahead), "cut": placement.cut.to_json()}


def drop(source: PulsarSource, name: str) -> Question[dict[str, Any]]:
    """No such pin on any topic of the source."""
    topics = yield from topics_of(source)
    dropped: list[str] = []
    for topic in topics:
        done = yield from drop_subscription(topic.name, subscription_name(name), force=False)
        dropped += done["dropped"]
    return {"pin": name, "dropped": dropped}


def pins_of(source: PulsarSource) -> Question[tuple[PinSubscription, ...]]:
    """Every pin on the shards of a source."""
    shards = _shards((yield from topics_of(source)))
    stats: list[TopicStats] = yield [requests.stats(shard) for shard in shards]
    found = (
        PinSubscription.of(shard, name, subscription)
        for shard, one in zip(shards, stats, strict=True)
        for name, subscription in one.subscriptions.items()
    )
    return tuple(pin for pin in found if pin is not None)


def _put(placement: Placement, where: Mapping[str, MessageId], now: datetime) -> Question[None]:
    """Moves subscriptions that exist. The mark is written last: it never promises what is not held yet."""
    subscription = subscription_name(placement.name)
    yield [changes.move_subscription(shard, subscription, place) for shard, place in where.items()]
    yield [
        changes.set_subscription_properties(shard, subscription, placement.mark(shard, now).to_properties())
        for shard in where
    ]


def _stands(stats: InternalStats, subscription: str, position: Position) -> bool:
    """Whether a pin needs no placing: it holds the place, or any place would do."""
    return is_held(stats, subscription, position) or (position == EARLIEST and subscription in stats.cursors)


def _entry(position: Position) -> MessageId:
    ledger, entry, _ = position.parts
    return MessageId(ledger, entry)


def _stats(cut: Iterable[str]) -> Question[dict[str, InternalStats]]:
    shards = list(cut)
    answers = yield [requests.internal_stats(shard) for shard in shards]
    return dict(zip(shards, answers, strict=True))


def _shards(topics: Sequence[Topic]) -> list[str]:
    return [shard for topic in topics for shard in topic.shards]
