"""Retention and a schedule: does the stream keep events until their window is read? Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.window.length_text import length_text

Risk = Literal["safe", "low", "loss", "unknown"]
"""`low`: less room than the margin; `loss`: no room, a window will be lost; `unknown`: the rules are not readable."""

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of unread data, and what the server does there. None: no limit of that kind."""

    bytes: int | None
    age: timedelta | None
    evicts: bool
    """Whether it drops unread data; otherwise it stops producers."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that remove events from a stream. None: no limit of that kind."""

    retention: timedelta | None = None
    """The age at which events without a hold are removed."""
    retention_bytes: int | None = None
    """The bytes of a shard at which they are removed."""
    is_held: bool = False
    """Whether a hold keeps all events, until `expiry` or an evicting quota."""
    expiry: timedelta | None = None
    """The age at which unread events count as read."""
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """How a stream holds its events. Of several shards, the one that loses events first."""

    rules: Rules | None
    """None: they are not readable."""
    bytes_per_second: float | None = 0.0
    """How fast it grows. None: not known."""
    horizon: datetime | None = None
    """Publish time of the oldest event still held; None: not known, or none."""
    unread_bytes: int = 0
    """The bytes that holds keep."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When windows are read.

    Args:
        window_length: the length of one window.
        max_delay: the longest time from a window's end until it is read, including retries and outages.
        margin: the least room that is `safe`.

    Raises:
        InvalidRequest: the length is not positive, or a time is negative.
    """

    window_length: timedelta
    max_delay: timedelta
    margin: timedelta

    @classmethod
    def of(cls, window_length: timedelta, max_delay: timedelta, margin: timedelta | None = None) -> Self:
        """The schedule, with one window's length as default margin."""
        return cls(window_length, max_delay, window_length if margin is None else margin)

    def __post_init__(self) -> None:
        if self.window_length <= _ZERO or self.max_delay < _ZERO or self.margin < _ZERO:
            raise InvalidRequest("window_length must be positive, max_delay and margin not negative")

    @property
    def needed(self) -> timedelta:
        """The greatest age of a window's first event when it is read."""
        return self.window_length + self.max_delay


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether windows are read before their events are removed."""

    risk: Risk
    needed: timedelta
    held: timedelta | None = None
    """For how long an event stays; None: without limit, or not known."""
    room: timedelta | None = None
    """How much longer events stay than they are needed; negative: so much is lost. None: as in `held`."""
    causes: tuple[str, ...] = ()
    """The rule that limits it, and what else needs attention."""

    @property
    def is_risk(self) -> bool:
        """Whether to act before events are lost."""
        return self.risk in ("low", "loss")

    def __str__(self) -> str:
        because = f" ({'; '.join(self.causes)})" if self.causes else ""
        if self.risk == "unknown":
            return f"how long events are held is not known{because}"
        if self.room is None:
            return f"events are held without limit, and needed for {length_text(self.needed)}{because}"
        held = "an unknown time" if self.held is None else length_text(self.held)
        needed, room = length_text(self.needed), length_text(self.room)
        return f"events are needed for {needed}, and held for {held}: room {room}{because}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, times in seconds."""
        return {
            "risk": self.risk,
            "needed_seconds": self.needed.total_seconds(),
            "held_seconds": None if self.held is None else self.held.total_seconds(),
            "room_seconds": None if self.room is None else self.room.total_seconds(),
            "causes": list(self.causes),
        }


