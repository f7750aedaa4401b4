"""Which life of a stream a plan was made of: when its segments were made, which never changes while they live.

A stream that is deleted and made again gets segments with other ids, as long as the cluster remembers it; one that was
wiped gives the same ids again, but to segments of another time. Readers may ask for it, and it costs no round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.errors import AccessError, OtherCluster, SourceNotFound
from airflow_provider_streams.model.plan import SourceRef
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.pieces import Piece
from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITNESSES = 8
"""So many segments are asked about before a plan is read; each is looked at again when it is."""


def identity(pieces: Iterable[Piece], end: StreamCut) -> Identity:
    """The segments that a plan reads, and when each was made; of a plan that reads nothing, those where it ends.

    A segment whose store does not tell is left out.
    """
    held = [piece for piece in pieces if piece.info is not None]
    ends = {segment.name for segment in end.segments}
    told = [piece for piece in held if piece.range.bytes] or [piece for piece in held if piece.range.shard in ends]
    return tuple((piece.range.shard, made) for piece in told if (made := _made(piece.info)))


def check(source: SourceRef) -> Steps[None]:
    """Whether the segments that a plan names are those that it was made of.

    Segments that retention has removed since, or a stream that is gone, tell nothing: reading tells what is lost.

    Raises:
        OtherCluster: they are not.
        SourceNotFound: there is not even such a scope.
    """
    if other := (yield from contradiction(source.identity)):
        raise other


def contradiction(identity: Identity) -> Steps[OtherCluster | None]:
    """What tells that segments of an identity are not those of their streams there now; None: nothing does."""
    streams: dict[str, dict[Segment, str]] = {}
    for name, made in identity:
        segment = Segment.parse(name)
        streams.setdefault(segment.stream, {})[segment] = made
    for stream, planned in streams.items():
        if other := (yield from _contradiction(stream, planned)):
            return other
    return None


def _contradiction(stream: str, planned: Mapping[Segment, str]) -> Steps[OtherCluster | None]:
    found = yield from infos(stream, _some([segment.id for segment in planned]))
    for segment, made in planned.items():
        if other := _difference(segment, made, found.get(segment.id)):
            return other
    return None if found else (yield from _of_history(stream, planned))


def check_segment(segment: Segment, made: str, info: SegmentInfo | None) -> None:
    """Whether a segment is the one that a plan was made of, as far as that can be told; `made` empty: it cannot.

    Raises:
        OtherCluster: it is not.
    """
    if other := _difference(segment, made, info):
        raise other


def _difference(segment: Segment, made: str, info: SegmentInfo | None) -> OtherCluster | None:
    now = _made(info)
    if not now or not made or now == made:
        return None
    return OtherCluster(segment.stream, f"its segment {_short(segment)} made at {made}", f"one made at {now}")


def _of_history(stream: str, planned: Mapping[Segment, str]) -> Steps[OtherCluster | None]:
    """Whether segments that no store has were the stream's: a new one of its name never had them."""
    if not (yield from ask(calls.stream_exists(stream))):
        yield from _of_scope(stream)
        return None
    head = yield from cuts.head(stream)
    past = yield from ask(calls.segments_between(stream, {}, head.offsets))
    if any(segment.id in past for segment in planned):
        return None
    first, made = next(iter(planned.items()))
    return OtherCluster(
        stream, f"its segment {_short(first)} made at {made}", "a stream of this name that never had it"
    )


def _of_scope(stream: str) -> Steps[None]:
    """Of a stream that is gone the read tells; but where not even its scope is, it is another cluster that answers.

    Raises:
        SourceNotFound: there is no such scope.
    """
    scope = stream.partition("/")[0]
    try:
        is_there = yield from ask(calls.scope_exists(scope))
    except AccessError:
        return  # to ask needs a permission of its own
    if not is_there:
        raise SourceNotFound(f"scope {scope}")


def look(stream: str) -> Steps[tuple[StreamCut, Identity]]:
    """The tail, and when its segments were made.

    Raises:
        SourceNotFound: no such stream or scope.
    """
    tail = yield from cuts.tail(stream)
    found = yield from infos(stream, list(tail.offsets))
    told = [(segment.name, _made(found.get(segment.id))) for segment in tail.segments]
    return tail, tuple((name, made) for name, made in told if made)


def _some(keys: list[int]) -> list[int]:
    """The first, the last, and some between them."""
    step = max(len(keys) // _WITNESSES, 1)
    return sorted({*keys[::step], keys[-1]})


def _made(info: SegmentInfo | None) -> str:
    if info is None or info.created_ms is None:
        return ""
    try:
        return (_EPOCH + timedelta(milliseconds=info.created_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{info.created_ms} ms"  # a store of its own mind: any text does that is always the same


def _short(segment: Segment) -> str:
    return segment.name.rpartition("/")[2]
