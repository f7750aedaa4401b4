"""Where a stream starts, which segments it has, where they follow each other, and who serves them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from airflow_provider_streams.systems.pravega import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.calls.call import Call, KeyedSegment, keyed_segment, stream_name, value


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

    The controller checks little: unknown, partial and truncated cuts are answered as if they were right, and
    reversed ones with an error that says nothing.
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
        lambda a: tuple(sorted(entry.segment.segment.segment_id for entry in a.entries)),
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
    return Call("getURI", stream, _segment(stream, segment_id), pb.Node, lambda a: (a.host, a.port))


def delegation_token(stream: str, access: Access = Access.READ) -> Call[str]:
    """What segment stores want to see; empty when authorization is off."""
    message = stream_name(stream, pb.ACCESS_READ if access is Access.READ else pb.ACCESS_READ_WRITE)
    return Call("getDelegationToken", stream, message, pb.TokenAnswer, lambda a: a.token)


def _segment(stream: str, segment_id: int) -> pb.SegmentKey:
    return pb.SegmentKey(stream=stream_name(stream), segment_id=segment_id)


def _offsets(answer: pb.HeadAnswer) -> dict[int, int]:
    return dict(sorted((p.segment.segment_id, p.offset) for p in answer.positions))


def _ids(answer: pb.SegmentKeys) -> tuple[int, ...]:
    return tuple(sorted(segment.segment_id for segment in answer.segments))


def _keyed(answer: pb.OwnedRanges) -> tuple[KeyedSegment, ...]:
    return tuple(sorted(map(keyed_segment, answer.ranges)))
