"""From a window to a plan: stricter than the Java client, which reads on over cuts that cannot be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven, WindowNotReady
from airflow_provider_streams.model.plan.plan import (
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
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata import incarnation as origin
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts, start_verification
from airflow_provider_streams.systems.pravega.planning.segment_ranges import (
    Piece,
    cut_after_removed,
    pieces_between,
    trimmed,
)
from airflow_provider_streams.systems.pravega.planning.start_verification import Doubt

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
        UnknownServerError: the controller fails.
    """
    check_basis(request, datetime.now(UTC))
    head = yield from cuts.head(stream)
    if _holds_nothing(request):
        return (yield from _without_events(request, head, cluster))
    doubt = yield from start_verification.doubt(request, head)
    if lost := (yield from start_verification.end_lost(request, head, doubt)):
        _check_accepted(request, head, lost)
        return (yield from _without_events(request, head, cluster, lost))
    end = _given(stream, request.end_cut) or (yield from cuts.tail(stream))
    start = yield from _start(request, head, end, doubt)
    pieces = yield from pieces_between(start, end, head)
    made = _plan(
        request,
        SourceRef("pravega", cluster, (stream,), origin.incarnation(pieces, end)),
        start.to_model(),
        end.to_model(),
        _judged((piece.range for piece in pieces), (head, start), doubt),
        losses=tuple(_losses(pieces, doubt)),
        head=head,
        tail=(yield from _tail(end, pieces)),
    )
    yield from _check_held(request, start, pieces, head, doubt)
    return made


def _plan(
    request: PlanRequest,
    source: SourceRef,
    start: Cut,
    end: Cut,
    ranges: tuple[Range, ...],
    *,
    losses: tuple[Loss, ...],
    head: StreamCut,
    tail: StreamCut,
) -> Plan:
    return Plan(
        reader=request.reader,
        source=source,
        window=request.window,
        basis=request.basis,
        filter=None,
        start_cut=start,
        end_cut=end,
        ranges=ranges,
        splits=tuple(splits(ranges)),
        estimate=Estimate(sum(one.bytes for one in ranges)),
        observed_at=datetime.now(UTC),
        head=head.to_model(),
        losses=losses,
        tail=tail.to_model(),
    )


def _holds_nothing(request: PlanRequest) -> bool:
    """Whether both cuts are one place in one incarnation of the stream: nothing was written between them."""
    is_known = request.start_incarnation and request.start_incarnation == request.end_incarnation
    return bool(is_known and request.start_cut and request.start_cut == request.end_cut)


def _without_events(request: PlanRequest, head: StreamCut, cluster: str, lost: Doubt | None = None) -> Steps[Plan]:
    """The plan of a window that reads nothing, whatever the stream holds now.

    Nothing was written in it, or it is lost: it ends in an earlier incarnation of the stream.
    """
    tail, incarnation = yield from origin.observe_tail(head.stream)
    end = request.end_cut or Cut({})
    start = request.start_cut or end
    ends = {shard: end.get(shard, position) for shard, position in {**start, **end}.items()}
    verdict = f"lost: {lost.cause}" if lost else "empty"
    losses = (Loss(shard, min(start.get(shard, _FIRST), at), at, lost.cause) for shard, at in ends.items() if lost)
    ranges = (Range(shard, at, at, bytes=0, entries=0, verdict=verdict) for shard, at in ends.items())
    source = SourceRef("pravega", cluster, (head.stream,), incarnation)
    return _plan(request, source, start, end, tuple(ranges), losses=tuple(losses), head=head, tail=tail)


def _start(request: PlanRequest, head: StreamCut, end: StreamCut, doubt: Doubt | None) -> Steps[StreamCut]:
    """Where the window starts. If its beginning is lost: where it was last seen, or the head."""
    given = doubt.seen if doubt and doubt.is_lost else _given(head.stream, request.start_cut)
    if given is not None:
        return given
    if head.offsets.keys().isdisjoint(end.offsets) and not (yield from infos(head.stream, list(end.offsets))):
        return end  # the stream was truncated beyond the window's end
    return StreamCut(
        head.stream, {key: min(offset, end.offsets.get(key, offset)) for key, offset in head.offsets.items()}
    )


def _tail(end: StreamCut, pieces: Sequence[Piece]) -> Steps[StreamCut]:
    """The stream's tail; not asked for if the segments at the window's end are all open."""
    known = {piece.range.shard: piece.info for piece in pieces}
    infos = {segment.id: known[segment.name] for segment in end.segments}
    offsets = {key: info.write_offset for key, info in infos.items() if info is not None and not info.is_sealed}
    return StreamCut(end.stream, offsets) if offsets.keys() == infos.keys() else (yield from cuts.tail(end.stream))


def _check_held(
    request: PlanRequest, start: StreamCut, pieces: Sequence[Piece], head: StreamCut, doubt: Doubt | None
) -> Steps[None]:
    if request.on_loss == "fail" and any(piece.loss is not None for piece in pieces):
        after = yield from cut_after_removed(start, pieces)
        hint = (
            f"if it starts at their very end, nothing is: {after.to_model()} is that place, and held" if after else ""
        )
        raise trimmed(head.stream, pieces, hint)
    if doubt and doubt.is_lost:
        _check_accepted(request, head, doubt)
    elif doubt and request.on_unproven == "fail":
        raise StartUnproven(head.stream, request.window, doubt.cause)


def _check_accepted(request: PlanRequest, head: StreamCut, lost: Doubt) -> None:
    if request.on_loss == "fail":
        raise StartTrimmed(head.stream, request.window.start.isoformat(), head.to_model(), lost.cause)


def _judged(ranges: Iterable[Range], starts: Sequence[StreamCut], doubt: Doubt | None) -> tuple[Range, ...]:
    """The ranges, with a doubt as the verdict of those where it starts: events before them may be the window's."""
    if doubt is None:
        return tuple(ranges)
    firsts = {segment.name for start in starts for segment in start.segments}
    verdict = f"{'lost' if doubt.is_lost else UNPROVEN}: {doubt.cause}"
    return tuple(
        replace(one, verdict=verdict) if one.shard in firsts and one.verdict in _HELD else one for one in ranges
    )


def _losses(pieces: Sequence[Piece], doubt: Doubt | None) -> Iterator[Loss]:
    """What is gone of each segment. How much an earlier incarnation, or a removed segment, held is not known."""
    found = [piece.loss for piece in pieces if piece.loss is not None]
    if doubt and doubt.is_lost and (doubt.seen is None or not found):
        first = pieces[0].range
        yield Loss(first.shard, first.start, first.start, doubt.cause)
    yield from found


def check_basis(request: PlanRequest, now: datetime) -> None:
    """Refuse a basis that Pravega cannot serve with the given cuts.

    Raises:
        InvalidRequest: it cannot; the message names a basis that it can.
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
    """A given cut; one without segments is `unbounded`, the head or the tail."""
    return StreamCut.from_model(stream, cut) if cut else None


def splits(ranges: tuple[Range, ...]) -> Iterator[Split]:
    """One split for each range that holds something: where events start inside a range is not known."""
    filled = [one for one in ranges if one.bytes]
    for index, one in enumerate(filled):
        segment = Segment.parse(one.shard)
        span = Span(segment.id, one.start.parts[0], one.end.parts[0])
        yield Split(index, one.shard, one.start, one.end, one.bytes, (span,))
