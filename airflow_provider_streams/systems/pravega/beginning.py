"""Whether a window that begins at the head holds everything: what proves it, or proves that something is gone.

Events carry no time, and truncation leaves no record: a head alone does not tell what was before it, nor when. A
stream that still has all the segments it was made with, from their first byte on, lost nothing. Of any other, somebody
must have seen where it ended before the window began.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.systems.pravega import cuts, origin
from airflow_provider_streams.systems.pravega.pieces import pieces_between
from airflow_provider_streams.systems.pravega.steps import Steps, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut, follows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not certain that a window holds all that was written in its time."""

    cause: str
    is_lost: bool = False
    """Events are gone that came after somebody had looked, or after the window had begun; else nobody can say."""
    seen: StreamCut | None = None
    """Where the stream ended before they were written; None: in another life of it, of which nothing is held."""


def doubt(request: PlanRequest, head: StreamCut) -> Steps[Doubt | None]:
    """Why it is not certain that a window is held whole; None: it is. Of one with a start of its own: of this life.

    Args:
        request: what is asked for, and what was seen of the stream before.
        head: the stream's.
    """
    if request.start_cut and request.start_identity:
        return (yield from of_life(request.start_identity))
    seen, since = request.first_seen, _since(request)
    if seen is not None and (yield from is_another_life(seen, head)):
        if lost := (yield from another_life(seen, head, since)):
            return lost
        seen = None
    if request.start_cut:
        return None
    if is_beginning(head):
        return (yield from _made_again(head, since))
    if seen is None:
        return Doubt("it begins at the first event still held, of a stream that was truncated before")
    return (yield from _since_seen(request, seen, head, since))


def of_life(identity: Identity) -> Steps[Doubt | None]:
    """What is gone with the life of the stream that a cut is of; None: it is the one of today."""
    other = yield from origin.contradiction(identity)
    if other is None:
        return None
    cause = f"the stream was deleted and made again: the cut is of {other.planned}, and now there is {other.found}"
    return Doubt(cause, is_lost=True)


def end_lost(request: PlanRequest, head: StreamCut, start: Doubt | None) -> Steps[Doubt | None]:
    """Why nothing of a window is held: it ends in another life of the stream; None: it does not, or nobody can tell.

    Args:
        request: what is asked for.
        head: the stream's.
        start: what is known of the window's start.
    """
    if not request.end_cut:
        return None
    lost = (yield from of_life(request.end_identity)) if request.end_identity else None
    if lost or start is None or not start.is_lost or start.seen is not None:
        return lost
    end = StreamCut.from_model(head.stream, request.end_cut)
    # it begins with the life of today: of that, all up to the end may have been truncated since
    is_gone = not (yield from infos(head.stream, list(end.offsets)))
    return start if is_gone or (yield from cuts.stranger(end, head)) else None


def is_beginning(head: StreamCut) -> bool:
    """Whether a stream with this head was never truncated: it starts with the segments that it was made with."""
    return all(segment.epoch == 0 and head.offsets[segment.id] == 0 for segment in head.segments)


def another_life(seen: Sighting, head: StreamCut, since: datetime) -> Steps[Doubt | None]:
    """What is gone with a life of the stream in which it was seen; None: the one of today is older than the window."""
    made = yield from _made(head)
    if made is not None and made <= since:
        return None
    when = made.isoformat(timespec="milliseconds") if made else "an unknown time"
    cause = f"the stream was deleted and made again, with segments of {when}; an earlier one was seen at {_at(seen)}"
    return Doubt(cause, is_lost=True)


def is_another_life(seen: Sighting, head: StreamCut) -> Steps[bool]:
    """Whether what was seen was another stream of this name: its segments, or its end, are none of this one's."""
    tail = StreamCut.from_model(head.stream, seen.tail)
    if seen.identity:
        return (yield from origin.contradiction(seen.identity)) is not None
    try:
        yield from cuts.check({"seen": tail}, head)
    except InvalidRequest:
        return True
    return False


def _since(request: PlanRequest) -> datetime:
    """What was written after this may be the window's; times in events may be ahead of the clock, by the slack."""
    start = request.window.start
    return start - min(request.slack, start - _FIRST) if request.basis == "event" else start


def _since_seen(request: PlanRequest, seen: Sighting, head: StreamCut, since: datetime) -> Steps[Doubt | None]:
    end = StreamCut.from_model(head.stream, seen.tail)
    pieces = yield from pieces_between(end, (yield from cuts.tail(head.stream)), head)
    is_held = not any(piece.loss for piece in pieces)
    if is_held and seen.at <= since:
        return None
    if is_held:
        return Doubt(f"the stream was truncated before it was first seen, at {_at(seen)}: after the window's start")
    gone = f"what was written after {_at(seen)}, when the stream was seen, was truncated"
    if seen.at <= since:
        # perhaps before the window began: but where somebody has looked, nothing goes in silence. A segment that is
        # gone as a whole may have ended where it was seen to end
        known = any(piece.loss and piece.loss.end > piece.loss.start for piece in pieces)
        return Doubt(gone if known else f"{gone}, or was nothing", is_lost=known, seen=end)
    if request.end_cut and not follows(seen.tail, request.end_cut):
        return Doubt(f"{gone}; the window need not reach so far")
    return Doubt(gone, is_lost=True, seen=end)


def _made_again(head: StreamCut, since: datetime) -> Steps[Doubt | None]:
    """A stream made for the first time numbers its segments from 0 on; one made again goes on where the last ended."""
    if not min(segment.number for segment in head.segments):
        return None
    made = yield from _made(head)
    if made is not None and made <= since:
        return None
    when = made.isoformat(timespec="milliseconds") if made else "an unknown time"
    return Doubt(f"the stream was deleted before, and made again at {when}: after the window's start")


def _made(head: StreamCut) -> Steps[datetime | None]:
    """When the oldest segment that is held was made: this life of the stream is as old, or older."""
    found = yield from infos(head.stream, list(head.offsets))
    told = [info.created_ms for info in found.values() if info.created_ms is not None]
    try:
        return _EPOCH + timedelta(milliseconds=min(told)) if told else None
    except OverflowError:
        return None


def _at(seen: Sighting) -> str:
    return seen.at.isoformat(timespec="seconds")
