"""Where a stream starts, which segments it has, where they follow each other, and who serves them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import (
    Call,
    KeyedSegment,
    keyed_segment,
    segment_key,
    stream_name,
    value,
)

_LAST_PORT = (1 << 16) - 1


class Access(enum.IntEnum):
    """What a delegation token is for."""

    READ = pb.ACCESS_READ
    READ_WRITE = pb.ACCESS_READ_WRITE


def head(stream: str) -> Call[dict[int, int]]:
    """The first position held of each segment at the stream's head."""
    message = pb.HeadQuery(stream=stream_name(stream, pb.ACCESS_NONE))
    return Call("getSegments", stream, message, pb.HeadAnswer, _offsets)


def current_segments(stream: str) -> Call[tuple[KeyedSegment, ...]]:
    """The segments that are written to now; none: the stream is sealed."""
    return Call("getCurrentSegments", stream, stream_name(stream, pb.ACCESS_NONE), pb.OwnedRanges, _keyed)


def epoch_segments(stream: str, epoch: int) -> Call[tuple[KeyedSegment, ...]]:
    """The segments of an epoch; needs write permission."""
    message = pb.EpochQuery(stream=stream_name(stream), epoch=epoch)
    return Call("getEpochSegments", stream, message, pb.OwnedRanges, _keyed)


def segments_between(stream: str, start: Mapping[int, int], end: Mapping[int, int]) -> Call[tuple[int, ...]]:
    """Every segment between two cuts, ascending: predecessors come before successors. No end: the stream's end.

    The controller checks little: partial and truncated cuts are answered as if they were right, and reversed, crossing
    or unknown ones with an error that says nothing.
    """
    message = pb.CutPair(stream=stream_name(stream), start=start, end=end)
    return Call("getSegmentsBetween", stream, message, pb.SegmentKeys, _ids)


def successors(stream: str, segment_id: int) -> Call[tuple[int, ...]]:
    """The segments that follow one; none: it is open, or the stream was sealed there."""
    return Call(
        "getSegmentsImmediatelyFollowing",
        stream,
        _segment(stream, segment_id),
        pb.Successors,
        lambda a: tuple(sorted(segment_key(entry.segment.segment) for entry in a.entries)),
    )


def owners_after(stream: str, segment_id: int) -> Call[tuple[KeyedSegment, ...]]:
    """As `successors`, with the keys that they own."""
    return Call(
        "getSegmentsImmediatelyFollowing",
        stream,
        _segment(stream, segment_id),
        pb.Successors,
        lambda a: tuple(sorted(keyed_segment(entry.segment) for entry in a.entries)),
    )


def segment_open(stream: str, segment_id: int) -> Call[bool]:
    """Whether a segment is still written to; an unknown one is not."""
    return Call("isSegmentValid", stream, _segment(stream, segment_id), pb.BoolAnswer, value)


def cut_covers(stream: str, offsets: Mapping[int, int]) -> Call[bool]:
    """Whether a cut's segments own the whole key space, once; says nothing about its offsets."""
    message = pb.CutMessage(stream=stream_name(stream), offsets=offsets)
    return Call("isStreamCutValid", stream, message, pb.BoolAnswer, value)


def store_of(stream: str, segment_id: int) -> Call[tuple[str, int]]:
    """Host and port of the store that serves a segment; answers for segments that do not exist, too."""
    return Call("getURI", stream, _segment(stream, segment_id), pb.Node, _address)


def delegation_token(stream: str, access: Access = Access.READ) -> Call[str]:
    """What segment stores want to see; empty when authorization is off."""
    message = stream_name(stream, pb.ACCESS_READ if access is Access.READ else pb.ACCESS_READ_WRITE)
    return Call("getDelegationToken", stream, message, pb.TokenAnswer, lambda a: a.token)


def _segment(stream: str, segment_id: int) -> pb.SegmentKey:
    return pb.SegmentKey(stream=stream_name(stream), segment_id=segment_id)


def _address(answer: pb.Node) -> tuple[str, int]:
    if not answer.host or not 0 < answer.port <= _LAST_PORT:
        raise ProtocolError(f"the controller names no segment store's address: {answer.host[:80]!r}:{answer.port}")
    return answer.host, answer.port


def _offsets(answer: pb.HeadAnswer) -> dict[int, int]:
    found = {segment_key(place.segment): place.offset for place in answer.positions}
    if any(offset < 0 for offset in found.values()):
        raise ProtocolError("the controller names a place before the first byte of a segment")
    return dict(sorted(found.items()))


def _ids(answer: pb.SegmentKeys) -> tuple[int, ...]:
    return tuple(sorted({segment_key(segment) for segment in answer.segments}))


def _keyed(answer: pb.OwnedRanges) -> tuple[KeyedSegment, ...]:
    return tuple(sorted(map(keyed_segment, answer.ranges)))
