"""Whether a window that begins at the head holds everything: what proves it, or proves that something is gone.

Events carry no time, and truncation leaves no record: a head alone does not tell what was before it, nor when. A stream
that still has its first segments from their first byte on lost nothing. For any other stream, a tail observation must
have seen its end before the window began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest, SourceReplaced
from airflow_provider_streams.model.plan.plan import Loss, PlanRequest
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata import incarnation as origin
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut, follows
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.multi_stream_plan import witness_of_ended
from airflow_provider_streams.systems.pravega.planning.segment_ranges import pieces_between
from airflow_provider_streams.systems.removal_evidence import Fate, Witness, retention_proof

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not certain that a window holds all that was written in its time."""

    cause: str
    is_lost: bool = False
    """Events are gone that came after a tail observation or the window's start; else that is not known."""
    seen: StreamCut | None = None
    """Where the stream ended before they were written; None: nothing that came before them is held."""


def doubt(request: PlanRequest, head: StreamCut) -> Steps[Doubt | None]:
    """Why it is not certain that a window is held whole; None: it is.

    If the window has a start cut, only the incarnation of the stream is in doubt.
    """
    if request.start_cut and request.start_incarnation:
        return (yield from _doubt_of_incarnation(request.start_incarnation))
    start = request.window.start
    # times in events may be ahead of the clock, by the slack
    since = start - min(request.slack, start - _FIRST) if request.basis == "event" else start
    # an empty tail: the stream did not exist
    found = [one for one in request.tail_observations if one.tail]
    ours = yield from _after(found, lambda seen: _is_other_incarnation(seen, head))
    ended = found[: len(found) - len(ours)]
    earlier = (yield from _gone_with_incarnation(request, ended, head, since)) if ended else None
    if request.start_cut or (earlier and earlier.is_lost):
        return earlier
    current = yield from _gone_of_current(request, ours, head, since)
    return current if current and current.is_lost else earlier or current


def _gone_of_current(
    request: PlanRequest, found: Sequence[TailObservation], head: StreamCut, since: datetime
) -> Steps[Doubt | None]:
    """What may be gone of the current incarnation, by its head and its tail observations; None: nothing."""
    if is_beginning(head):
        return (yield from _made_again(head, since))
    if not found:
        return Doubt("it begins at the first event still held, of a stream that was truncated before")
    return (yield from _since_seen(request, found, head, since))


def _doubt_of_incarnation(incarnation: Incarnation) -> Steps[Doubt | None]:
    """What is gone with the incarnation of the stream that a cut is of; None: it is the current one."""
    other = yield from origin.contradiction(incarnation)
    if other is None:
        return None
    cause = f"the stream was deleted and made again: the cut is of {other.planned}, and now there is {other.found}"
    return Doubt(cause, is_lost=True)


def end_lost(request: PlanRequest, head: StreamCut, start: Doubt | None) -> Steps[Doubt | None]:
    """Why nothing of a window is held: it ends in another incarnation of the stream. None: that is not known."""
    if not request.end_cut:
        return None
    lost = (yield from _doubt_of_incarnation(request.end_incarnation)) if request.end_incarnation else None
    if lost or start is None or not start.is_lost or start.seen is not None:
        return lost
    end = StreamCut.from_model(head.stream, request.end_cut)
    # it begins with the current incarnation: of that, all up to the end may have been truncated since
    is_gone = not (yield from infos(head.stream, list(end.offsets)))
    return start if is_gone or (yield from cuts.stranger(end, head)) else None


def is_beginning(head: StreamCut) -> bool:
    """Whether a stream with this head was never truncated: it starts with its first segments."""
    return all(segment.epoch == 0 and head.offsets[segment.id] == 0 for segment in head.segments)


def _gone_with_incarnation(
    request: PlanRequest, ended: Sequence[TailObservation], head: StreamCut, since: datetime
) -> Steps[Doubt | None]:
    """What is gone with an earlier incarnation of the stream that tail observations saw.

    None: nothing, as the current incarnation is older than the window, or nothing was written in the window.
    """
    made = yield from _made(head)
    told = retention_proof(map(witness_of_ended, ended), since, request.seen_until, timedelta(0))
    if told.is_quiet or (made is not None and made <= since):
        return None
    cause = (
        f"the stream was deleted and made again, with segments of {_when(made)}; an earlier one was seen at "
        f"{_at(ended[-1])}"
    )
    # a stream without events may have lost none; but a place in it that a cut names is gone
    return Doubt(cause, is_lost=told.shows_loss or bool(request.start_cut))


def _is_other_incarnation(seen: TailObservation, head: StreamCut) -> Steps[SourceReplaced | InvalidRequest | None]:
    """Why a tail observation is of another stream of this name; None: it is of this one."""
    tail = StreamCut.from_model(head.stream, seen.tail)
    if seen.incarnation:
        return (yield from origin.contradiction(seen.incarnation))
    try:
        yield from cuts.check({"seen": tail}, head)
    except InvalidRequest as error:
        return error
    return None


