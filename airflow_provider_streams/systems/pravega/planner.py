"""From a window to a plan: stricter than the Java client, which reads on over cuts that cannot be right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import (
    UNPROVEN,
    Estimate,
    Loss,
    Plan,
    PlanRequest,
    Range,
    SourceRef,
    Span,
    Split,
)
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pravega import beginning, cuts, origin
from airflow_provider_streams.systems.pravega.beginning import Doubt
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.pieces import Piece, behind_gone, pieces_between, trimmed
from airflow_provider_streams.systems.pravega.steps import Steps
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_HELD = ("ok", "empty")
_FIRST = Position.of(0)


def plan(request: PlanRequest, *, stream: str, cluster: str) -> Steps[Plan]:
    """Resolve a request to a plan; asks only, and writes nothing.

    Raises:
        InvalidRequest: a basis that Pravega cannot serve, or cuts that are unknown, partial, reversed or ahead of
            the stream.
        WindowNotReady: the window has not ended yet (basis `chained`).
        StartTrimmed: events of the window are gone, and that is not accepted.
        StartUnproven: events of the window may be gone, and that is not accepted.
        SourceNotFound: no such stream or scope.
        UnclearAnswer: the controller fails.
    """
    check_basis(request, datetime.now(UTC))
    head = yield from cuts.head(stream)
    doubt = yield from beginning.doubt(request, head)
    if lost := (yield from beginning.end_lost(request, head, doubt)):
        return (yield from _of_another_life(request, head, lost, cluster))
    end = _given(stream, request.end_cut) or (yield from cuts.tail(stream))
    start = _start(request, head, end, doubt)
    pieces = yield from pieces_between(start, end, head)
    tail = yield from _tail(end, pieces)
    observed_at = datetime.now(UTC)
    yield from _check_held(request, start, pieces, head, doubt)
    ranges = _judged([piece.range for piece in pieces], head, doubt)
    return Plan(
        reader=request.reader,
        source=SourceRef("pravega", cluster, (stream,), origin.identity(pieces, end)),
        window=request.window,
        basis=request.basis,
        filter=None,
        start_cut=start.to_model(),
        end_cut=end.to_model(),
        ranges=ranges,
        splits=tuple(splits(ranges)),
        estimate=Estimate(sum(one.bytes for one in ranges)),
        observed_at=observed_at,
        head=head.to_model(),
        losses=tuple(_losses(pieces, doubt)),
        tail=tail.to_model(),
    )


def _of_another_life(request: PlanRequest, head: StreamCut, lost: Doubt, cluster: str) -> Steps[Plan]:
    """The plan of a window that ends in a life of the stream that is gone: it reads nothing, whatever is there now."""
    _check_accepted(request, head, lost)
    tail, identity = yield from origin.look(head.stream)
    end = request.end_cut or Cut({})
    start = request.start_cut or end
    ends = {shard: end.get(shard, position) for shard, position in {**start, **end}.items()}
    verdict = f"lost: {lost.cause}"
    return Plan(
        reader=request.reader,
        source=SourceRef("pravega", cluster, (head.stream,), identity),
        window=request.window,
        basis=request.basis,
        filter=None,
        start_cut=start,
        end_cut=end,
        ranges=tuple(Range(shard, at, at, bytes=0, entries=0, verdict=verdict) for shard, at in ends.items()),
        splits=(),
        estimate=Estimate(0),
        observed_at=datetime.now(UTC),
        head=head.to_model(),
        losses=tuple(Loss(shard, min(start.get(shard, _FIRST), at), at, lost.cause) for shard, at in ends.items()),
        tail=tail.to_model(),
    )


def _start(request: PlanRequest, head: StreamCut, end: StreamCut, doubt: Doubt | None) -> StreamCut:
    """Where the window starts: of one whose beginning is lost, where that was; if that was another stream, the head.

    Where this one was truncated beyond the window's end, there.
    """
    if doubt and doubt.is_lost:
        first = {key: min(offset, end.offsets.get(key, offset)) for key, offset in head.offsets.items()}
        return doubt.seen or StreamCut(head.stream, first)
    return _given(head.stream, request.start_cut) or head


def _tail(end: StreamCut, pieces: Sequence[Piece]) -> Steps[StreamCut]:
    """The stream's; not asked for where the segments at the window's end are still open, and so are all there are."""
    known = {piece.range.shard: piece.info for piece in pieces}
    infos = {segment.id: known[segment.name] for segment in end.segments}
    offsets = {key: info.write_offset for key, info in infos.items() if info is not None and not info.is_sealed}
    return StreamCut(end.stream, offsets) if offsets.keys() == infos.keys() else (yield from cuts.tail(end.stream))


def _check_held(
    request: PlanRequest, start: StreamCut, pieces: Sequence[Piece], head: StreamCut, doubt: Doubt | None
) -> Steps[None]:
    if request.on_loss == "fail" and any(piece.loss is not None for piece in pieces):
        raise trimmed(head.stream, pieces, (yield from _hint(start, pieces)))
    if doubt and doubt.is_lost:
        _check_accepted(request, head, doubt)
    if doubt and not doubt.is_lost and request.on_unproven == "fail":
        raise StartUnproven(head.stream, request.window, doubt.cause)


def _check_accepted(request: PlanRequest, head: StreamCut, lost: Doubt) -> None:
    if request.on_loss == "fail":
        raise StartTrimmed(head.stream, request.window.start.isoformat(), head.to_model(), lost.cause)


def _judged(ranges: Sequence[Range], head: StreamCut, doubt: Doubt | None) -> tuple[Range, ...]:
    """The ranges, with a doubt as the verdict of those at the head: what was before may have been the window's."""
    if doubt is None:
        return tuple(ranges)
    firsts = {segment.name for segment in head.segments}
    verdict = f"{'lost' if doubt.is_lost else UNPROVEN}: {doubt.cause}"
    return tuple(
        replace(one, verdict=verdict) if one.shard in firsts and one.verdict in _HELD else one for one in ranges
    )


