"""Which incarnation of a stream a plan was made of: the times when its segments were made, which never change.

A stream that is deleted and made again gets segments with other ids, as long as the cluster remembers it. A stream that
was wiped gets the same ids again, but segments of another time. Readers may ask for these times, without a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.errors import AccessError, SourceNotFound, SourceReplaced
from airflow_provider_streams.model.plan.plan import SourceRef
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.planning.segment_ranges import Piece

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITNESSES = 8
"""Segments that are checked before a plan is read. The reader of each segment checks it again."""


def incarnation(pieces: Iterable[Piece], end: StreamCut) -> Incarnation:
    """The segments that a plan reads, or else those where it ends, and when each was made, if its store tells."""
    held = [piece for piece in pieces if piece.info is not None]
    ends = {segment.name for segment in end.segments}
    told = [piece for piece in held if piece.range.bytes] or [piece for piece in held if piece.range.shard in ends]
    return tuple((piece.range.shard, made) for piece in told if (made := _made(piece.info)))


def check(source: SourceRef) -> Steps[None]:
    """Refuse a plan that was made of other segments. Removed segments and deleted streams pass: the read reports them.

    Raises:
        SourceReplaced: the segments are others.
        SourceNotFound: there is not even such a scope.
    """
    if other := (yield from contradiction(source.incarnation)):
        raise other


def contradiction(incarnation: Incarnation) -> Steps[SourceReplaced | None]:
    """Why an incarnation is not the current one of its streams; None: nothing contradicts it."""
    streams: dict[str, dict[Segment, str]] = {}
    for name, made in incarnation:
        segment = Segment.parse(name)
        streams.setdefault(segment.stream, {})[segment] = made
    for stream, planned in streams.items():
        if other := (yield from _contradiction(stream, planned)):
            return other
    return None


def _contradiction(stream: str, planned: Mapping[Segment, str]) -> Steps[SourceReplaced | None]:
    keys = [segment.id for segment in planned]
    some = {*keys[:: max(len(keys) // _WITNESSES, 1)], keys[-1]}
    found = yield from infos(stream, sorted(some))
    for segment, made in planned.items():
        if other := difference(segment, made, found.get(segment.id)):
            return other
    return None if found else (yield from _of_history(stream, planned))


def difference(segment: Segment, made: str, info: SegmentInfo | None) -> SourceReplaced | None:
    """Why a segment is not the one that was made at `made` (empty: unknown); None: nothing contradicts it."""
    now = _made(info)
    if not now or not made or now == made:
        return None
    return SourceReplaced(segment.stream, f"its segment {segment.short_name} made at {made}", f"one made at {now}")


def _of_history(stream: str, planned: Mapping[Segment, str]) -> Steps[SourceReplaced | None]:
    """Whether the stream ever had segments that no store has: a new stream of this name never had them."""
    if not (yield from stream_calls.stream_exists(stream)):
        yield from _check_scope(stream)
        return None
    past = yield from cuts.before((yield from cuts.head(stream)))
    if any(segment.id in past for segment in planned):
        return None
    first, made = next(iter(planned.items()))
    return SourceReplaced(
        stream, f"its segment {first.short_name} made at {made}", "a stream of this name that never had it"
    )


def _check_scope(stream: str) -> Steps[None]:
    """The read reports a deleted stream; but without its scope, another cluster answers."""
    scope = stream.partition("/")[0]
    try:
        is_there = yield from stream_calls.scope_exists(scope)
    except (AccessError, SourceNotFound):
        return  # to ask needs a permission of its own
    if not is_there:
        raise SourceNotFound(f"scope {scope}")


def observe_tail(stream: str) -> Steps[tuple[StreamCut, Incarnation]]:
    """The tail, and when its segments were made."""
    tail = yield from cuts.tail(stream)
    found = yield from infos(stream, list(tail.offsets))
    told = [(segment.name, _made(found.get(segment.id))) for segment in tail.segments]
    return tail, tuple((name, made) for name, made in told if made)


def _made(info: SegmentInfo | None) -> str:
    if info is None or info.created_ms is None:
        return ""
    try:
        return (_EPOCH + timedelta(milliseconds=info.created_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{info.created_ms} ms"  # no time, but it can be compared
