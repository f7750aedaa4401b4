"""What a window holds of each segment: the ranges between two cuts, and what of them is no longer held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, UnclearAnswer
from airflow_provider_streams.model.plan import Loss, Range
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pravega import calls, cuts
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.segment_infos import SegmentInfo
from airflow_provider_streams.systems.pravega.steps import Steps, ask, infos
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut

_ALL_LOST = "lost: all"


@dataclass(frozen=True, slots=True)
class Piece:
    """What a window holds of one segment."""

    range: Range
    loss: Loss | None = None
    info: SegmentInfo | None = None
    """The segment's; None: it is gone."""


def pieces_between(start: StreamCut, end: StreamCut, head: StreamCut) -> Steps[list[Piece]]:
    """What lies between two cuts, segment by segment; predecessors come before their successors.

    Raises:
        InvalidRequest: cuts that are unknown, partial, reversed, crossing, or ahead of the stream.
        UnclearAnswer: the controller fails, although the cuts are right.
    """
    stream = start.stream
    _check_order(start, end)
    found = yield from cuts.check({"start": start, "end": end}, head)
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


def _between(start: StreamCut, end: StreamCut) -> Steps[tuple[int, ...]]:
    if start == end:
        return tuple(start.offsets)
    try:
        return (yield from ask(calls.segments_between(start.stream, start.offsets, end.offsets)))
    except UnclearAnswer:
        # also its way to say that the cuts are in no order
        yield from _check_sequence(start, end)
        raise


def _check_sequence(start: StreamCut, end: StreamCut) -> Steps[None]:
    after = yield from ask(calls.segments_between(start.stream, start.offsets, {}))
    for key in end.offsets:
        if key not in after:
            raise InvalidRequest(
                f"the end cut is not at or after the start cut in every segment: {Segment(start.stream, key).name}, "
                "where it ends, lies before the start"
            )


def _piece(segment: Segment, start: int | None, end: int | None, info: SegmentInfo | None) -> Piece:
    first, last = start or 0, end
    if info is None:
        return _gone(segment, first, last)
    if last is None:
        if not info.is_sealed:
            raise InvalidRequest(f"the end cut does not name {segment.name}, which is still written to")
        last = info.write_offset
    kept = min(max(first, info.start_offset), last)
    verdict = f"lost: {kept - first} bytes" if kept > first else "ok" if last > kept else "empty"
    loss = Loss(segment.name, Position.of(first), Position.of(kept), "truncated") if kept > first else None
    return Piece(_range(segment, kept, last, info.start_offset, verdict), loss, info)


def _gone(segment: Segment, first: int, last: int | None) -> Piece:
    """A segment that is not held: of one that the end cut does not name, nobody knows how long it was."""
    unknown = last is None
    stop = first if last is None else last
    if not unknown and stop == first:
        return Piece(_range(segment, stop, stop, None, "empty"))
    cause = "the segment is gone; its length is no longer known" if unknown else "the segment is gone"
    verdict = _ALL_LOST if unknown else f"lost: {stop - first} bytes"
    loss = Loss(segment.name, Position.of(first), Position.of(stop), cause)
    return Piece(_range(segment, stop, stop, None, verdict), loss)


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


def trimmed(stream: str, pieces: Iterable[Piece], hint: str = "") -> StartTrimmed:
    """The error of a window whose beginning is gone: where, how many bytes, how many segments of unknown length."""
    lost = [(piece.loss, piece.range) for piece in pieces if piece.loss is not None]
    size = sum(loss.end.parts[0] - loss.start.parts[0] for loss, _ in lost)
    whole = sum(one.verdict == _ALL_LOST for _, one in lost)
    parts = [f"{size} bytes in {len(lost)} segments are gone"]
    if whole:
        parts.append(f"of {whole} of them the length is no longer known")
    if hint:
        parts.append(hint)
    loss, first = lost[0]
    shard = loss.shard if len(lost) == 1 else f"{loss.shard} and {len(lost) - 1} more segments of {stream}"
    return StartTrimmed(shard, loss.start, first.first_kept or "in a later segment", "; ".join(parts))


def behind_gone(start: StreamCut, pieces: Sequence[Piece]) -> Steps[StreamCut | None]:
    """The cut right behind those segments of a start that are gone, if all that follows them is held; else None.

    Where the start was their very end, both name the same place. Nobody can tell any more.
    """
    infos_by_key = {Segment.parse(piece.range.shard).id: piece.info for piece in pieces}
    offsets = dict(start.offsets)
    for piece in pieces:
        if piece.loss is None:
            continue
        key = Segment.parse(piece.range.shard).id
        after = yield from ask(calls.successors(start.stream, key))
        whole = piece.range.verdict == _ALL_LOST and key in offsets and after
        if not whole or any((info := infos_by_key.get(one)) is None or info.start_offset for one in after):
            return None
        del offsets[key]
        offsets.update({one: offsets.get(one, 0) for one in after})
    return StreamCut(start.stream, offsets)
