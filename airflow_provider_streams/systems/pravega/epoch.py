"""The rolling epoch: a boundary made in the stream itself, where all segments end and others take over their keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.pravega import calls, scaling
from airflow_provider_streams.systems.pravega.calls import KeyedSegment
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.scaling import Choice, Order
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_TRIES = 5


def roll(stream: str, segments: Collection[int]) -> Steps[StreamCut]:
    """End these segments, each replaced by one that owns the same keys; the cut at their ends, which never move again.

    Repeating it with the same segments does no harm and gives the same cut, whoever ended them meanwhile.

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
    return (yield from _ends(stream, segments))


def renewal(segments: Collection[int]) -> Choice:
    """Those of the segments that are still open, one to one."""

    def choose(current: Sequence[KeyedSegment]) -> Order:
        chosen = [one for one in current if one.segment_id in segments]
        return Order(tuple(one.segment_id for one in chosen), tuple((one.low, one.high) for one in chosen))

    return choose


def _ends(stream: str, segments: Collection[int]) -> Steps[StreamCut]:
    found = yield from infos(stream, sorted(segments))
    for key in segments:
        if key not in found or not found[key].is_sealed:
            state = "still open" if key in found else "truncated away, or the stream was deleted and made again"
            raise InvalidRequest(f"{Segment(stream, key).name} was to be ended, but it is {state}")
    return StreamCut(stream, {key: info.write_offset for key, info in found.items()})
