"""What a plan reads of one shard, taken apart from its end: pieces that begin between two events. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.model.plan.plan import Plan, Span, Split
from airflow_provider_streams.model.stream.position import Position

if TYPE_CHECKING:
    from airflow_provider_streams.systems.declaration import Declaration

Places = Mapping[str, Iterable[Position]]
"""Known places between two events, by shard."""


@dataclass(frozen=True, slots=True)
class ShardTail:
    """Stored events of one shard that were not read yet, up to `end`."""

    shard: str
    start: Position
    end: Position
    bytes: int
    """Stored, for all spans."""
    spans: tuple[Span, ...]
    """Empty: what is stored cannot be counted, so it is read as a whole."""
    places: tuple[Position, ...] = ()
    """Where reading may begin, ascending; the first is `start`. Used if a unit does not say where events begin."""
    at_unit: Callable[[int, int], Position] | None = None
    """The place of a stored unit; None: only `places` are between two events."""

    @property
    def units(self) -> int:
        """How many stored units there are."""
        return sum(span.entries for span in self.spans)

    def units_of(self, size: int) -> int:
        """About how many units hold so many stored bytes; at least one."""
        return max(1, size * self.units // self.bytes) if self.bytes else 1

    def piece(self, units: int) -> Split:
        """The last units, or a few more, from the nearest place where reading may begin."""
        return self._since(self._start(units) if self.spans else self.start)

    def fitting(self, units: int) -> Split:
        """As many of the last units as possible, but no more than these; more only if no place is nearer."""
        if self.at_unit is not None or not self.spans:
            return self.piece(units)
        end = self.spans[-1].end
        near = [one for one in self.places if end - one.parts[0] <= units]
        return self._since(min(near, default=max(self.places)))

    def _since(self, start: Position) -> Split:
        spans = self.spans if start == self.start else tuple(self._from(start))
        count = sum(span.entries for span in spans)
        size = self.bytes * count // self.units if self.units else self.bytes
        return Split(0, self.shard, start, self.end, size, spans)

    def before(self, piece: Split) -> ShardTail | None:
        """What is left in front of a piece; None: nothing."""
        if piece.start == self.start:
            return None
        left = {(span.run, span.first): span.entries for span in self.spans}
        for span in piece.spans:
            known = next(one for one in self.spans if one.run == span.run and one.end == span.end)
            left[known.run, known.first] -= span.entries
        spans = tuple(Span(run, first, first + count) for (run, first), count in left.items() if count)
        places = tuple(one for one in self.places if one < piece.start)
        return replace(self, end=piece.start, bytes=self.bytes - piece.bytes, spans=spans, places=places)

    def _start(self, units: int) -> Position:
        """Where the last units begin."""
        if self.at_unit is None:
            end = self.spans[-1].end
            return max((one for one in self.places if end - one.parts[0] >= units), default=self.start)
        left = units
        for span in reversed(self.spans):
            if span.entries > left:
                return self.at_unit(span.run, span.end - left)
            left -= span.entries
            if left == 0:
                return self.start if span is self.spans[0] else self.at_unit(span.run, span.first)
        return self.start

    def _from(self, start: Position) -> Iterable[Span]:
        """The spans, or parts of them, from a place on."""
        for span in self.spans:
            first = self._first_unit(span, start)
            if first < span.end:
                yield replace(span, first=first)

    def _first_unit(self, span: Span, start: Position) -> int:
        if self.at_unit is None:
            return max(span.first, start.parts[0])
        if self.at_unit(span.run, span.first) >= start:
            return span.first
        return start.parts[1] if start.parts[0] == span.run else span.end


def tails_of(plan: Plan, declared: Declaration, known: Places) -> list[ShardTail]:
    """What a plan reads of each shard, in the plan's order.

    Args:
        plan: with all that is to be looked at.
        declared: the plan's system.
        known: more places between two events.
    """
    splits: dict[str, list[Split]] = defaultdict(list)
    for split in plan.splits:
        splits[split.shard].append(split)
    at_unit = declared.position_of if declared.starts_at_units else None
    return [_tail_of(some, at_unit, known) for some in splits.values()]


def _tail_of(splits: list[Split], at_unit: Callable[[int, int], Position] | None, known: Places) -> ShardTail:
    first, last = splits[0], splits[-1]
    spans = _joined(splits)
    counted = at_unit is not None or (len(spans) == 1 and len(first.start.parts) == 1)
    inside = {one for one in known.get(first.shard, ()) if first.start < one < last.end} if len(spans) == 1 else set()
    return ShardTail(
        first.shard,
        first.start,
        last.end,
        sum(split.bytes for split in splits),
        spans if counted else (),
        (first.start, *sorted(inside)),
        at_unit,
    )


def _joined(splits: list[Split]) -> tuple[Span, ...]:
    """The spans of adjacent splits; what they cut apart is one again."""
    if not all(split.spans for split in splits):
        return ()
    found: list[Span] = []
    for span in (span for split in splits for span in split.spans):
        if found and found[-1].run == span.run and found[-1].end == span.first:
            found[-1] = replace(found[-1], end=span.end)
        else:
            found.append(span)
    return tuple(found)
