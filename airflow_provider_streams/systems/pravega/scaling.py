"""Scaling by hand: which segments to replace by which key ranges, and the rule that does it.

Choosing is pure. The rule looks first and waits for the end, so that repeating it after a failure does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.backoff import Pause
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.calls import KeyedSegment
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.steps import Steps, ask

KeyRange = tuple[float, float]

MOST_SEGMENTS = 10_000
"""More than a controller can make at once."""
_POLL_SECONDS = 0.05
_PATIENCE = 600
"""How often a scaling is asked for its end: some 30 s, where it usually takes less than 0.2."""


class Order(NamedTuple):
    """Open segments to end, and the key ranges of those that take their place; none of both: it is done already."""

    sealed: tuple[int, ...] = ()
    ranges: tuple[KeyRange, ...] = ()


Choice = Callable[[Sequence[KeyedSegment]], Order]
"""From the open segments to an order."""


def to_count(segments: int) -> Choice:
    """So many segments that own equal shares of the keys.

    Raises:
        InvalidRequest: less than one, or more than `MOST_SEGMENTS`.
    """
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
    """One open segment in equal parts.

    Raises:
        InvalidRequest: less than two parts, or more than `MOST_SEGMENTS`.
    """
    if not 2 <= parts <= MOST_SEGMENTS:  # noqa: PLR2004 - the smallest split
        raise InvalidRequest(f"a segment is split into 2 to {MOST_SEGMENTS:,} parts here, got {parts}")

    def choose(current: Sequence[KeyedSegment]) -> Order:
        (one,) = _open(current, [segment])
        width = (one.high - one.low) / parts
        edges = [*(one.low + number * width for number in range(parts)), one.high]
        return Order((segment,), tuple(pairwise(edges)))

    return choose


def merge(segments: Sequence[int]) -> Choice:
    """Neighbouring open segments into one.

    Raises:
        InvalidRequest: less than two of them.
    """
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
        names = ", ".join(_short(key) for key in sorted(missing))
        known = ", ".join(_short(one.segment_id) for one in current)
        raise InvalidRequest(f"not open: {names}; open are {known or 'none, as the stream is sealed'}")
    return found


def _short(key: int) -> str:
    return Segment("", key).name.removeprefix("/")


def scale(stream: str, choose: Choice) -> Steps[tuple[KeyedSegment, ...]]:
    """Scale a stream and wait for the end; the open segments afterwards.

    Raises:
        InvalidRequest: the stream is sealed, or the choice does not fit its open segments.
        SystemUnavailable: someone else scales it at the same time, or it does not end.
        SourceNotFound: no such stream or scope.
    """
    current = yield from ask(calls.current_segments(stream))
    if not current:
        raise InvalidRequest(f"{stream} is sealed: it cannot be scaled any more")
    order = choose(current)
    if not order.sealed:
        return current
    # the time is kept in the stream's scaling events: send the real one
    epoch = yield from ask(calls.scale(stream, order.sealed, order.ranges, time.time_ns() // 1_000_000))
    if epoch is None:
        raise SystemUnavailable(stream, "its segments changed while it was to be scaled")
    for _ in range(_PATIENCE):
        if (yield from ask(calls.scale_done(stream, epoch))):
            return (yield from ask(calls.current_segments(stream)))
        yield Pause(_POLL_SECONDS)
    raise SystemUnavailable(stream, "its scaling goes on and on")
