"""Scaling by hand: which segments to replace by which key ranges, and the rules that do it.

The choice is pure. The rules look first and wait for the end, so that repeating them after a failure does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps, infos
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut

KeyRange = tuple[float, float]

MOST_SEGMENTS = 10_000
"""More than a controller can make at once."""
_POLL_SECONDS = 0.05
_ROLLS = 5
"""How often a roll looks at the open segments again, if other clients scale the stream."""
_PATIENCE = 600
"""How often the rule asks for the end of a scaling: some 30 s, where it usually takes less than 0.2."""


class Order(NamedTuple):
    """Open segments to end, and the key ranges of their successors; none of both: it is done already."""

    sealed: tuple[int, ...] = ()
    ranges: tuple[KeyRange, ...] = ()


Choice = Callable[[Sequence[KeyedSegment]], Order]
"""From the open segments to an order."""


def to_count(segments: int) -> Choice:
    """1 to `MOST_SEGMENTS` segments that own equal shares of the keys; else `InvalidRequest`."""
    if not 1 <= segments <= MOST_SEGMENTS:
        raise InvalidRequest(f"a stream is scaled to 1 to {MOST_SEGMENTS:,} segments here, got {segments}")
    edges = [number / segments for number in range(segments)] + [1.0]
    wanted = tuple(pairwise(edges))

    def choose(current: Sequence[KeyedSegment]) -> Order:
        kept = {(one.low, one.high): one.segment_id for one in current}
        if set(wanted) == kept.keys():
            return Order()
        return Order(tuple(kept.values()), wanted)

    return choose


def split(segment: int, parts: int = 2) -> Choice:
    """One open segment in equal parts; `InvalidRequest` for less than two, or more than `MOST_SEGMENTS`."""
    if not 2 <= parts <= MOST_SEGMENTS:  # noqa: PLR2004 - the smallest split
        raise InvalidRequest(f"a segment is split into 2 to {MOST_SEGMENTS:,} parts here, got {parts}")

    def choose(current: Sequence[KeyedSegment]) -> Order:
        (one,) = _open(current, [segment])
        width = (one.high - one.low) / parts
        edges = [*(one.low + number * width for number in range(parts)), one.high]
        return Order((segment,), tuple(pairwise(edges)))

    return choose


def merge(segments: Sequence[int]) -> Choice:
    """Neighboring open segments into one; `InvalidRequest` for less than two."""
    if len(set(segments)) < 2:  # noqa: PLR2004 - the smallest merge
        raise InvalidRequest("at least two segments are merged")

    def choose(current: Sequence[KeyedSegment]) -> Order:
        chosen = sorted(_open(current, segments), key=lambda one: one.low)
        if any(left.high != right.low for left, right in pairwise(chosen)):
            raise InvalidRequest("only neighbours can be merged: the keys of these segments do not join")
        return Order(tuple(one.segment_id for one in chosen), ((chosen[0].low, chosen[-1].high),))

    return choose


def _open(current: Sequence[KeyedSegment], wanted: Sequence[int]) -> list[KeyedSegment]:
    found = [one for one in current if one.segment_id in wanted]
    missing = set(wanted) - {one.segment_id for one in found}
    if missing:
        names = ", ".join(Segment("", key).short_name for key in sorted(missing))
        known = ", ".join(Segment("", one.segment_id).short_name for one in current)
        raise InvalidRequest(f"not open: {names}; open are {known or 'none, as the stream is sealed'}")
    return found


def scale(stream: str, choose: Choice) -> Steps[tuple[KeyedSegment, ...]]:
    """Scale a stream and wait for the end; the open segments afterwards.

    Raises:
        InvalidRequest: the stream is sealed, or the choice does not fit its open segments.
        SystemUnavailable: another client scales it at the same time, or the scaling does not end.
        SourceNotFound: no such stream or scope.
    """
    current = yield from segment_calls.current_segments(stream)
    if not current:
        raise InvalidRequest(f"{stream} is sealed: it cannot be scaled any more")
    order = choose(current)
    if not order.sealed:
        return current
    # the time is kept in the stream's scaling events: send the real one
    epoch = yield from stream_calls.scale(stream, order.sealed, order.ranges, time.time_ns() // 1_000_000)
    if epoch is None:
        raise SystemUnavailable(stream, "its segments changed while it was to be scaled")
    for _ in range(_PATIENCE):
        if (yield from stream_calls.scale_done(stream, epoch)):
            return (yield from segment_calls.current_segments(stream))
        yield Pause(_POLL_SECONDS)
    raise SystemUnavailable(stream, "its scaling goes on and on")


@dataclass(frozen=True, slots=True)
class Boundary:
    """A rolled epoch: a place where all segments of a stream end, and others take over their keys."""

    ends: StreamCut
    """The sealed segments before it: their ends never move again."""
    cut: StreamCut
    """The boundary as windows name it: where the segments after it start, if that is known, else `ends`."""


def roll(stream: str, segments: Collection[int]) -> Steps[Boundary]:
    """End these segments, each replaced by one that owns the same keys.

    Repeating it with the same segments does no harm and gives the same boundary, even if another client ended them.

    Raises:
        InvalidRequest: a segment is not held any more, or not sealed although it is not open.
        SystemUnavailable: other clients keep scaling the stream, or the scaling does not end.
        SourceNotFound: no such stream or scope.
    """
    for attempt in range(_ROLLS):
        current = yield from segment_calls.current_segments(stream)
        if not any(one.segment_id in segments for one in current):
            break
        try:
            yield from scale(stream, _renewal(segments))
        except SystemUnavailable:
            # its auto-scaling was quicker with some of them: look again at the others
            if attempt == _ROLLS - 1:
                raise
    ends = yield from _ends(stream, segments)
    return Boundary(ends, (yield from _starts_after(ends)) or ends)


def _renewal(segments: Collection[int]) -> Choice:
    """Those of the segments that are still open, one to one."""

    def choose(current: Sequence[KeyedSegment]) -> Order:
        chosen = [one for one in current if one.segment_id in segments]
        return Order(tuple(one.segment_id for one in chosen), tuple((one.low, one.high) for one in chosen))

    return choose


def _starts_after(ends: StreamCut) -> Steps[StreamCut | None]:
    """The starts of the segments that follow the sealed ones, if these cover all keys, once.

    Both name the same place. But once retention has removed the sealed segments, their ends look like places inside
    them.
    """
    after: set[int] = set()
    for key in ends.offsets:
        after.update(one.segment_id for one in (yield from segment_calls.successors(ends.stream, key)))
    starts = StreamCut(ends.stream, dict.fromkeys(after, 0))
    return starts if after and (yield from segment_calls.cut_covers(ends.stream, starts.offsets)) else None


def _ends(stream: str, segments: Collection[int]) -> Steps[StreamCut]:
    found = yield from infos(stream, sorted(segments))
    for key in segments:
        if key not in found or not found[key].is_sealed:
            state = "still open" if key in found else "truncated away, or the stream was deleted and made again"
            raise InvalidRequest(f"{Segment(stream, key).name} was to be ended, but it is {state}")
    return StreamCut(stream, {key: info.write_offset for key, info in found.items()})