def _after(
    found: Sequence[TailObservation], refuted: Callable[[TailObservation], Steps[object]]
) -> Steps[Sequence[TailObservation]]:
    """The tail observations from the first one on that is not refuted. Then no later one is either."""
    first, last = 0, len(found)
    while first < last:
        middle = 0 if (first, last) == (0, len(found)) else (first + last) // 2
        if (yield from refuted(found[middle])):
            first = middle + 1
        else:
            last = middle
    return found[first:]


def _since_seen(
    request: PlanRequest, found: Sequence[TailObservation], head: StreamCut, since: datetime
) -> Steps[Doubt | None]:
    """What tail observations of the current incarnation, in order, prove of a window that begins at the head."""
    if request.end_cut and any(one.at <= since and one.tail == request.end_cut for one in found):
        return None  # nothing was written in the window
    tail = yield from cuts.tail(head.stream)
    held = yield from _after(found, lambda seen: _losses(seen, head, tail))
    gone = found[: len(found) - len(held)]
    # what was removed after the window's end need not be its own
    later = [one for one in found if request.end_cut and one.at > since and not follows(one.tail, request.end_cut)]
    inside = [one for one in gone if one not in later]
    witnesses = [
        *(yield from _witnesses(inside, head, tail, since, is_inside=True)),
        *(yield from _witnesses(gone[len(inside) :], head, tail, since, is_inside=False)),
        *(Witness(one, Fate.EMPTIED if _is_emptied(one, head) else Fate.HELD) for one in held),
    ]
    told = retention_proof(witnesses, since, later[0].at if later else _LAST, timedelta(0))
    if told.holds_all_since(since):
        return None
    if lost := told.lost_before or told.lost:
        return Doubt(_truncated(lost), is_lost=True, seen=StreamCut.from_model(head.stream, lost.tail))
    if told.lost_older:
        cause = f"what the stream held at {_at(told.lost_older)}, when it was seen, and all before that, was truncated"
        return Doubt(cause, is_lost=True)
    if not gone:
        return Doubt(f"the stream was truncated before it was first seen, at {_at(found[0])}: after the window's start")
    why = "or was nothing" if inside else "and the window need not reach so far"
    return Doubt(f"{_truncated(gone[0])}, {why}")


def _witnesses(
    found: Sequence[TailObservation], head: StreamCut, tail: StreamCut, since: datetime, *, is_inside: bool
) -> Steps[list[Witness[TailObservation]]]:
    """The fates of tail observations of which something is gone, up to the first that saw it.

    A segment that is gone as a whole may have ended where it was seen to end. Before the window, that is no proof. In
    and after it, it counts as a loss if the tail observation saw events in such a segment. Other losses count only up
    to the window's end.
    """
    witnesses: list[Witness[TailObservation]] = []
    for one in found:
        losses = yield from _losses(one, head, tail)
        is_known = is_inside and any(loss.end > loss.start for loss in losses)
        saw_events = one.at >= since and any(loss.start.parts[0] > 0 for loss in losses)
        witnesses.append(Witness(one, Fate.GONE if is_known or saw_events else Fate.UNCLEAR))
        if is_known or saw_events:
            break
    return witnesses


def _is_emptied(seen: TailObservation, head: StreamCut) -> bool:
    """Whether the last events that a tail observation saw in a segment were truncated, and all later ones are held."""
    ends = StreamCut.from_model(head.stream, seen.tail).offsets
    return any(0 < end <= head.offsets.get(key, 0) for key, end in ends.items())


def _losses(seen: TailObservation, head: StreamCut, tail: StreamCut) -> Steps[list[Loss]]:
    """What is gone that was written after a tail observation, from where it saw each segment end."""
    pieces = yield from pieces_between(StreamCut.from_model(head.stream, seen.tail), tail, head)
    return [piece.loss for piece in pieces if piece.loss]


def _truncated(seen: TailObservation) -> str:
    return f"what was written after {_at(seen)}, when the stream was seen, was truncated"


def _made_again(head: StreamCut, since: datetime) -> Steps[Doubt | None]:
    """A new stream numbers its segments from 0 on; a stream that was made again continues the old numbers."""
    if not min(segment.number for segment in head.segments):
        return None
    made = yield from _made(head)
    if made is not None and made <= since:
        return None
    return Doubt(f"the stream was deleted before, and made again at {_when(made)}: after the window's start")


def _made(head: StreamCut) -> Steps[datetime | None]:
    """When the oldest held segment was made: this incarnation of the stream is as old, or older."""
    found = yield from infos(head.stream, list(head.offsets))
    told = [info.created_ms for info in found.values() if info.created_ms is not None]
    try:
        return _EPOCH + timedelta(milliseconds=min(told)) if told else None
    except OverflowError:
        return None


def _when(made: datetime | None) -> str:
    return made.isoformat(timespec="milliseconds") if made else "an unknown time"


def _at(seen: TailObservation) -> str:
    return seen.at.isoformat(timespec="seconds")
