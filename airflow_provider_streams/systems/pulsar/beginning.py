"""Whether the stream still holds what a window needs, and for how long. Pure.

A broker removes whole ledgers and keeps no record of it. That nothing was removed can often be proven; that something
was, sometimes. What is neither is unproven: what the topic's rules are today says nothing of the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.admin.answers import InternalInfo, InternalStats, Retention
from airflow_provider_streams.systems.pulsar.identity import identity_of
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout, after

SOON = timedelta(hours=1)
"""A range that may be removed within this time is marked."""

_NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about what a shard holds. Each part may be missing."""

    shard: str
    stats: InternalStats | None
    """None: a partition that nothing was ever written to."""
    info: InternalInfo | None = None
    """Asked after the ledgers, so that what it says was not removed is among them."""
    retention: Retention | None = None
    first_published: datetime | None = None
    """Publish time of the first message still held."""
    seen: Sighting | None = None
    """What somebody saw of the source before."""

    @property
    def layout(self) -> Layout:
        """Its ledgers."""
        return Layout.of(self.stats)

    @property
    def made(self) -> datetime | None:
        """When this life of the topic began; None: not known."""
        return self.info.created if self.info else None

    @property
    def is_another_life(self) -> bool:
        """It was deleted and made anew since it was seen."""
        then = dict(self.seen.identity).get(self.shard) if self.seen else None
        now = identity_of(self.info)
        return then is not None and now is not None and then != now


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not certain that a range is still held whole."""

    cause: str
    is_lost: bool
    """Events were removed after somebody had looked, or by the topic's rules; otherwise nobody can say."""


def nothing_removed(evidence: Evidence) -> bool:
    """Whether every ledger that this life of the topic ever had is still there.

    Each new ledger changes the topic's record in the metadata store, and no change adds two. So a record that was
    changed no more often than there are ledgers has lost none. (Other changes, like those of an offload, of the topic's
    properties, or of loading a topic whose last ledger is empty, count too, and take the proof away; but for the one
    that terminates it.)
    """
    info = evidence.info
    return info is not None and bool(info.ledgers) and info.version <= len(info.ledgers) + info.terminated


def doubt_in_window(
    evidence: Evidence, window: Window, slack: timedelta, now: datetime, *, older_is_held: bool = False
) -> Doubt | None:
    """Why it is not certain that everything published in a window is still held; None: it is.

    Slack also covers how far the producers' clocks are off the cluster's and ours.

    Args:
        evidence: what is known.
        window: the window.
        slack: how far out of order messages may be stored.
        now: the time.
        older_is_held: a message from before the window less slack is held, so that nothing after it was removed.
    """
    since = window.start - slack
    if evidence.is_another_life and (evidence.made is None or evidence.made > since):
        return Doubt(_made_anew(evidence), is_lost=True)
    if older_is_held or _is_proven(evidence, window, slack):
        return None
    if _is_younger(evidence, window, slack):
        return Doubt(
            f"the topic was made at {evidence.made}, after the window's start, and nobody knows of an earlier one of "
            "its name",
            is_lost=False,
        )
    held = _held(evidence)
    if lost := _lost_since_seen(evidence, since):
        return Doubt(f"{held}, and {lost}", is_lost=True)
    if _is_expired(evidence.retention, since, now):
        return Doubt(f"{held}, and older ones may have been removed: {_rule(evidence.retention)}", is_lost=True)
    return Doubt(f"{held}, and nothing proves that no older one was removed", is_lost=False)


def _is_proven(evidence: Evidence, window: Window, slack: timedelta) -> bool:
    stats, since = evidence.stats, window.start - slack
    if stats is None:
        return not _was_there(evidence)
    return (
        # of an earlier life of the topic, which nobody saw, nothing would be left
        (nothing_removed(evidence) and evidence.made is not None and evidence.made <= window.start)
        or _unchanged_since(stats, evidence.info, since)
        or _is_held_since_seen(evidence, since)
    )


