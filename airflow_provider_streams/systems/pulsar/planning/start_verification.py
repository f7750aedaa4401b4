"""Whether the stream still holds what a window needs, and for how long. Pure.

A broker removes whole ledgers and keeps no record of it. Often it can be proven that nothing was removed, and sometimes
that something was. Anything else is unproven: a topic's present rules say nothing of the past.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, after
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Evidence, Seen
from airflow_provider_streams.systems.removal_evidence import Fate, RetentionProof, Witness, retention_proof

SOON = timedelta(hours=1)
"""A plan marks a range that may be removed within this time."""

_NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not certain that a range is still held whole."""

    cause: str
    is_lost: bool
    """Events were removed after a tail observation; otherwise that is not known."""
    place: Position | None = None
    """Where the topic ended when it was seen: everything from there on is gone. None: not known."""


def nothing_removed(evidence: Evidence) -> bool:
    """Whether every ledger that this incarnation of the topic ever had still exists.

    Each new ledger changes the topic's record in the metadata store, and no change adds two. So a record with no more
    changes than ledgers has lost none. Other changes count as well and take the proof away, except a termination: an
    offload, a change of properties, or loading a topic whose last ledger is empty.
    """
    info = evidence.info
    return info is not None and bool(info.ledgers) and info.version <= len(info.ledgers) + info.terminated


def doubt_in_window(
    evidence: Evidence, window: Window, slack: timedelta, *, older_is_held: bool = False
) -> Doubt | None:
    """Why it is not certain that everything published in a window is still held; None: it is.

    Messages may be stored, and the producers' clocks may differ, by as much as `slack`. With `older_is_held`, a message
    from before the window less slack is held, so nothing after it was removed.
    """
    since = window.start - slack
    proof, doubt = _by_observations(evidence, window, slack)
    if proof.is_quiet or doubt:
        return doubt
    if older_is_held or proof.holds_all_since(since) or _is_proven(evidence, window, since):
        return None
    if proof.lost_before:
        return _lost(evidence, proof.lost_before)
    return _absent(evidence) if evidence.stats is None else _unseen(evidence, window, slack)


def doubt_at_head(evidence: Evidence, window: Window) -> Doubt | None:
    """Why it is not certain that a window from the head on holds everything stored since it began; None: it is.

    The end of the first window of a chain is open.
    """
    proof, doubt = _by_observations(evidence, window, timedelta(0))
    if proof.is_quiet or doubt:
        return doubt
    if evidence.stats is None:
        return _lost(evidence, proof.lost_before) if proof.lost_before else _absent(evidence)
    if nothing_removed(evidence) or proof.holds_all_since(window.start):
        return None
    return Doubt("it begins at the first entry still held, and nothing proves that none was removed", is_lost=False)


def doubt_since_position(evidence: Evidence, start: Position, since: datetime | None = None) -> Doubt | None:
    """Why it is not certain that everything from `start` on is still held; None: it is.

    A shard that was created later is read from its first entry; observations up to `since` saw another one.
    """
    if evidence.ended:
        return Doubt(_created_again(evidence), is_lost=True)
    if evidence.stats is None and (start > EARLIEST or evidence.seen):
        return Doubt("the topic was deleted", is_lost=True)
    removed = (Fate.GONE, Fate.EMPTIED)
    gone = [one.seen for one in _witnesses(evidence) if one.fate in removed and one.seen.tail > start]
    for seen in gone:
        if start > EARLIEST or since is None or seen.at > since:
            return Doubt(_gone(evidence, seen), is_lost=True)
    return None if _is_proven_from(evidence, start) else _doubt_of_ledger(evidence, start)


def _by_observations(evidence: Evidence, window: Window, slack: timedelta) -> tuple[RetentionProof[Seen], Doubt | None]:
    """What tail observations prove of a window, and what they say against it.

    No clock and no message outweighs a tail observation, as these may be wrong. A loss outweighs what is unproven.
    """
    proof = retention_proof(_witnesses(evidence), window.start, window.end, slack)
    if proof.is_quiet or _proof_of_ended(evidence.ended, window, slack).is_quiet:
        return replace(proof, is_quiet=True), None
    other = _of_other_incarnation(evidence, window, slack)
    if other and other.is_lost:
        return proof, other
    if proof.lost:
        return proof, _lost_in_window(evidence, proof.lost, window)
    if proof.lost_older:
        cause = f"{_lost(evidence, proof.lost_older).cause}: all that was stored before that is gone"
        return proof, Doubt(cause, is_lost=True)
    return proof, other