def judge(holding: Holding, schedule: Schedule, now: datetime, *, waiting_since: datetime | None = None) -> Verdict:
    """Whether the windows of a schedule are read in time.

    `waiting_since` is the start of the oldest unread window; None: not known, so only the schedule counts.
    """
    if holding.rules is None:
        return Verdict("unknown", schedule.needed, causes=("this user may not read the stream's retention",))
    if holding.bytes_per_second is None and holding.rules.retention_bytes:
        kept = f"retention keeps {holding.rules.retention_bytes:,} bytes"
        cause = f"{kept}, and no recorded cut tells how fast the stream grows"
        return Verdict("unknown", schedule.needed, causes=(cause,))
    limit = _held(holding.rules, holding.bytes_per_second or 0.0)
    blocked = tuple(_producers_stop(holding, schedule))
    if limit is None:
        return Verdict("low" if blocked else "safe", schedule.needed, causes=blocked)
    held, cause = limit
    room = held - schedule.needed
    causes = [cause, *blocked]
    if waiting_since is not None and (left := waiting_since + held - now) < room:
        room = left
        causes.append(f"the window that starts at {waiting_since.isoformat()} is not read yet")
    risk: Risk = "loss" if room <= _ZERO else "low" if blocked or room < schedule.margin else "safe"
    return Verdict(risk, schedule.needed, held, room, tuple(causes))


def soonest(holdings: Iterable[Holding]) -> Holding:
    """The shard that loses events first. A shard whose time is not known comes before all."""
    return min(holdings, key=_seconds_held)


def _seconds_held(holding: Holding) -> float:
    rules = holding.rules
    if rules is None or (holding.bytes_per_second is None and rules.retention_bytes):
        return -1.0
    limit = _held(rules, holding.bytes_per_second or 0.0)
    return math.inf if limit is None else limit[0].total_seconds()


def _held(rules: Rules, bytes_per_second: float) -> tuple[timedelta, str] | None:
    """How long an event stays at least, and by which rule; None: without limit."""
    kept = min(_by_retention(rules, bytes_per_second), default=None)
    if kept is None or not rules.is_held:
        return kept
    held = min(_by_hold(rules, bytes_per_second), default=None)
    return None if held is None else max(kept, held)


def _by_retention(rules: Rules, bytes_per_second: float) -> Iterator[tuple[timedelta, str]]:
    if rules.retention is not None:
        yield rules.retention, f"retention keeps {length_text(rules.retention)}"
    if rules.retention_bytes is not None:
        yield from _filled(rules.retention_bytes, bytes_per_second, f"retention keeps {rules.retention_bytes:,} bytes")


def _by_hold(rules: Rules, bytes_per_second: float) -> Iterator[tuple[timedelta, str]]:
    if rules.expiry is not None:
        yield rules.expiry, f"unread events expire after {length_text(rules.expiry)}"
    for quota in rules.quotas:
        if quota.evicts and quota.age is not None:
            yield quota.age, f"the backlog quota drops unread events after {length_text(quota.age)}"
        if quota.evicts and quota.bytes is not None:
            cause = f"the backlog quota drops unread events over {quota.bytes:,} bytes"
            yield from _filled(quota.bytes, bytes_per_second, cause)


def _filled(limit: int, bytes_per_second: float, cause: str) -> Iterator[tuple[timedelta, str]]:
    """When a stream reaches a limit of bytes. It reaches 0 at once, and no limit if it does not grow."""
    if limit == 0:
        yield _ZERO, cause
    elif bytes_per_second > 0:
        seconds = min(limit / bytes_per_second, timedelta.max.total_seconds() / 2)
        yield timedelta(seconds=seconds), f"{cause}, at {bytes_per_second:,.0f} bytes/s"


def _producers_stop(holding: Holding, schedule: Schedule) -> Iterator[str]:
    """The quotas that will stop producers, because holds keep too much."""
    rules = holding.rules
    if rules is None or not rules.is_held:
        return
    for quota in rules.quotas:
        if quota.evicts or quota.bytes is None:
            continue
        free = quota.bytes - holding.unread_bytes
        if free <= 0 or free < (holding.bytes_per_second or 0.0) * schedule.needed.total_seconds():
            kept = f"{holding.unread_bytes:,} of {quota.bytes:,} bytes"
            yield f"holds keep {kept}, where the backlog quota stops producers"
