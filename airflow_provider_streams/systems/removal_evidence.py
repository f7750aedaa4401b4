"""What tail observations of one shard or stream prove of a window: one rule for all systems. Pure.

A system says what became of the events that were stored before and after each tail observation. The rule weighs these
fates against the times of the window:

- In the window: if what the tail observation saw is gone, the window is lost.
- Before the window: what was stored since may be gone with what it saw.
- After the window: if what it saw is gone, so is all that was stored before, and the window with it. It counts unless
  something shows that what it saw was stored later than the window.
- If a tail observation before the window proves that everything since is held, nothing of the window is lost.
- If tail observations before and after the window saw the same end, nothing was stored in between. Then nothing of the
  window is lost, whatever became of the shard or stream later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from itertools import dropwhile, takewhile
from typing import Generic, Protocol, TypeVar


class View(Protocol):
    """What was seen at a moment."""

    @property
    def at(self) -> datetime:
        """When."""

    @property
    def tail(self) -> object:
        """Where the shard or stream ended. Places are equal if nothing was stored between them."""


S = TypeVar("S", bound=View)


class Fate(Enum):
    """What became of the events that were stored after a tail observation."""

    HELD = "held"
    """All of them are still held."""
    GONE = "gone"
    """Events that the tail observation saw were removed since, and later ones may have been removed with them."""
    EMPTIED = "emptied"
    """Events that the tail observation saw were removed since, and with them all earlier ones.

    All later ones are held.
    """
    UNCLEAR = "unclear"
    """Its place is gone, but the tail observation saw no event there."""


@dataclass(frozen=True, slots=True)
class Witness(Generic[S]):
    """A tail observation, and what became of the events that were stored after it."""

    seen: S
    fate: Fate
    made: datetime | None = None
    """When the shard or stream that it saw was made; None: not known."""
    incarnation: object = None
    """What tells the incarnation that it saw from others, where it is not the one of today."""


@dataclass(frozen=True, slots=True)
class RetentionProof(Generic[S]):
    """What the tail observations of a shard or stream prove."""

    held: S | None = None
    """The first tail observation since which everything is held."""
    lost: S | None = None
    """The first tail observation within the window since which events are gone."""
    lost_before: S | None = None
    """The last tail observation before the window since which events are gone, perhaps only older ones."""
    lost_older: S | None = None
    """The first tail observation whose events are gone, and with them all that was stored before it.

    From its moment on, the window is held or over."""
    is_quiet: bool = False
    """Nothing was stored in the window."""

    @property
    def shows_loss(self) -> bool:
        """Whether some tail observation speaks for a loss."""
        return any((self.lost, self.lost_before, self.lost_older))

    def holds_all_since(self, moment: datetime) -> bool:
        """Whether everything that was stored after a moment is held."""
        return self.held is not None and self.held.at <= moment


def retention_proof(
    witnesses: Iterable[Witness[S]], start: datetime, end: datetime, slack: timedelta
) -> RetentionProof[S]:
    """What tail observations prove of events that were stored in `[start, end)`.

    Args:
        witnesses: the tail observations of one shard or stream in one incarnation of it, in order.
        start: no event of the window was stored before.
        end: nor at or after this.
        slack: how far off these times may be.
    """
    told = list(witnesses)
    found = [one for one in told if one.seen.at < end]
    gone = [one.seen for one in found if one.fate is Fate.GONE]
    last = gone[-1] if gone else None
    # what was stored after a tail observation, and is gone, was stored after all earlier ones
    since = found if last is None else dropwhile(lambda one: one.seen is not last, found)
    held = next((one.seen for one in since if one.fate in (Fate.HELD, Fate.EMPTIED)), None)
    if _is_quiet(told, start - slack, end + slack):
        return RetentionProof(held, is_quiet=True)
    proven = RetentionProof(held).holds_all_since(start - slack)
    return RetentionProof(
        held=held,
        lost=next((seen for seen in gone if seen.at >= start), None),
        lost_before=next((seen for seen in reversed(gone) if seen.at < start), None),
        lost_older=None if proven else _lost_older(told, start, end, end + slack),
    )


def _is_quiet(told: list[Witness[S]], since: datetime, until: datetime) -> bool:
    """Whether nothing was stored from `since` to `until`: one and the same ended at one place before and after."""
    after = [(one.seen.tail, one.incarnation) for one in told if one.seen.at >= until]
    return any((one.seen.tail, one.incarnation) in after for one in told if one.seen.at <= since)


def _lost_older(told: list[Witness[S]], start: datetime, end: datetime, until: datetime) -> S | None:
    """The first tail observation that shows that what was stored before it is gone.

    Unless that was stored after the window.
    """
    # what came after a tail observation that saw nothing is younger than that
    heard = takewhile(lambda one: one.fate is not Fate.UNCLEAR or one.seen.at < until, told)
    found = (one for one in heard if (one.fate is Fate.GONE and one.seen.at >= end) or one.fate is Fate.EMPTIED)
    first = next((one for one in found if one.seen.at >= start), None)
    return None if first is None or (first.made is not None and first.made >= until) else first.seen
