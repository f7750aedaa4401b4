"""From a window to ranges: stricter than the Java client, which reads on over cuts that cannot be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, UnclearAnswer, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Estimate, Loss, Plan, PlanRequest, Range, SourceRef, Span, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut


def plan(request: PlanRequest, *, stream: str, cluster: str) -> Steps[Plan]:
    """Resolve a request to a plan; asks only, and writes nothing.

    Raises:
        InvalidRequest: a basis that Pravega cannot serve, or cuts that are unknown, partial, reversed or ahead of
            the stream.
        WindowNotReady: the window has not ended yet (basis `chained`).
        StartTrimmed: events of the window are gone, and that is not accepted.
        SourceNotFound: no such stream or scope.
    """
    check_basis(request, datetime.now(UTC))
    head = yield from cuts.head(stream)
    start = _given(stream, request.start_cut) or head
    end = _given(stream, request.end_cut) or (yield from cuts.tail(stream))
    observed_at = datetime.now(UTC)
    pieces = yield from pieces_between(start, end, head)
    losses = tuple(piece.loss for piece in pieces if piece.loss is not None)
    if losses and request.on_loss == "fail":
        raise trimmed(stream, pieces)
    ranges = tuple(piece.range for piece in pieces)
    return Plan(
        reader=request.reader,
        source=SourceRef("pravega", cluster, (stream,)),
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
        losses=losses,
    )


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
    if request.basis in ("append", "event") and (request.start_cut is None or request.end_cut is None):
        raise InvalidRequest(
            f"{request.source}: basis {request.basis!r} needs both cuts of the window: record cuts on a clock, "
            "or use basis='chained' or your own cuts"
        )
    if request.basis == "chained" and request.end_cut is None and now < request.window.end:
        raise WindowNotReady(request.source, request.window, "it has not ended yet")


def _given(stream: str, cut: Cut | None) -> StreamCut | None:
    """A cut from outside; one without segments is `unbounded`, the head or the tail."""
    return StreamCut.from_model(stream, cut) if cut else None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a window holds of one segment."""

    range: Range
    loss: Loss | None = None


def pieces_between(start: StreamCut, end: StreamCut, head: StreamCut) -> Steps[list[Piece]]:
    """What lies between two cuts, segment by segment; predecessors come before their successors.

    Raises:
        InvalidRequest: see `plan`.
    """
    stream = start.stream
    for name, cut in (("start", start), ("end", end)):
        cuts.check_readable(name, cut)
    _check_order(start, end)
    found = yield from infos(stream, sorted({*start.offsets, *end.offsets}))
    yield from _check_known(start, end, head, found)
    _check_reached("start", start, found)
    _check_reached("end", end, found)
    keys = yield from _between(start, end)
    found = {**found, **(yield from infos(stream, [key for key in keys if key not in found]))}
    return [_piece(Segment(stream, key), start.offsets.get(key), end.offsets.get(key), found.get(key)) for key in keys]


def _check_order(start: StreamCut, end: StreamCut) -> None:
    for key, offset in start.offsets.items():
        if offset > end.offsets.get(key, offset):
            name = Segment(start.stream, key).name
            raise InvalidRequest(
                f"the end cut is before the start cut: {name} starts at {offset} and ends at {end.offsets[key]}"
            )


def _check_known(start: StreamCut, end: StreamCut, head: StreamCut, found: Mapping[int, SegmentInfo]) -> Steps[None]:
    """Whether cuts name segments that the stream has, or had before it was truncated; and all of one moment."""
    unseen = [key for key in {**start.offsets, **end.offsets} if key not in found]
    if unseen:
        past = yield from ask(calls.segments_between(start.stream, {}, head.offsets))
        for key in unseen:
            if key not in past:
                raise InvalidRequest(
                    f"{Segment(start.stream, key).name}, which a cut names, is no segment of this stream; "
                    "was the stream deleted and made again, or is the cut of another stream?"
                )
    yield from cuts.covers("start", start)
    yield from cuts.covers("end", end)


def _check_reached(name: str, cut: StreamCut, found: Mapping[int, SegmentInfo]) -> None:
    for key, offset in cut.offsets.items():
        if key in found and offset > found[key].write_offset:
            raise InvalidRequest(
                f"the {name} cut is ahead of the stream: {Segment(cut.stream, key).name} ends at "
                f"{found[key].write_offset}, the cut says {offset}; was the stream deleted and made again?"
            )


def _between(start: StreamCut, end: StreamCut) -> Steps[tuple[int, ...]]:
    if start == end:
        return tuple(start.offsets)
    try:
        return (yield from ask(calls.segments_between(start.stream, start.offsets, end.offsets)))
    except UnclearAnswer as error:
        # its way to say that the cuts are in no order: everything else about them is checked
        raise InvalidRequest(
            f"the end cut of {start.stream} is not at or after the start cut in every segment ({error})"
        ) from error


def _piece(segment: Segment, start: int | None, end: int | None, info: SegmentInfo | None) -> Piece:
    first, last = start or 0, end
    if info is None:
        unknown = last is None
        stop = first if last is None else last
        cause = "the segment is gone; its length is no longer known" if unknown else "the segment is gone"
        verdict = f"lost: {'all' if unknown else f'{stop - first} bytes'}"
        loss = Loss(segment.name, Position.of(first), Position.of(stop), cause) if unknown or stop > first else None
        return Piece(_range(segment, stop, stop, None, verdict if loss else "empty"), loss)
    if last is None:
        if not info.is_sealed:
            raise InvalidRequest(f"the end cut does not name {segment.name}, which is still written to")
        last = info.write_offset
    kept = min(max(first, info.start_offset), last)
    verdict = f"lost: {kept - first} bytes" if kept > first else "ok" if last > kept else "empty"
    loss = Loss(segment.name, Position.of(first), Position.of(kept), "truncated") if kept > first else None
    return Piece(_range(segment, kept, last, info.start_offset, verdict), loss)


def _range(segment: Segment, start: int, end: int, kept: int | None, verdict: str) -> Range:
    return Range(
        segment.name,
        Position.of(start),
        Position.of(end),
        bytes=end - start,
        entries=end - start,
        first_kept=None if kept is None else Position.of(kept),
        verdict=verdict,
    )


def trimmed(stream: str, pieces: list[Piece]) -> StartTrimmed:
    """The error of a window whose beginning is gone: where, how many bytes, how many segments of unknown length."""
    lost = [(piece.loss, piece.range) for piece in pieces if piece.loss is not None]
    size = sum(loss.end.parts[0] - loss.start.parts[0] for loss, _ in lost)
    whole = sum(one.verdict == "lost: all" for _, one in lost)
    parts = [f"{size} bytes in {len(lost)} segments are gone"]
    if whole:
        parts.append(f"of {whole} of them the length is no longer known")
    loss, first = lost[0]
    shard = loss.shard if len(lost) == 1 else f"{loss.shard} and {len(lost) - 1} more segments of {stream}"
    return StartTrimmed(shard, loss.start, first.first_kept or "in a later segment", "; ".join(parts))


def splits(ranges: tuple[Range, ...]) -> Iterator[Split]:
    """One split for each range that holds something: a place inside a range is known to be an event's only there."""
    filled = [one for one in ranges if one.bytes]
    for index, one in enumerate(filled):
        segment = Segment.parse(one.shard)
        span = Span(segment.id, one.start.parts[0], one.end.parts[0])
        yield Split(index, one.shard, one.start, one.end, one.bytes, (span,))
