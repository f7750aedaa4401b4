"""Holds: durable subscriptions without a consumer, which keep data until a reader has read it.

A hold stands one entry before the place it holds. At a ledger's first entry, that is the last entry of the ledger
before. If a hold acknowledged all of a ledger, the broker would remove it, and the proof of completeness with it.
Questions without I/O place, move, release and list holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Self, cast

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.hold import Hold, HoldRequest
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin import changes, requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats, SubscriptionStats
from airflow_provider_streams.systems.pulsar.client.queries import Question, by_shard, shards_of, topics_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout, after, at
from airflow_provider_streams.systems.pulsar.operations.administration import drop_subscription
from airflow_provider_streams.systems.pulsar.planning.boundary_search import start_of
from airflow_provider_streams.systems.pulsar.planning.cuts import lookup_ms, milliseconds
from airflow_provider_streams.systems.pulsar.planning.entry_probe import side_by_side
from airflow_provider_streams.systems.pulsar.source import PulsarSource

PREFIX = "streams-hold-"
"""How a hold's subscription name begins."""

_PROPERTY = "streams.hold."
"""How the name of a hold's property begins."""


def subscription_name(name: str) -> str:
    """The subscription of the hold of this name; raises `InvalidRequest` for an empty name."""
    if not name.strip():
        raise InvalidRequest("a hold needs a name")
    return PREFIX + name


@dataclass(frozen=True, slots=True)
class Mark:
    """What a hold's subscription says of itself, in its properties."""

    reader: str
    position: Position
    """The hold keeps the shard from here on."""
    placed: datetime
    """When the hold was placed here."""
    since: datetime | None = None
    """Start of the first window it holds; None: not a time."""
    plan: str = ""
    """Fingerprint of the plan at whose end it stands; empty: none yet."""
    source: str = ""
    """Key of the source whose windows it serves."""

    def to_properties(self) -> dict[str, str]:
        """A subscription's properties."""
        texts = {
            "reader": self.reader,
            "source": self.source,
            "position": str(self.position),
            "placed": self.placed.astimezone(UTC).isoformat(),
            "since": self.since.astimezone(UTC).isoformat() if self.since else "",
            "plan": self.plan,
        }
        return {f"{_PROPERTY}{name}": text for name, text in texts.items()}

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """The mark in a subscription's properties; None: it is not one of our holds."""
        ours = {name: text for name, text in properties.items() if name.startswith(_PROPERTY)}
        texts = {name.removeprefix(_PROPERTY): text for name, text in ours.items()}
        if not texts.keys() >= {"reader", "position", "placed"}:
            return None
        since = texts.get("since")
        return cls(
            texts["reader"],
            Position.parse(texts["position"]),
            datetime.fromisoformat(texts["placed"]),
            datetime.fromisoformat(since) if since else None,
            texts.get("plan", ""),
            texts.get("source", ""),
        )


@dataclass(frozen=True, slots=True)
class HoldSubscription:
    """A hold on one shard, as the broker has it."""

    shard: str
    name: str
    mark: Mark
    bytes: int | None = None
    """Stored bytes it keeps; None: not known."""
    oldest: datetime | None = None
    """Publish time of the oldest entry it keeps."""

    @classmethod
    def of(cls, shard: str, subscription: str, stats: SubscriptionStats) -> Self | None:
        """From a shard's statistics; None: that subscription is no hold."""
        mark = Mark.of(stats.properties) if subscription.startswith(PREFIX) else None
        if mark is None:
            return None
        return cls(shard, subscription.removeprefix(PREFIX), mark, stats.bytes, stats.oldest)


def anchor(stats: InternalStats, position: Position) -> EntryId:
    """The first entry that a hold at `position` leaves unread: the entry before it, if that is stored."""
    ledger, entry, _ = Layout.of(stats).before(position).parts
    return EntryId(max(ledger, 0), max(entry, 0))


def is_held(stats: InternalStats, subscription: str, position: Position) -> bool:
    """Whether a subscription keeps everything from a position on: it has not read past it."""
    mark = stats.cursors.get(subscription)
    return mark is not None and after(mark) <= position


def cut_at(source: PulsarSource, moment: datetime, slack: timedelta) -> Question[Cut]:
    """In each shard, the place where reading of a window that starts at `moment` begins."""
    shards = yield from _shards(source)
    since_ms = lookup_ms(moment, -slack)
    found = yield from by_shard(shards, lambda shard: requests.message_id_at(shard, since_ms))
    guesses = {shard: at(*entry) for shard, entry in found.items()}
    stats = yield from by_shard(shards, requests.internal_stats)
    layouts = {shard: Layout.of(one) for shard, one in stats.items()}
    # proven like a plan's start: the lookup alone may give a later place
    starts = yield from side_by_side(
        {
            shard: start_of(shard, layout, guesses[shard], lookup_ms(moment), milliseconds(slack))
            for shard, layout in layouts.items()
            if not layout.is_empty
        }
    )
    return Cut({shard: starts[shard].position if shard in starts else guesses[shard] for shard in shards})


def cut_at_head(source: PulsarSource) -> Question[Cut]:
    """In each shard, the first entry still stored."""
    return Cut(dict.fromkeys((yield from _shards(source)), EARLIEST))


