"""Holds on shards: durable subscriptions nobody reads from, which keep data until it has been read. Pure.

A hold stands one entry before the place it holds, at a ledger's first entry in the ledger before: were all of that
read, the broker would remove it, and with it the proof that nothing is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, SubscriptionStats
from airflow_provider_streams.systems.pulsar.layout import Layout, after, at

PREFIX = "streams-hold-"
"""How a hold's subscription name begins."""

_READER, _SOURCE, _POSITION, _PLACED, _SINCE, _PLAN = (
    "streams.hold.reader",
    "streams.hold.source",
    "streams.hold.position",
    "streams.hold.placed",
    "streams.hold.since",
    "streams.hold.plan",
)


def subscription_name(name: str) -> str:
    """The subscription of the hold of this name.

    Raises:
        InvalidRequest: an empty name.
    """
    if not name.strip():
        raise InvalidRequest("a hold needs a name")
    return PREFIX + name


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written on a hold's subscription: whom it serves, and from where on it holds the shard."""

    reader: str
    position: Position
    placed: datetime
    """When the hold was placed here."""
    since: datetime | None = None
    """Start of the first window it holds; None: not a time."""
    plan: str = ""
    """Fingerprint of the plan at whose end it stands; empty: none yet."""
    source: str = ""
    """Key of the source whose windows it is for."""

    def to_properties(self) -> dict[str, str]:
        """A subscription's properties."""
        return {
            _READER: self.reader,
            _SOURCE: self.source,
            _POSITION: str(self.position),
            _PLACED: self.placed.astimezone(UTC).isoformat(),
            _SINCE: self.since.astimezone(UTC).isoformat() if self.since else "",
            _PLAN: self.plan,
        }

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """The mark in a subscription's properties; None: it is not one of our holds."""
        if _READER not in properties or _POSITION not in properties or _PLACED not in properties:
            return None
        since = properties.get(_SINCE)
        return cls(
            properties[_READER],
            Position.parse(properties[_POSITION]),
            datetime.fromisoformat(properties[_PLACED]),
            datetime.fromisoformat(since) if since else None,
            properties.get(_PLAN, ""),
            properties.get(_SOURCE, ""),
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


def anchor(stats: InternalStats, position: Position) -> Position:
    """The first entry that a hold leaves unread to hold everything from `position` on: the one before it, if stored."""
    ledger, entry, _ = Layout.of(stats).before(position).parts
    return at(max(ledger, 0), max(entry, 0))


def is_held(stats: InternalStats, subscription: str, position: Position) -> bool:
    """Whether that subscription keeps everything from a position on: it has not read past it."""
    mark = stats.cursors.get(subscription)
    return mark is not None and after(mark) <= position
