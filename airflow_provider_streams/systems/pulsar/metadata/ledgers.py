"""What one shard stores: its ledgers in order, and the arithmetic of positions over them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from airflow_provider_streams.model.plan.plan import Span
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats, Ledger

_NEVER = EntryId(-1, -1)

EARLIEST = Position.of(-1, -1, -1)
"""Before everything a topic ever held."""


def at(ledger: int, entry: int) -> Position:
    """The start of an entry."""
    return Position.of(ledger, entry, -1)


def after(entry: tuple[int, int]) -> Position:
    """Just after a whole entry: `(l, e + 1, -1)`, also at a ledger's end."""
    return at(entry[0], entry[1] + 1)


@dataclass(frozen=True)
class Layout:
    """The ledgers of one shard at one moment."""

    ledgers: tuple[Ledger, ...]
    last_confirmed: EntryId = _NEVER

    @classmethod
    def of(cls, stats: InternalStats | None) -> Layout:
        """From internal stats; None: a partition that was never created."""
        return cls(stats.ledgers, stats.last_confirmed) if stats else cls(())

    @cached_property
    def head(self) -> Position:
        """At the first stored entry; in an empty shard, the place of its next entry."""
        return next((at(row.ledger, 0) for row in self.ledgers if row.entries), self.end)

    @cached_property
    def end(self) -> Position:
        """After the last stored entry of any kind; in the newest ledger, even if that is empty."""
        if not self.ledgers:
            return EARLIEST if self.last_confirmed.ledger < 0 else after(self.last_confirmed)
        return at(self.ledgers[-1].ledger, self.ledgers[-1].entries)

    @property
    def is_empty(self) -> bool:
        """No entry is stored."""
        return not any(ledger.entries for ledger in self.ledgers)

    def holds(self, ledger: int) -> bool:
        """Whether a ledger, perhaps empty, is still stored."""
        return self._ledger(ledger) is not None

    def inside(self, position: Position) -> Position:
        """The nearest place from the head to the end."""
        return min(max(position, self.head), self.end)

    def index_of(self, position: Position) -> int:
        """How many entries are stored before a place."""
        ledger, entry, _ = position.parts
        older = sum(row.entries for row in self.ledgers if row.ledger < ledger)
        row = self._ledger(ledger)
        return older + min(max(entry, 0), row.entries if row else 0)

    def shifted(self, position: Position, entries: int) -> Position:
        """The place so many stored entries later (negative: earlier), across ledgers, between head and end."""
        index = self.index_of(position) + entries
        if index <= 0:
            return self.head
        for row in self.ledgers:
            if index < row.entries:
                return at(row.ledger, index)
            index -= row.entries
        return self.end

    def before(self, position: Position) -> Position:
        """At the last entry stored before a place, perhaps in an older ledger; at least at the first entry."""
        return self.shifted(max(position, self.head), -1)

    def spans(self, start: Position, end: Position) -> tuple[Span, ...]:
        """Every stored entry of which a part is in `[start, end)`, ledger by ledger.

        A bound inside a batch counts the batch's entry on both sides.
        """
        found = []
        for ledger in self.ledgers:
            first = start.parts[1] if ledger.ledger == start.parts[0] else 0
            last = ledger.entries
            if ledger.ledger == end.parts[0]:
                last = min(last, end.parts[1] + (end.parts[2] >= 0))
            inside = start.parts[0] <= ledger.ledger <= end.parts[0]
            if inside and max(first, 0) < last:
                found.append(Span(ledger.ledger, max(first, 0), last))
        return tuple(found)

    def bytes_of(self, spans: Iterable[Span]) -> int:
        """Stored bytes of these entries, by the mean size of each ledger's entries."""
        return round(sum(span.entries * self.entry_bytes(span.run) for span in spans))

    def entry_bytes(self, ledger: int) -> float:
        """The mean stored size of a ledger's entries; 0: it has none, or is gone."""
        row = self._ledger(ledger)
        return row.bytes / row.entries if row and row.entries else 0.0

    def _ledger(self, number: int) -> Ledger | None:
        return next((row for row in self.ledgers if row.ledger == number), None)