def place(request: HoldRequest) -> Question[dict[str, Any]]:
    """Put a hold on every shard of the cut; one that holds the place already stays where it is.

    Raises:
        InvalidRequest: another reader or source has the hold of that name.
        StartTrimmed: a shard no longer stores what the hold must keep.
    """
    subscription, cut, marks = yield from _prepare(request)
    before = yield from by_shard(cut, requests.internal_stats)
    todo = [shard for shard, position in cut.items() if not _stands(before[shard], subscription, position)]
    places = {shard: anchor(before[shard], cut[shard]) for shard in todo}
    created = yield from by_shard(
        todo, lambda shard: changes.create_subscription(shard, subscription, places[shard], marks[shard])
    )
    yield from _put(subscription, marks, {shard: places[shard] for shard, made in created.items() if made is None})
    held_now = yield from by_shard(cut, requests.internal_stats)
    for shard, position in cut.items():
        # an entry that went between asking and placing is not held, whatever the broker answered
        wanted = max(position, Layout.of(before[shard]).head)
        if position != EARLIEST and not is_held(held_now[shard], subscription, wanted):
            head = Layout.of(held_now[shard]).head
            raise StartTrimmed(shard, wanted, head, "it was removed while the hold was placed")
    return {"hold": request.name, "placed": todo, "cut": cut.to_json()}


def move(request: HoldRequest) -> Question[dict[str, Any]]:
    """Move the hold on every shard to the cut, so that it keeps nothing before; a hold never moves backwards.

    Raises:
        InvalidRequest: another reader or source has the hold of that name.
        SourceNotFound: no shard has this hold.
    """
    subscription, cut, marks = yield from _prepare(request)
    found = yield from by_shard(cut, requests.internal_stats)
    if not any(subscription in one.cursors for one in found.values()):
        raise SourceNotFound(f"hold {request.name} on {request.source}")
    anchors = {shard: anchor(found[shard], position) for shard, position in cut.items()}
    ahead = {shard: entry for shard, entry in anchors.items() if is_held(found[shard], subscription, at(*entry))}
    yield from _put(subscription, marks, ahead)
    return {"hold": request.name, "moved": list(ahead), "cut": cut.to_json()}


def release(source: PulsarSource, name: str, reader: str) -> Question[dict[str, Any]]:
    """Remove a hold from all topics of the source; raises `InvalidRequest` as `place`."""
    yield from _check_owner(source, name, reader)
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

    def key(one: HoldSubscription) -> tuple[str, str]:
        return one.name, one.mark.reader

    ordered = sorted(found, key=lambda one: (*key(one), one.shard))
    return tuple(_hold(name, reader, tuple(shards)) for (name, reader), shards in groupby(ordered, key))


def subscriptions(source: PulsarSource) -> Question[tuple[HoldSubscription, ...]]:
    """Every hold on every shard of a source."""
    stats = yield from by_shard((yield from _shards(source)), requests.stats)
    found = (
        HoldSubscription.of(shard, name, subscription)
        for shard, one in stats.items()
        for name, subscription in one.subscriptions.items()
    )
    return tuple(one for one in found if one is not None)


def _hold(name: str, reader: str, shards: Sequence[HoldSubscription]) -> Hold:
    """A hold keeps what it keeps on all its shards, from the earliest place."""
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


def _prepare(request: HoldRequest) -> Question[tuple[str, Cut, dict[str, Mapping[str, str]]]]:
    """The subscription of a hold, its cut, and the properties of the subscription on each shard."""
    source = cast("PulsarSource", request.source)
    yield from _check_owner(source, request.name, request.reader)
    subscription, now = subscription_name(request.name), datetime.now(UTC)
    if request.cut is not None:
        cut = request.cut
    elif request.since is None:
        cut = yield from cut_at_head(source)
    else:
        cut = yield from cut_at(source, request.since, request.slack)
    marks = {
        shard: Mark(request.reader, position, now, request.since, request.plan, source.key)
        for shard, position in cut.items()
    }
    return subscription, cut, {shard: mark.to_properties() for shard, mark in marks.items()}


def _check_owner(source: PulsarSource, name: str, reader: str) -> Question[None]:
    """Raise `InvalidRequest` for a hold that serves another reader, or the same reader's windows of another source."""
    for one in (yield from subscriptions(source)):
        if one.name == name and (one.mark.reader, one.mark.source) != (reader, source.key):
            raise InvalidRequest(
                f"hold {name} on {one.shard} belongs to reader {one.mark.reader} of {one.mark.source}, not to {reader} "
                f"of {source.key}: give this one a name of its own"
            )


def _put(subscription: str, marks: Mapping[str, Mapping[str, str]], places: Mapping[str, EntryId]) -> Question[None]:
    """Move subscriptions that exist. The mark follows the move: it never promises what is not held yet."""
    yield from by_shard(places, lambda shard: changes.move_subscription(shard, subscription, places[shard]))
    yield from by_shard(places, lambda shard: changes.set_subscription_properties(shard, subscription, marks[shard]))


def _stands(stats: InternalStats, subscription: str, position: Position) -> bool:
    """Whether a hold needs no placing: it holds the place, or any place is sufficient."""
    return is_held(stats, subscription, position) or (position == EARLIEST and subscription in stats.cursors)


def _shards(source: PulsarSource) -> Question[list[str]]:
    return list(shards_of((yield from topics_of(source))))
