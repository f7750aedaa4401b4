"""Which segments may hold events of a routing key: its hash is a place in the key space, which segments divide.

Events do not store their keys, so a segment is read as a whole, or not at all. Java's clients hash like this. A
writer without keys, or with another hash, puts events anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range
from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.planning import planner

_WORD = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_SEED = 0x67D2C263
"""Java's hash of the text `EventRouter`."""
_FRACTION = 52
"""The bits of a hash that make the place."""


def place_of(key: str) -> float:
    """The place of a routing key in the key space, `0 <= place < 1`."""
    return (_murmur3(key.encode("utf-16-le", "surrogatepass"), _SEED) >> (64 - _FRACTION)) / (1 << _FRACTION)


def narrowed(plan: Plan, stream: str, selection: Selection | None) -> Steps[Plan]:
    """A plan of one stream that reads only segments which may hold these routing keys; its cuts stay whole."""
    if selection is None:
        return plan
    places = [place_of(key) for key in selection.routing_keys]
    owned = yield from _owned(stream, [Segment.parse(one.shard).id for one in plan.ranges])
    ranges = tuple(_judged(one, owned[Segment.parse(one.shard).id], places) for one in plan.ranges)
    skipped = sum(one.entries != before.entries for one, before in zip(ranges, plan.ranges, strict=True))
    remark = (
        f"only segments that may hold {selection} are read, all but {skipped} of {len(ranges)}, and each as a whole: "
        "events of other keys in them land as well"
    )
    return replace(
        plan,
        ranges=ranges,
        splits=tuple(planner.splits(ranges)),
        estimate=Estimate(sum(one.bytes for one in ranges)),
        selection=selection,
        remarks=(*plan.remarks, remark),
    )


def _judged(one: Range, owned: tuple[float, float], places: Iterable[float]) -> Range:
    low, high = owned
    if not one.entries or any(low <= place < high for place in places):
        return one
    is_held = one.verdict == "ok"
    return replace(one, bytes=0, entries=0, verdict="skipped: it holds other keys" if is_held else one.verdict)


def _owned(stream: str, segments: Collection[int]) -> Steps[Mapping[int, tuple[float, float]]]:
    """The keys that each segment owns: low and high. If only its successors are known, it may be more.

    The controller tells readers the successors of a segment, but only writers the segments of an epoch.
    """
    known = {one.segment_id: one for one in (yield from segment_calls.current_segments(stream))}
    after: dict[int, tuple[KeyedSegment, ...]] = {}
    is_open = set(known)
    for segment in segments:
        if segment not in is_open:
            after[segment] = yield from segment_calls.successors(stream, segment)
            known.update({one.segment_id: one for one in after[segment]})
    return {segment: _keys(known.get(segment), after.get(segment, ())) for segment in segments}


def _keys(exact: KeyedSegment | None, after: Collection[KeyedSegment]) -> tuple[float, float]:
    if exact is not None:
        return exact.low, exact.high
    if not after:
        return 0.0, 1.0
    return min(one.low for one in after), max(one.high for one in after)


def _murmur3(data: bytes, seed: int) -> int:
    """The first 64 bits of Murmur3 with 128 bits, for 64-bit machines."""
    first = second = seed
    blocks = len(data) // 16 * 16
    for at in range(0, blocks, 16):
        low, high = (int.from_bytes(data[at + half : at + half + 8], "little") for half in (0, 8))
        first = (_turned(first ^ _low(low), 27) + second) * 5 + 0x52DCE729 & _WORD
        second = (_turned(second ^ _high(high), 31) + first) * 5 + 0x38495AB5 & _WORD
    rest = data[blocks:]
    second ^= _high(int.from_bytes(rest[8:], "little"))
    first ^= _low(int.from_bytes(rest[:8], "little"))
    first, second = first ^ len(data), second ^ len(data)
    first = first + second & _WORD
    second = second + first & _WORD
    return _finished(first) + _finished(second) & _WORD


def _low(word: int) -> int:
    return _turned(word * _C1 & _WORD, 31) * _C2 & _WORD


def _high(word: int) -> int:
    return _turned(word * _C2 & _WORD, 33) * _C1 & _WORD


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _WORD


def _finished(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _WORD
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _WORD
    return word ^ word >> 33