def _of_other_incarnation(evidence: Evidence, window: Window, slack: timedelta) -> Doubt | None:
    """What is gone with another incarnation of the topic; None: nothing that was stored in the window or its slack."""
    ended = evidence.ended
    if not ended or (evidence.made is not None and evidence.made <= window.start - slack):
        return None
    if lost_with_incarnation(ended, window, slack):
        return Doubt(_created_again(evidence), is_lost=True)
    return Doubt(f"{_created_again(evidence)}, and nothing shows that it held events of the window", is_lost=False)


def lost_with_incarnation(seen: Iterable[Seen], window: Window, slack: timedelta) -> Seen | None:
    """The tail observation that shows that a window lost events of ended incarnations of a shard; None: none does."""
    proof = _proof_of_ended(seen, window, slack)
    return proof.lost or proof.lost_before or proof.lost_older


def _proof_of_ended(seen: Iterable[Seen], window: Window, slack: timedelta) -> RetentionProof[Seen]:
    return retention_proof(map(_of_ended, seen), window.start, window.end, slack)


def _of_ended(seen: Seen) -> Witness[Seen]:
    return Witness(seen, Fate.UNCLEAR if seen.was_empty else Fate.GONE, seen.made, seen.incarnation)


def _witnesses(evidence: Evidence) -> list[Witness[Seen]]:
    """The tail observations of this incarnation of the shard, and what became since of what they saw."""
    if evidence.stats is None:
        return [_of_ended(one) for one in evidence.of_this_incarnation]
    return [Witness(one, _fate(evidence, one), one.made or evidence.made) for one in evidence.of_this_incarnation]


def _fate(evidence: Evidence, seen: Seen) -> Fate:
    # entries that it saw in older ledgers are gone with its own ledger
    saw_entries = not _may_have_been_empty(seen.tail) or seen.was_empty is False
    if _is_held_from(evidence, seen.tail):
        return Fate.EMPTIED if saw_entries and evidence.layout.head >= seen.tail else Fate.HELD
    return Fate.GONE if saw_entries else Fate.UNCLEAR


def _lost_in_window(evidence: Evidence, first: Seen, window: Window) -> Doubt:
    """What is gone since a tail observation within a window, with a lower bound of its size."""
    gone = [one.seen for one in _witnesses(evidence) if one.fate is Fate.GONE]
    within = [one.tail.parts for one in gone if first.at <= one.at < window.end]
    # across ledgers, only the entries of the later one are certain
    entries = sum(later[1] - earlier[1] if earlier[0] == later[0] else later[1] for earlier, later in pairwise(within))
    size = f": at least {counted(entries, 'entry')} of the window" if entries else ""
    lost = _lost(evidence, first)
    return replace(lost, cause=f"{lost.cause}{size}. What was stored before that may also be gone")


def _lost(evidence: Evidence, seen: Seen) -> Doubt:
    held = f"{_held(evidence)}, and " if evidence.stats else ""
    return Doubt(f"{held}{_gone(evidence, seen)}", is_lost=True, place=seen.tail)


def _gone(evidence: Evidence, seen: Seen) -> str:
    if evidence.stats is None:
        return f"the topic, which was there at {seen.at.isoformat()}, no longer exists"
    return f"ledger {seen.tail.parts[0]}, where the topic ended at {seen.at.isoformat()}, is gone"


def _absent(evidence: Evidence) -> Doubt:
    """A partition does not exist: the broker does not say whether it was deleted or never created.

    Creating a topic creates all its partitions. Only a topic that its producers create may lack some.
    """
    topic = parent_of(evidence.shard)
    advice = f"`pulsar-admin topics create-missed-partitions {topic}` creates it for later windows"
    return Doubt(f"the partition does not exist, and nothing proves that it was not deleted; {advice}", is_lost=False)


def _unseen(evidence: Evidence, window: Window, slack: timedelta) -> Doubt:
    """Why it is not certain, where no tail observation tells."""
    made = evidence.made
    is_younger = made is not None and made > window.start
    # then this incarnation lost nothing of the window
    if is_younger and made is not None and (nothing_removed(evidence) or made >= window.end + slack):
        cause = f"the topic was made at {made}, after the window's start, and no earlier one of its name is known"
        return Doubt(cause, is_lost=False)
    return Doubt(f"{_held(evidence)}, and nothing proves that no older one was removed", is_lost=False)


