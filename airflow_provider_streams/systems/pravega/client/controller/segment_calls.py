"""The controller's calls about segments: those of a stream, their successors, stores and tokens."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_streams.errors import (
    ProtocolError,
)
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller.call import (
    Call,
    KeyedSegment,
    keyed_segment,
    segment_key,
    stream_name,
)

_LAST_PORT = (1 << 16) - 1


def head(stream: str) -> Call[dict[int, int]]:
    """The first position held of each segment at the stream's head."""
    message = pb.HeadQuery(stream=stream_name(stream, pb.ACCESS_NONE))
    return Call("getSegments", stream, message, pb.HeadAnswer, _offsets)


def _offsets(answer: pb.HeadAnswer) -> dict[int, int]:
    found = {segment_key(place.segment): place.offset for place in answer.positions}
    if any(offset < 0 for offset in found.values()):
        raise ProtocolError("the controller names a place before the first byte of a segment")
    return dict(sorted(found.items()))


def current_segments(stream: str) -> Call[tuple[KeyedSegment, ...]]:
    """The open segments; none: the stream is sealed."""
    return Call("getCurrentSegments", stream, stream_name(stream, pb.ACCESS_NONE), pb.OwnedRanges, _keyed)


def epoch_segments(stream: str, epoch: int) -> Call[tuple[KeyedSegment, ...]]:
    """The segments of an epoch; needs write permission."""
    message = pb.EpochQuery(stream=stream_name(stream), epoch=epoch)
    return Call("getEpochSegments", stream, message, pb.OwnedRanges, _keyed)


def _keyed(answer: pb.OwnedRanges) -> tuple[KeyedSegment, ...]:
    return tuple(sorted(map(keyed_segment, answer.ranges)))


def segments_between(stream: str, start: Mapping[int, int], end: Mapping[int, int]) -> Call[tuple[int, ...]]:
    """Every segment between two cuts, ascending: predecessors come before successors. No end: the stream's end.

    The controller checks little. It accepts partial and truncated cuts, and fails without a cause for reversed,
    crossing or unknown ones.
    """
    message = pb.CutPair(stream=stream_name(stream), start=start, end=end)
    return Call(
        "getSegmentsBetween",
        stream,
        message,
        pb.SegmentKeys,
        lambda a: tuple(sorted({segment_key(one) for one in a.segments})),
    )


def successors(stream: str, segment_id: int) -> Call[tuple[KeyedSegment, ...]]:
    """The segments that follow one, with their keys; none: it is open, or the stream was sealed there."""
    return Call(
        "getSegmentsImmediatelyFollowing",
        stream,
        _segment(stream, segment_id),
        pb.Successors,
        lambda a: tuple(sorted(keyed_segment(entry.segment) for entry in a.entries)),
    )


def segment_open(stream: str, segment_id: int) -> Call[bool]:
    """Whether a segment is open; an unknown one is not."""
    return Call("isSegmentValid", stream, _segment(stream, segment_id), pb.BoolAnswer, lambda a: a.value)


def cut_covers(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Whether a cut's segments own the whole key space, once; says nothing about its offsets."""
    message = pb.CutMessage(stream=stream_name(stream), offsets=offsets)
    return Call("isStreamCutValid", stream, message, pb.BoolAnswer, lambda a: a.value)


def store_of(stream: str, segment_id: int) -> Call[tuple[str, int]]:
    """Host and port of the store that serves a segment, even if there is no such segment."""
    return Call("getURI", stream, _segment(stream, segment_id), pb.Node, _address)


def _address(answer: pb.Node) -> tuple[str, int]:
    if not answer.host or not 0 < answer.port <= _LAST_PORT:
        raise ProtocolError(f"the controller names no segment store's address: {answer.host[:80]!r}:{answer.port}")
    return answer.host, answer.port


def delegation_token(stream: str, access: pb.Access = pb.ACCESS_READ) -> Call[str]:
    """The token that segment stores check; empty when authorization is off."""
    return Call("getDelegationToken", stream, stream_name(stream, access), pb.TokenAnswer, lambda a: a.token)


def _segment(stream: str, segment_id: int) -> pb.SegmentKey:
    return pb.SegmentKey(stream=stream_name(stream), segment_id=segment_id)
