"""Retention against a schedule: does the stream keep events long enough for their window to be read? Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from airflow_provider_streams.errors import InvalidRequest

Risk = Literal["safe", "low", "loss", "unknown"]
"""`low`: less room than the margin; `loss`: none, a window in time is lost; `unknown`: we may not know the rules."""

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Quota:
    """The limit of unread data, and what the server does there. None: no limit of that kind."""

    bytes: int | None
    age: timedelta | None
    evicts: bool
    """It drops unread data; otherwise it stops producers."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What removes events from a stream. None: no limit of that kind."""

    retention: timedelta | None = None
    """Events nobody waits for go at this age."""
    retention_bytes: int | None = None
    """They go as soon as a shard stores so much."""
    is_held: bool = False
    """A hold waits for all events: they stay, until `expiry` or an evicting quota."""
    expiry: timedelta | None = None
    """Unread events count as read at this age."""
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """What is known about how a stream holds its events. Of several shards, the one that loses events first."""

    rules: Rules | None
    """None: we may not know them."""
    bytes_per_second: float | None = 0.0
    """How fast it grows. None: not known."""
    horizon: datetime | None = None
    """Publish time of the oldest event still held; None: not known, or none."""
    unread_bytes: int = 0
    """What holds keep."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When windows are read.

    Args:
        window_length: of one window.
        max_delay: the longest time from a window's end until it has been read, retries and outages included.
        margin: less room than this is `low`.

    Raises:
        InvalidRequest: a length that is not positive, or a negative time.
    """

    window_length: timedelta
    max_delay: timedelta
    margin: timedelta

    @classmethod
    def of(cls, window_length: timedelta, max_delay: timedelta, margin: timedelta | None = None) -> Self:
        """With one window's length as margin, unless another is given."""
        return cls(window_length, max_delay, window_length if margin is None else margin)

    def __post_init__(self) -> None:
        if self.window_length <= _ZERO or self.max_delay < _ZERO or self.margin < _ZERO:
            raise InvalidRequest("window_length must be positive, max_delay and margin not negative")

    @property
    def needed(self) -> timedelta:
        """The age of a window's first event when it is read at the latest."""
        return self.window_length + self.max_delay


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether windows are read before their events may go."""

    risk: Risk
    needed: timedelta
    held: timedelta | None = None
    """For how long an event stays; None: without limit, or not known."""
    room: timedelta | None = None
    """How much longer events stay than they are needed; negative: so much is lost. None: as for `held`."""
    causes: tuple[str, ...] = ()
    """What limits it, and what else needs attention."""

    @property
    def is_risk(self) -> bool:
        """Someone should act, before events are gone."""
        return self.risk in ("low", "loss")

    def __str__(self) -> str:
        because = f" ({'; '.join(self.causes)})" if self.causes else ""
        if self.risk == "unknown":
            return f"how long events are held is not known{because}"
        if self.room is None:
            return f"events are held without limit, and needed for {self.needed}{because}"
        return f"events are needed for {self.needed}, and held for {self.held}: room {_signed(self.room)}{because}"

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
    """What becomes of windows that are read by a schedule.

    Args:
        holding: how the stream holds its events.
        schedule: when windows are read.
        now: the time.
        waiting_since: start of the oldest window that is not read yet; None: not known, so only the schedule counts.
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
    """Of several shards, the one that loses events first; one of which that is not known comes before all."""
    return min(holdings, key=_seconds_held)


def _seconds_held(holding: Holding) -> float:
    rules = holding.rules
    if rules is None or (holding.bytes_per_second is None and rules.retention_bytes):
        return -1.0
    limit = _held(rules, holding.bytes_per_second or 0.0)
    return math.inf if limit is None else limit[0].total_seconds()


def _held(rules: Rules, bytes_per_second: float) -> tuple[timedelta, str] | None:
    """For how long an event stays at least, and by which rule; None: without limit."""
    kept = min(_by_retention(rules, bytes_per_second), default=None)
    if kept is None or not rules.is_held:
        return kept
    held = min(_by_hold(rules, bytes_per_second), default=None)
    return None if held is None else max(kept, held)


def _by_retention(rules: Rules, bytes_per_second: float) -> Iterator[tuple[timedelta, str]]:
    if rules.retention is not None:
        yield rules.retention, f"retention keeps {rules.retention}"
    if rules.retention_bytes is not None:
        yield from _filled(rules.retention_bytes, bytes_per_second, f"retention keeps {rules.retention_bytes:,} bytes")


def _by_hold(rules: Rules, bytes_per_second: float) -> Iterator[tuple[timedelta, str]]:
    if rules.expiry is not None:
        yield rules.expiry, f"unread events expire after {rules.expiry}"
    for quota in rules.quotas:
        if quota.evicts and quota.age is not None:
            yield quota.age, f"the backlog quota drops unread events after {quota.age}"
        if quota.evicts and quota.bytes is not None:
            cause = f"the backlog quota drops unread events over {quota.bytes:,} bytes"
            yield from _filled(quota.bytes, bytes_per_second, cause)


def _filled(limit: int, bytes_per_second: float, cause: str) -> Iterator[tuple[timedelta, str]]:
    """When a limit of bytes is reached; a limit of nothing at once, a stream that does not grow never."""
    if limit == 0:
        yield _ZERO, cause
    elif bytes_per_second > 0:
        seconds = min(limit / bytes_per_second, timedelta.max.total_seconds() / 2)
        yield timedelta(seconds=seconds), f"{cause}, at {bytes_per_second:,.0f} bytes/s"


def _producers_stop(holding: Holding, schedule: Schedule) -> Iterator[str]:
    """A quota that does not evict stops producers instead: holds must not grow so far."""
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


def _signed(span: timedelta) -> str:
    return str(span) if span >= _ZERO else f"-{-span}"