def _is_proven(evidence: Evidence, window: Window, since: datetime) -> bool:
    """Whether everything that was removed was written before `since`."""
    stats, info = evidence.stats, evidence.info
    if stats is None:
        return False
    # an earlier incarnation of the topic, which was not seen, would leave nothing
    if nothing_removed(evidence) and evidence.made is not None and evidence.made <= window.start:
        return True
    if info is not None and info.modified is not None and info.modified <= since:
        return True
    # everything removed was in ledgers that closed before the only remaining ledger was created
    created = stats.last_ledger_created
    return len(stats.ledgers) == 1 and created is not None and created <= since


def _is_proven_from(evidence: Evidence, start: Position) -> bool:
    if start <= EARLIEST:
        return nothing_removed(evidence)
    return evidence.stats is not None and (_is_held_from(evidence, start) or _held_by_subscription(evidence, start))


def _doubt_of_ledger(evidence: Evidence, start: Position) -> Doubt:
    """The ledger of a start does not exist."""
    ledger = start.parts[0]
    if evidence.stats is None:
        return _absent(evidence)
    if start <= EARLIEST:
        return Doubt("nothing proves that the topic still holds its first entry", is_lost=False)
    if nothing_removed(evidence):
        return Doubt(f"ledger {ledger} never was one of this topic: {_created_again(evidence)}", is_lost=True)
    if _may_have_been_empty(start) and evidence.retention is not None and evidence.retention.unlimited:
        return Doubt(f"ledger {ledger} is gone, and nothing proves that it was empty", is_lost=False)
    return Doubt(f"ledger {ledger} is gone, and entries after it may have been removed with it", is_lost=True)


def _is_held_from(evidence: Evidence, position: Position) -> bool:
    """Whether nothing that this incarnation stored at or after a place was removed."""
    layout = evidence.layout
    return (
        position >= layout.head
        or layout.holds(position.parts[0])
        # nothing was written after it
        or (layout.last_confirmed.ledger >= 0 and position >= after(layout.last_confirmed))
    )


def _may_have_been_empty(position: Position) -> bool:
    """Whether it is the start of a ledger: an empty ledger is removed when a broker loads its topic again."""
    return position.parts[1] <= 0


def _held_by_subscription(evidence: Evidence, start: Position) -> bool:
    """Whether a durable subscription has not read past `start`, and so kept everything since."""
    if evidence.stats is None or evidence.info is None:
        return False
    durable = evidence.info.durable_cursors
    marks = [mark for name, mark in evidence.stats.cursors.items() if name in durable and mark is not None]
    return any(after(mark) <= start for mark in marks)


def _held(evidence: Evidence) -> str:
    first = evidence.first_published
    return f"the first message still held was published at {first.isoformat()}" if first else "no message is held"


def _created_again(evidence: Evidence) -> str:
    return f"the topic was deleted, and made again at {evidence.made.isoformat() if evidence.made else 'a later time'}"


def held_since(evidence: Evidence) -> datetime | None:
    """The time since which everything published is still held, except what was stored out of order.

    None: nothing was removed, or unknown. A message that is still held proves that nothing after it was removed. Where
    no entry is held, everything removed was in ledgers before the open one.
    """
    if evidence.stats is None or nothing_removed(evidence):
        return None
    return evidence.first_published or evidence.stats.last_ledger_created


def verdict(evidence: Evidence, start: Position, end: Position, now: datetime) -> str:
    """`ok`, `empty`, `unknown`, or `edge: ..` for a range that is held now, with what may remove it soon."""
    stats, retention, spans = evidence.stats, evidence.retention, evidence.layout.spans(start, end)
    if not spans or stats is None:
        return "empty"
    if retention is None:
        return "unknown"
    if retention.unlimited or _held_by_subscription(evidence, start):
        return "ok"
    if retention.bytes is not None and 0 < retention.bytes * _NEARLY_FULL < stats.bytes:
        return "edge: its topic's retention size is reached"
    return "ok" if retention.seconds is None else _expiry(evidence, spans[0].run, retention.seconds, now)


def _expiry(evidence: Evidence, ledger: int, retention_seconds: int, now: datetime) -> str:
    closed = {row.ledger: row.closed_ms for row in evidence.info.ledgers} if evidence.info else {}
    closed_ms = closed.get(ledger)
    if closed_ms is None:
        return "ok" if retention_seconds else "edge: held until its ledger is full"
    left = datetime.fromtimestamp(closed_ms / 1000, UTC) + timedelta(seconds=retention_seconds) - now
    return "ok" if left > SOON else f"edge: {max(0, int(left / timedelta(minutes=1)))} min to expiry"