def _losses(pieces: Sequence[Piece], doubt: Doubt | None) -> Iterator[Loss]:
    """What is gone of each segment; of another life of the stream nobody knows how much it was."""
    if doubt and doubt.is_lost and doubt.seen is None:
        first = pieces[0].range
        yield Loss(first.shard, first.start, first.start, doubt.cause)
    yield from (piece.loss for piece in pieces if piece.loss is not None)


def _hint(start: StreamCut, pieces: Sequence[Piece]) -> Steps[str]:
    behind = yield from behind_gone(start, pieces)
    if behind is None:
        return ""
    return f"if it starts at their very end, nothing is: {behind.to_model()} is that place, and held"


def check_basis(request: PlanRequest, now: datetime) -> None:
    """Whether Pravega can serve a basis with the cuts given.

    Raises:
        InvalidRequest: it cannot; the message says which basis can.
        WindowNotReady: it can, later.
    """
    if request.basis == "publish":
        raise InvalidRequest(
            f"{request.source}: basis 'publish' cannot be read: Pravega stores no time with an event, and keeps no "
            "index from time to place. Use basis='append' with recorded cuts, 'chained', or your own cuts"
        )
    starts_anywhere = request.start_cut is not None or request.basis == "event"  # an event window may start at the head
    if request.basis in ("append", "event") and (request.end_cut is None or not starts_anywhere):
        raise InvalidRequest(
            f"{request.source}: basis {request.basis!r} needs both cuts of the window: record cuts on a clock, "
            "or use basis='chained' or your own cuts"
        )
    if request.basis == "chained" and request.end_cut is None and now < request.window.end:
        raise WindowNotReady(request.source, request.window, "it has not ended yet")


def _given(stream: str, cut: Cut | None) -> StreamCut | None:
    """A cut from outside; one without segments is `unbounded`, the head or the tail."""
    return StreamCut.from_model(stream, cut) if cut else None


def splits(ranges: tuple[Range, ...]) -> Iterator[Split]:
    """One split for each range that holds something: a place inside a range is known to be an event's only there."""
    filled = [one for one in ranges if one.bytes]
    for index, one in enumerate(filled):
        segment = Segment.parse(one.shard)
        span = Span(segment.id, one.start.parts[0], one.end.parts[0])
        yield Split(index, one.shard, one.start, one.end, one.bytes, (span,))