def _unchanged_since(stats: InternalStats, info: InternalInfo | None, since: datetime) -> bool:
    """Whatever was removed was written before that time."""
    if info is not None and info.modified is not None and info.modified <= since:
        return True
    # everything removed lay in ledgers closed before the only ledger left was made
    only_one = len(stats.ledgers) == 1
    return only_one and stats.last_ledger_created is not None and stats.last_ledger_created <= since


def _is_younger(evidence: Evidence, window: Window, slack: timedelta) -> bool:
    """The topic is younger than the window, and whatever the window lacks is not of this life of it."""
    made = evidence.made
    return made is not None and made > window.start and (nothing_removed(evidence) or made >= window.end + slack)


def _is_held_since_seen(evidence: Evidence, since: datetime) -> bool:
    """Everything stored after a sighting that lies before the window is still there."""
    tail = _tail_before(evidence, since)
    return tail is not None and _is_held_from(evidence, tail)


def _lost_since_seen(evidence: Evidence, since: datetime) -> str:
    """What was removed after a sighting that lies before the window; "": nothing is known of that."""
    tail = _tail_before(evidence, since)
    if tail is None or evidence.seen is None or _may_have_been_empty(tail):
        return ""
    return _gone(tail, evidence.seen)


def _gone(tail: Position, seen: Sighting) -> str:
    return f"ledger {tail.parts[0]}, where the topic ended at {seen.at.isoformat()}, is gone"


def _tail_before(evidence: Evidence, since: datetime) -> Position | None:
    """Where this life of the shard ended at a sighting not later than a time; None: there is no such sighting."""
    seen = evidence.seen
    if seen is None or seen.at > since or evidence.is_another_life:
        return None
    return seen.tail.get(evidence.shard)


def _is_held_from(evidence: Evidence, position: Position) -> bool:
    """Nothing that was ever stored at or behind a place of this life has been removed."""
    layout = evidence.layout
    return (
        position >= layout.head
        or layout.holds(position.parts[0])
        # nothing was written after it
        or position >= after(layout.last_confirmed)
    )


def _may_have_been_empty(position: Position) -> bool:
    """It is the begin of a ledger: one without entries goes when its topic is loaded anew."""
    return position.parts[1] <= 0


def _was_there(evidence: Evidence) -> bool:
    """The shard, which is not there now, has been seen."""
    seen = evidence.seen
    return seen is not None and seen.tail.get(evidence.shard, EARLIEST) > EARLIEST


def _is_expired(retention: Retention | None, since: datetime, now: datetime) -> bool:
    """By the rule of today, what was published then is not kept any more."""
    return (
        retention is not None and retention.seconds is not None and (now - since).total_seconds() >= retention.seconds
    )


def _held(evidence: Evidence) -> str:
    first = evidence.first_published
    return f"the first message still held was published at {first.isoformat()}" if first else "no message is held"


def _made_anew(evidence: Evidence) -> str:
    return f"the topic was deleted, and made anew at {evidence.made.isoformat() if evidence.made else 'a later time'}"


def _rule(retention: Retention | None) -> str:
    parts = []
    if retention is not None and retention.seconds is not None:
        parts.append(f"{timedelta(seconds=retention.seconds)}")
    if retention is not None and retention.bytes is not None:
        parts.append(f"{retention.bytes:,} bytes")
    return f"acknowledged data is kept for {' and '.join(parts)}"


def doubt_at_head(evidence: Evidence, window: Window) -> Doubt | None:
    """Why it is not certain that a window from the head on holds all that was stored since it began; None: it is.

    Whatever was stored after a sighting within it was to be read with it: the first of a chain ends at the tail, and
    one of given cuts behind the head.
    """
    if evidence.is_another_life and (evidence.made is None or evidence.made > window.start):
        return Doubt(_made_anew(evidence), is_lost=True)
    if evidence.stats is None or nothing_removed(evidence) or _is_held_since_seen(evidence, window.start):
        return None
    seen = evidence.seen
    tail = seen.tail.get(evidence.shard) if seen is not None and not evidence.is_another_life else None
    if seen is None or tail is None or seen.at < window.start or _is_held_from(evidence, tail):
        return Doubt("it begins at the first entry still held, and nothing proves that none was removed", is_lost=False)
    if _may_have_been_empty(tail):
        return Doubt(f"{_gone(tail, seen)}, and nothing proves that it was empty", is_lost=False)
    return Doubt(f"{_gone(tail, seen)}, and entries after it may have been removed with it", is_lost=True)


