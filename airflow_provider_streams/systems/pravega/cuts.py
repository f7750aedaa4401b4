"""The rules about cuts: head, tail, and whether a cut can be read. One rule each, for every caller."""

from __future__ import annotations

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_TRIES = 5


def head(stream: str) -> Steps[StreamCut]:
    """The cut at the first event still held.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    return StreamCut(stream, (yield from ask(calls.head(stream))))


def tail(stream: str) -> Steps[StreamCut]:
    """A cut just after every event that was acknowledged before this rule began.

    Segments are asked one after the other: events acknowledged meanwhile may be inside. When the stream scales
    meanwhile, the cut names the segments of before, whose ends are final. Never empty: see `sealed_end`.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    for _ in range(_TRIES):
        current = yield from ask(calls.current_segments(stream))
        if not current:
            return (yield from sealed_end(stream))
        keys = [segment.segment_id for segment in current]
        found = yield from infos(stream, keys)
        if len(found) == len(keys):
            return StreamCut(stream, {key: info.write_offset for key, info in found.items()})
    # segments that are open and yet missing, again and again: the stream is being deleted
    raise SourceNotFound(stream)


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
