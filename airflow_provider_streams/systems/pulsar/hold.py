"""Placing, moving, releasing and listing holds, without I/O: as questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, cast

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.hold import Hold, HoldRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin import changes, requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId, TopicStats
from airflow_provider_streams.systems.pulsar.administration import drop_subscription
from airflow_provider_streams.systems.pulsar.cuts import lookup_ms, milliseconds
from airflow_provider_streams.systems.pulsar.edges import start_of
from airflow_provider_streams.systems.pulsar.hold_subscription import (
    HoldSubscription,
    Mark,
    anchor,
    is_held,
    subscription_name,
)
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout, at
from airflow_provider_streams.systems.pulsar.looks import side_by_side
from airflow_provider_streams.systems.pulsar.questions import Question, Topic, topics_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource


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


def place(request: HoldRequest) -> Question[dict[str, Any]]:
    """A hold on every shard of the cut; one that holds the place already stays where it stands.

    Raises:
        InvalidRequest: the hold of that name is somebody else's.
        StartTrimmed: a shard no longer stores what the hold shall keep.
    """
    yield from _check_whose(cast("PulsarSource", request.source), request.name, request.reader)
    subscription, now, cut = subscription_name(request.name), datetime.now(UTC), (yield from _cut(request))
    before = yield from _stats(cut)
    todo = [shard for shard, position in cut.items() if not _stands(before[shard], subscription, position)]
    bodies = {shard: _entry(anchor(before[shard], cut[shard])) for shard in todo}
    created = yield [
        changes.create_subscription(shard, subscription, place, _mark(request, cut[shard], now).to_properties())
        for shard, place in bodies.items()
    ]
    later = [shard for shard, made in zip(todo, created, strict=True) if made is None]
    yield from _put(request, cut, {shard: bodies[shard] for shard in later}, now)
    after = yield from _stats(cut)
    for shard, position in cut.items():
        # an entry that went between asking and placing is not held, whatever the broker answered
        wanted = max(position, Layout.of(before[shard]).head)
        if position != EARLIEST and not is_held(after[shard], subscription, wanted):
            raise StartTrimmed(shard, wanted, Layout.of(after[shard]).head, "it was removed while the hold was placed")
    return {"hold": request.name, "placed": todo, "cut": cut.to_json()}


def move(request: HoldRequest) -> Question[dict[str, Any]]:
    """The hold on every shard stands at the cut, and nothing before it is kept; it is never moved backwards.

    Raises:
        InvalidRequest: the hold of that name is somebody else's.
        SourceNotFound: no shard has this hold.
    """
    yield from _check_whose(cast("PulsarSource", request.source), request.name, request.reader)
    subscription, now, cut = subscription_name(request.name), datetime.now(UTC), (yield from _cut(request))
    found = yield from _stats(cut)
    if not any(subscription in one.cursors for one in found.values()):
        raise SourceNotFound(f"hold {request.name} on {request.source}")
    anchors = {shard: anchor(found[shard], position) for shard, position in cut.items()}
    ahead = {shard: _entry(place) for shard, place in anchors.items() if is_held(found[shard], subscription, place)}
    yield from _put(request, cut, ahead, now)
    return {"hold": request.name, "moved": list(ahead), "cut": cut.to_json()}


def release(source: PulsarSource, name: str, reader: str) -> Question[dict[str, Any]]:
    """No such hold on any topic of the source.

    Raises:
        InvalidRequest: the hold of that name is somebody else's.
    """
    yield from _check_whose(source, name, reader)
    topics = yield from topics_of(source)
    released: list[str] = []
    for held_on in [one for topic in topics for one in (topic.shards if topic.chosen else (topic.name,))]:
        done = yield from drop_subscription(held_on, subscription_name(name), force=False)
        released += done["dropped"]
    return {"hold": name, "released": released}


def holds(source: PulsarSource) -> Question[tuple[Hold, ...]]:
    """Every hold on the shards of a source, by name and reader."""
    return held((yield from subscriptions(source)))


def held(found: Iterable[HoldSubscription]) -> tuple[Hold, ...]:
    """The holds that stand on shards, by name and reader. Pure."""
    ordered = sorted(found, key=lambda one: (one.name, one.mark.reader, one.shard))
    groups = groupby(ordered, key=lambda one: (one.name, one.mark.reader))
    return tuple(_hold(name, reader, tuple(shards)) for (name, reader), shards in groups)


def subscriptions(source: PulsarSource) -> Question[tuple[HoldSubscription, ...]]:
    """Every hold on every shard of a source."""
    shards = _shards((yield from topics_of(source)))
    stats: list[TopicStats] = yield [requests.stats(shard) for shard in shards]
    found = (
        HoldSubscription.of(shard, name, subscription)
        for shard, one in zip(shards, stats, strict=True)
        for name, subscription in one.subscriptions.items()
    )
    return tuple(one for one in found if one is not None)


def _hold(name: str, reader: str, shards: Sequence[HoldSubscription]) -> Hold:
    """It keeps what all its shards keep, from the earliest place."""
    known = [one.bytes for one in shards if one.bytes is not None]
    return Hold(
        name,
        reader,
        min((one.mark.since for one in shards if one.mark.since), default=None),
        min((one.oldest for one in shards if one.oldest), default=None),
        sum(known) if len(known) == len(shards) else None,
        min(one.mark.placed for one in shards),
        {one.shard: str(one.mark.position) for one in shards},
    )


def _cut(request: HoldRequest) -> Question[Cut]:
    source = cast("PulsarSource", request.source)
    if request.cut is not None:
        return request.cut
    if request.since is None:
        return (yield from cut_at_head(source))
    return (yield from cut_at(source, request.since, request.slack))


def _mark(request: HoldRequest, position: Position, now: datetime) -> Mark:
    """What is written on the subscription of one shard."""
    return Mark(request.reader, position, now, request.since, request.plan, request.source.key)


def _check_whose(source: PulsarSource, name: str, reader: str) -> Question[None]:
    """Refuse a hold that keeps data for somebody else.

    Raises:
        InvalidRequest: it serves another reader, or the same one's windows of another source.
    """
    for one in (yield from subscriptions(source)):
        if one.name == name and (one.mark.reader, one.mark.source) != (reader, source.key):
            raise InvalidRequest(
                f"hold {name} on {one.shard} is that of reader {one.mark.reader} of {one.mark.source}, not of {reader} "
                f"of {source.key}: give this one a name of its own"
            )


def _put(request: HoldRequest, cut: Cut, where: Mapping[str, MessageId], now: datetime) -> Question[None]:
    """Moves subscriptions that exist. The mark is written last: it never promises what is not held yet."""
    subscription = subscription_name(request.name)
    yield [changes.move_subscription(shard, subscription, place) for shard, place in where.items()]
    yield [
        changes.set_subscription_properties(shard, subscription, _mark(request, cut[shard], now).to_properties())
        for shard in where
    ]


def _stands(stats: InternalStats, subscription: str, position: Position) -> bool:
    """Whether a hold needs no placing: it holds the place, or any place would do."""
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
