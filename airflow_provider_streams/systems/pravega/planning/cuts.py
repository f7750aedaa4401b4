"""The rules about cuts: head, tail, and whether a cut can be read. One rule each, for every caller.

Each of them raises `SourceNotFound` if there is no such stream or scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, chosen, infos
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut

_TRIES = 5
_SCALING_SECONDS = 0.05
"""Between two looks at a stream that scales, which takes some tenths of a second."""
_ADVICE = "Give cuts of the stream as it is now; what was before it is gone"


def head(stream: str) -> Steps[StreamCut]:
    """The cut at the first event still held."""
    return StreamCut(stream, (yield from segment_calls.head(stream)))


def before(head: StreamCut) -> Steps[tuple[int, ...]]:
    """The segments that the stream has had up to its head."""
    return (yield from segment_calls.segments_between(head.stream, {}, head.offsets))


def tail(stream: str) -> Steps[StreamCut]:
    """A cut just after every event that was acknowledged before this rule began; never empty.

    It may also be after events that are acknowledged meanwhile. If the stream scales meanwhile, the rule starts again:
    a cut names open segments if possible, as the end of a removed segment looks like a place inside it.
    """
    last: StreamCut | None = None
    for _ in range(_TRIES):
        current = yield from segment_calls.current_segments(stream)
        if not current:
            return (yield from sealed_end(stream))
        found = yield from infos(stream, [segment.segment_id for segment in current])
        if len(found) == len(current):
            last = _ends(stream, found)
            if not any(info.is_sealed for info in found.values()):
                return last
            yield Pause(_SCALING_SECONDS)
    if last is None:  # segments that are open and yet missing, again and again: the stream is being deleted
        raise SourceNotFound(stream)
    return last


def is_sealed(stream: str) -> Steps[bool]:
    """Whether the stream has ended."""
    return not (yield from segment_calls.current_segments(stream))


def sealed_end(stream: str) -> Steps[StreamCut]:
    """The end of a sealed stream: the ends of the segments without successors.

    Pravega itself answers with a cut without segments, which its clients cannot read back.
    """
    start = yield from segment_calls.head(stream)
    keys = yield from segment_calls.segments_between(stream, start, {})
    last = yield from chosen(keys, lambda key: _is_last(stream, key))
    found = yield from infos(stream, last)
    if not found or len(found) != len(last):
        raise SourceNotFound(stream)
    return _ends(stream, found)


def _is_last(stream: str, segment_id: int) -> Steps[bool]:
    return not (yield from segment_calls.successors(stream, segment_id))


def _ends(stream: str, found: Mapping[int, SegmentInfo]) -> StreamCut:
    return StreamCut(stream, {key: info.write_offset for key, info in found.items()})


def check(named: Mapping[str, StreamCut], head: StreamCut) -> Steps[Mapping[int, SegmentInfo]]:
    """Refuse cuts that are no places of their stream, past ones included: partial ones, or ones ahead of its tail.

    Neither the controller nor the segment stores check this.

    Args:
        named: the cuts by their names in messages: `start`, `end`.
        head: the stream's.

    Returns:
        The infos of the segments that they name, without those that were truncated away.

    Raises:
        InvalidRequest: one is no place.
    """
    for name, cut in named.items():
        _check_readable(name, cut)
    keys = sorted({key for cut in named.values() for key in cut.offsets})
    found = yield from infos(head.stream, keys)
    if unknown := (yield from _unknown([key for key in keys if key not in found], head)):
        raise InvalidRequest(f"{unknown}, or is the cut of another stream? {_ADVICE}")
    for name, cut in named.items():
        if not (yield from segment_calls.cut_covers(cut.stream, cut.offsets)):
            raise InvalidRequest(
                f"the {name} cut of {cut.stream} is partial: its segments do not own the whole key space; "
                "give every segment of one moment"
            )
        if ahead := _ahead(cut, found):
            raise InvalidRequest(f"the {name} cut is ahead of the stream: {ahead}. {_ADVICE}")
    return found


def stranger(cut: StreamCut, head: StreamCut) -> Steps[str]:
    """Why the stream's current incarnation never had a cut; empty: it may have had it."""
    found = yield from infos(head.stream, list(cut.offsets))
    unknown = yield from _unknown([key for key in cut.offsets if key not in found], head)
    return unknown or _ahead(cut, found)


def _unknown(unseen: Sequence[int], head: StreamCut) -> Steps[str]:
    """Why one of the segments that no store has is not the stream's; empty: all may have been."""
    past = (yield from before(head)) if unseen else ()
    for key in unseen:
        if key not in past:
            name = Segment(head.stream, key).name
            return f"{name}, which a cut names, is no segment of this stream; was the stream deleted and made again"
    return ""


def _ahead(cut: StreamCut, found: Mapping[int, SegmentInfo]) -> str:
    for key, offset in cut.offsets.items():
        if key in found and offset > found[key].write_offset:
            name, end = Segment(cut.stream, key).name, found[key].write_offset
            return f"{name} ends at {end}, the cut says {offset}; was the stream deleted and made again?"
    return ""


def _check_readable(name: str, cut: StreamCut) -> None:
    if not cut.offsets:
        raise InvalidRequest(f"the {name} cut of {cut.stream} names no segment: a sealed stream's tail is no place")
    for key, offset in cut.offsets.items():
        if offset < 0:
            raise InvalidRequest(
                f"the {name} cut holds offset {offset} for {Segment(cut.stream, key).name}: a reader group's "
                "position, not a place; take a cut from `latest` or from the journal"
            )
