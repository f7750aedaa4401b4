"""Whether the stream still holds what a window needs, and for how long. Pure.

A broker removes whole ledgers and keeps no record of it, so that something was removed can rarely be seen; that
nothing was can often be proven. What is not proven counts as lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.admin.answers import InternalInfo, InternalStats, Retention
from airflow_provider_streams.systems.pulsar.layout import Layout, after

SOON = timedelta(hours=1)
"""A range that may be removed within this time is marked."""

_NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about what a shard holds. Each part may be missing."""

    stats: InternalStats | None
    """None: a partition that nothing was ever written to."""
    info: InternalInfo | None = None
    retention: Retention | None = None
    first_published: datetime | None = None
    """Publish time of the first entry still held."""

    @property
    def layout(self) -> Layout:
        """Its ledgers."""
        return Layout.of(self.stats)


def nothing_removed(evidence: Evidence) -> bool:
    """Whether every ledger the topic ever had is still there.

    Each new ledger changes the topic's record in the metadata store, so a record that was changed no more often than
    there are ledgers has lost none.
    """
    info, ledgers = evidence.info, evidence.layout.ledgers
    return info is not None and bool(ledgers) and info.version <= len(ledgers)


def doubt_in_window(evidence: Evidence, window: Window, slack: timedelta, now: datetime) -> str:
    """Why it is not certain that everything published in a window is still held; "": it is.

    Only asked when the time's position is the head: an older entry that is still held proves that nothing after it
    was removed.
    """
    if evidence.stats is None or nothing_removed(evidence):
        return ""
    first = evidence.first_published
    if (first is not None and first < window.start) or _is_younger(evidence.info, window.end + slack):
        return ""
    since = window.start - slack
    if _still_retained(evidence.retention, since, now) or _unchanged_since(evidence.stats, evidence.info, since):
        return ""
    held = f"the first message still held was published at {first.isoformat()}" if first else "no message is held"
    return f"{held}, and older ones may have been removed: {_rule(evidence.retention)}"


def held_since(evidence: Evidence) -> datetime | None:
    """The time from which on everything published is surely still held; None: nothing was removed, or unknown.

    An older entry that is still held proves that nothing after it was removed. Where no entry is held, whatever was
    removed lay in ledgers before the one that is open now.
    """
    if evidence.stats is None or nothing_removed(evidence):
        return None
    return evidence.first_published or evidence.stats.last_ledger_created


def _still_retained(retention: Retention | None, since: datetime, now: datetime) -> bool:
    """The retention rule keeps everything since then."""
    if retention is None or retention.bytes is not None:
        return False
    return retention.seconds is None or since > now - timedelta(seconds=retention.seconds)


def _is_younger(info: InternalInfo | None, moment: datetime) -> bool:
    """The topic did not exist before that time."""
    return info is not None and info.created is not None and info.created >= moment


def _unchanged_since(stats: InternalStats, info: InternalInfo | None, since: datetime) -> bool:
    """Whatever was removed was written before that time."""
    if info is not None and info.modified is not None and info.modified <= since:
        return True
    # everything removed lay in ledgers closed before the only ledger left was made
    only_one = len(stats.ledgers) == 1
    return only_one and stats.last_ledger_created is not None and stats.last_ledger_created <= since


def _rule(retention: Retention | None) -> str:
    if retention is None:
        return "this user may not read the topic's retention"
    if retention.unlimited:
        return "its retention is unlimited now"
    parts = []
    if retention.seconds is not None:
        parts.append(f"{timedelta(seconds=retention.seconds)}")
    if retention.bytes is not None:
        parts.append(f"{retention.bytes:,} bytes")
    return f"acknowledged data is kept for {' and '.join(parts)}"


def doubt_since_position(evidence: Evidence, start: Position) -> str:
    """Why it is not certain that everything from `start` on is still held; "": it is."""
    stats, layout = evidence.stats, evidence.layout
    if start >= layout.head or layout.holds(start.parts[0]):
        return ""
    if stats is None or nothing_removed(evidence) or start >= after(layout.last_confirmed):
        # the last: nothing was written after it
        return ""
    if _held_by_subscription(evidence, start):
        return ""
    if start.parts[1] <= 0 and evidence.retention is not None and evidence.retention.unlimited:
        # an empty ledger goes when its topic is loaded anew
        return ""
    return f"ledger {start.parts[0]} is gone, and entries after it may have been removed with it"


def _held_by_subscription(evidence: Evidence, start: Position) -> bool:
    """A durable subscription that has not read past `start` kept everything since."""
    if evidence.stats is None or evidence.info is None:
        return False
    durable = evidence.info.durable_cursors
    marks = [mark for name, mark in evidence.stats.cursors.items() if name in durable and mark is not None]
    return any(after(mark) <= start for mark in marks)


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
