"""The rolling epoch: a boundary made in the stream itself, where all segments end and others take over their keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.pravega import calls, scaling
from airflow_provider_streams.systems.pravega.calls import KeyedSegment
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.scaling import Choice, Order
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place where all segments of a stream end, and others take over their keys."""

    ends: StreamCut
    """The segments before it, which are sealed: their ends never move again."""
    cut: StreamCut
    """The boundary as windows name it: where the segments after it start, if that can be said, else `ends`."""


def roll(stream: str, segments: Collection[int]) -> Steps[Boundary]:
    """End these segments, each replaced by one that owns the same keys.

    Repeating it with the same segments does no harm and gives the same boundary, whoever ended them meanwhile.

    Raises:
        InvalidRequest: a segment is not held any more, or not sealed although it is not open.
        SystemUnavailable: others scale the stream all the time, or the scaling does not end.
        SourceNotFound: no such stream or scope.
    """
    for attempt in range(_TRIES):
        current = yield from ask(calls.current_segments(stream))
        if not any(one.segment_id in segments for one in current):
            break
        try:
            yield from scaling.scale(stream, renewal(segments))
        except SystemUnavailable:
            # its auto-scaling was quicker with some of them: look again at what is left
            if attempt == _TRIES - 1:
                raise
    ends = yield from _ends(stream, segments)
    return Boundary(ends, (yield from _starts_after(ends)) or ends)


def renewal(segments: Collection[int]) -> Choice:
    """Those of the segments that are still open, one to one."""

    def choose(current: Sequence[KeyedSegment]) -> Order:
        chosen = [one for one in current if one.segment_id in segments]
        return Order(tuple(one.segment_id for one in chosen), tuple((one.low, one.high) for one in chosen))

    return choose


def _starts_after(ends: StreamCut) -> Steps[StreamCut | None]:
    """The starts of the segments that follow the sealed ones, if these cover all keys, once.

    Both name the same place, but when retention has removed the sealed segments, nobody can tell their ends from places
    inside them.
    """
    after: set[int] = set()
    for key in ends.offsets:
        after.update((yield from ask(calls.successors(ends.stream, key))))
    starts = StreamCut(ends.stream, dict.fromkeys(after, 0))
    return starts if after and (yield from ask(calls.cut_covers(ends.stream, starts.offsets))) else None


def _ends(stream: str, segments: Collection[int]) -> Steps[StreamCut]:
    found = yield from infos(stream, sorted(segments))
    for key in segments:
        if key not in found or not found[key].is_sealed:
            state = "still open" if key in found else "truncated away, or the stream was deleted and made again"
            raise InvalidRequest(f"{Segment(stream, key).name} was to be ended, but it is {state}")
    return StreamCut(stream, {key: info.write_offset for key, info in found.items()})
