"""The rules about cuts: head, tail, and whether a cut can be read. One rule each, for every caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.backoff import Pause
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_TRIES = 5
_SCALING_SECONDS = 0.05
"""Between two looks at a stream that is being scaled, which takes some tenths of a second."""


def head(stream: str) -> Steps[StreamCut]:
    """The cut at the first event still held.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    return StreamCut(stream, (yield from ask(calls.head(stream))))


def tail(stream: str) -> Steps[StreamCut]:
    """A cut just after every event that was acknowledged before this rule began.

    Segments are asked one after the other: events acknowledged meanwhile may be inside. When the stream scales
    meanwhile, they are asked again: a cut names open segments where it can, for the end of one that retention has
    removed cannot be told from a place inside it any more. Never empty: see `sealed_end`.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    last: StreamCut | None = None
    for _ in range(_TRIES):
        current = yield from ask(calls.current_segments(stream))
        if not current:
            return (yield from sealed_end(stream))
        keys = [segment.segment_id for segment in current]
        found = yield from infos(stream, keys)
        if len(found) == len(keys):
            last = StreamCut(stream, {key: info.write_offset for key, info in found.items()})
            if not any(info.is_sealed for info in found.values()):
                return last
            yield Pause(_SCALING_SECONDS)
    if last is None:  # segments that are open and yet missing, again and again: the stream is being deleted
        raise SourceNotFound(stream)
    return last


def is_sealed(stream: str) -> Steps[bool]:
    """Whether the stream has ended."""
    return not (yield from ask(calls.current_segments(stream)))


def sealed_end(stream: str) -> Steps[StreamCut]:
    """The end of a sealed stream: the ends of the segments that nothing follows.

    Pravega's own answer is a cut without segments, which its clients cannot read back.
    """
    start = yield from ask(calls.head(stream))
    last = []
    for key in (yield from ask(calls.segments_between(stream, start, {}))):
        if not (yield from ask(calls.successors(stream, key))):
            last.append(key)  # noqa: PERF401 - a rule's questions cannot be asked in a comprehension
    found = yield from infos(stream, last)
    if not found or len(found) != len(last):
        raise SourceNotFound(stream)
    return StreamCut(stream, {key: info.write_offset for key, info in found.items()})


def check(named: Mapping[str, StreamCut], head: StreamCut) -> Steps[Mapping[int, SegmentInfo]]:
    """Whether cuts are places of their stream, past ones included: whole, of one moment each, and not ahead of it.

    Neither controller nor segment store does look.

    Args:
        named: the cuts by what messages call them: `start`, `end`.
        head: the stream's.

    Returns:
        The infos of the segments that they name; those that were truncated away are left out.

    Raises:
        InvalidRequest: one is not.
    """
    for name, cut in named.items():
        check_readable(name, cut)
    keys = sorted({key for cut in named.values() for key in cut.offsets})
    found = yield from infos(head.stream, keys)
    if unknown := (yield from _unknown([key for key in keys if key not in found], head)):
        raise InvalidRequest(f"{unknown}, or is the cut of another stream? {_ADVICE}")
    for name, cut in named.items():
        yield from covers(name, cut)
        if ahead := _ahead(cut, found):
            raise InvalidRequest(f"the {name} cut is ahead of the stream: {ahead}. {_ADVICE}")
    return found


_ADVICE = "Give cuts of the stream as it is now; what was before it is gone"


def stranger(cut: StreamCut, head: StreamCut) -> Steps[str]:
    """Why a cut can be no place that the stream of today ever had; empty: it can be one."""
    found = yield from infos(head.stream, list(cut.offsets))
    unknown = yield from _unknown([key for key in cut.offsets if key not in found], head)
    return unknown or _ahead(cut, found)


def _unknown(unseen: Sequence[int], head: StreamCut) -> Steps[str]:
    """Which of the segments that no store has was not the stream's before it was truncated; empty: none."""
    past = (yield from ask(calls.segments_between(head.stream, {}, head.offsets))) if unseen else ()
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


def check_readable(name: str, cut: StreamCut) -> None:
    """Whether a cut can be one end of a window, as far as it alone can tell.

    Raises:
        InvalidRequest: it names no segment, or holds the `-1` of a finished reader.
    """
    if not cut.offsets:
        raise InvalidRequest(f"the {name} cut of {cut.stream} names no segment: a sealed stream's tail is no place")
    for key, offset in cut.offsets.items():
        if offset < 0:
            raise InvalidRequest(
                f"the {name} cut holds offset {offset} for {Segment(cut.stream, key).name}: a reader group's "
                "position, not a place; take a cut from `latest` or from the journal"
            )


def covers(name: str, cut: StreamCut) -> Steps[None]:
    """Whether a cut names segments that own the whole key space, once.

    Raises:
        InvalidRequest: it does not, so events would be missed or doubled.
    """
    if not (yield from ask(calls.cut_covers(cut.stream, cut.offsets))):
        raise InvalidRequest(
            f"the {name} cut of {cut.stream} is partial: its segments do not own the whole key space; "
            "give every segment of one moment"
        )
