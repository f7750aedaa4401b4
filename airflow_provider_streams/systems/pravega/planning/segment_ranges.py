"""What a window holds of each segment: the ranges between two cuts, and which parts of them are lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, UnknownServerError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Loss, Range
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import cuts

_ALL_LOST = "lost: all"


@dataclass(frozen=True, slots=True)
class Piece:
    """What a window holds of one segment."""

    range: Range
    loss: Loss | None = None
    info: SegmentInfo | None = None
    """The segment's; None: it is gone."""


def pieces_between(start: StreamCut, end: StreamCut, head: StreamCut) -> Steps[list[Piece]]:
    """The window between two cuts, segment by segment; predecessors come before their successors.

    Raises:
        InvalidRequest: cuts that are unknown, partial, reversed, crossing, or ahead of the stream.
        UnknownServerError: the controller fails, although the cuts are right.
    """
    stream = start.stream
    for key, offset in start.offsets.items():
        if offset > end.offsets.get(key, offset):
            raise InvalidRequest(
                f"the end cut is before the start cut: {Segment(stream, key).name} starts at {offset} and ends at "
                f"{end.offsets[key]}"
            )
    found = yield from cuts.check({"start": start, "end": end}, head)
    keys = yield from _between(start, end)
    found = {**found, **(yield from infos(stream, [key for key in keys if key not in found]))}
    return [_piece(Segment(stream, key), start.offsets.get(key), end.offsets.get(key), found.get(key)) for key in keys]


def _between(start: StreamCut, end: StreamCut) -> Steps[tuple[int, ...]]:
    if start == end:
        return tuple(start.offsets)
    try:
        return (yield from segment_calls.segments_between(start.stream, start.offsets, end.offsets))
    except UnknownServerError as error:
        # the controller fails like this also for cuts in no order
        after = yield from segment_calls.segments_between(start.stream, start.offsets, {})
        if early := [key for key in end.offsets if key not in after]:
            raise InvalidRequest(
                "the end cut is not at or after the start cut in every segment: "
                f"{Segment(start.stream, early[0]).name}, where it ends, is before the start"
            ) from error
        raise


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
    """A segment that is not held. If the end cut does not name it, its length is not known."""
    if first == last:
        return Piece(_range(segment, first, first, None, "empty"))
    stop = first if last is None else last
    cause = "the segment is gone; its length is no longer known" if last is None else "the segment is gone"
    verdict = _ALL_LOST if last is None else f"lost: {stop - first} bytes"
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
    """The error of a window whose beginning is gone: the place, the bytes, the segments of unknown length."""
    lost = [(piece.loss, piece.range) for piece in pieces if piece.loss is not None]
    size = sum(loss.end.parts[0] - loss.start.parts[0] for loss, _ in lost)
    whole = sum(one.verdict == _ALL_LOST for _, one in lost)
    parts = [f"{counted(size, 'byte')} in {counted(len(lost), 'segment')} are gone"]
    if whole:
        parts.append(f"of {whole} of them the length is no longer known")
    if hint:
        parts.append(hint)
    loss, first = lost[0]
    shard = loss.shard if len(lost) == 1 else f"{loss.shard} and {counted(len(lost) - 1, 'more segment')} of {stream}"
    return StartTrimmed(shard, loss.start, first.first_kept or "in a later segment", "; ".join(parts))


def cut_after_removed(start: StreamCut, pieces: Sequence[Piece]) -> Steps[StreamCut | None]:
    """The cut right after those segments of a start that are gone; None: something that follows them is lost as well.

    If the start was their very end, both cuts are the same place. That cannot be found out any more.
    """
    infos_by_key = {Segment.parse(piece.range.shard).id: piece.info for piece in pieces}
    offsets = dict(start.offsets)
    for piece in pieces:
        if piece.loss is None:
            continue
        key = Segment.parse(piece.range.shard).id
        after = [one.segment_id for one in (yield from segment_calls.successors(start.stream, key))]
        whole = piece.range.verdict == _ALL_LOST and key in offsets and after
        if not whole or any((info := infos_by_key.get(one)) is None or info.start_offset for one in after):
            return None
        del offsets[key]
        offsets.update({one: offsets.get(one, 0) for one in after})
    return StreamCut(start.stream, offsets)