def doubt_since_position(evidence: Evidence, start: Position) -> Doubt | None:
    """Why it is not certain that everything from `start` on is still held; None: it is."""
    if _is_proven_from(evidence, start) and not evidence.is_another_life:
        return None
    if evidence.is_another_life:
        return Doubt(_made_anew(evidence), is_lost=True)
    if evidence.stats is None:
        return Doubt("the topic was deleted", is_lost=True)
    return _doubt_of_ledger(evidence, start)


def _doubt_of_ledger(evidence: Evidence, start: Position) -> Doubt:
    """The ledger of a start is not there."""
    ledger = start.parts[0]
    if start <= EARLIEST:
        return Doubt("nothing proves that the topic still holds its first entry", is_lost=False)
    if nothing_removed(evidence):
        return Doubt(f"ledger {ledger} never was one of this topic: {_made_anew(evidence)}", is_lost=True)
    if _may_have_been_empty(start) and evidence.retention is not None and evidence.retention.unlimited:
        return Doubt(f"ledger {ledger} is gone, and nothing proves that it was empty", is_lost=False)
    return Doubt(f"ledger {ledger} is gone, and entries after it may have been removed with it", is_lost=True)


def _is_proven_from(evidence: Evidence, start: Position) -> bool:
    if start <= EARLIEST:
        return nothing_removed(evidence) or (evidence.stats is None and not _was_there(evidence))
    return evidence.stats is not None and (_is_held_from(evidence, start) or _held_by_subscription(evidence, start))


def _held_by_subscription(evidence: Evidence, start: Position) -> bool:
    """A durable subscription that has not read past `start` kept everything since."""
    if evidence.stats is None or evidence.info is None:
        return False
    durable = evidence.info.durable_cursors
    marks = [mark for name, mark in evidence.stats.cursors.items() if name in durable and mark is not None]
    return any(after(mark) <= start for mark in marks)


def held_since(evidence: Evidence) -> datetime | None:
    """The time from which on everything published is still held, but for what was stored out of order.

    None: nothing was removed, or unknown. A message that is still held proves that nothing after it was removed. Where
    no entry is held, whatever was removed lay in ledgers before the one that is open now.
    """
    if evidence.stats is None or nothing_removed(evidence):
        return None
    return evidence.first_published or evidence.stats.last_ledger_created


def verdict(evidence: Evidence, start: Position, end: Position, now: datetime) -> str:
    """`ok`, `empty`, `unknown`, or `edge: ..` for a range that is held now, by what may remove it soon."""
    stats, retention, spans = evidence.stats, evidence.retention, evidence.layout.spans(start, end)
    if not spans or stats is None:
        return "empty"
    if retention is None:
        return "unknown"
    if retention.unlimited or _held_by_subscription(evidence, start):
        return "ok"
    if retention.bytes is not None and 0 < retention.bytes * _NEARLY_FULL < stats.bytes:
        return "edge: its topic's retention size is reached"
    return _expiry(evidence, spans[0].run, retention, now)


def _expiry(evidence: Evidence, ledger: int, retention: Retention, now: datetime) -> str:
    if retention.seconds is None:
        return "ok"
    closed = {row.ledger: row.closed_ms for row in evidence.info.ledgers} if evidence.info else {}
    closed_ms = closed.get(ledger)
    if closed_ms is None:
        return "ok" if retention.seconds else "edge: held until its ledger is full"
    expires = datetime.fromtimestamp(closed_ms / 1000, UTC) + timedelta(seconds=retention.seconds)
    if expires - now > SOON:
        return "ok"
    minutes = max(0, int((expires - now) / timedelta(minutes=1)))
    return f"edge: {minutes} min to expiry"
