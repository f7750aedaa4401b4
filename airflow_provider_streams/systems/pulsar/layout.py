"""What one shard stores: its ledgers in order, and the arithmetic of positions over them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from airflow_provider_streams.model.plan import Span
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId, InternalStats, Ledger

_NEVER = EntryId(-1, -1)

EARLIEST = Position.of(-1, -1, -1)
"""Before everything a topic ever held."""


def at(ledger: int, entry: int) -> Position:
    """The begin of an entry."""
    return Position.of(ledger, entry, -1)


def after(entry: EntryId) -> Position:
    """Just after a whole entry: `(l, e + 1, -1)`, right at a ledger's end too."""
    return at(entry.ledger, entry.entry + 1)


def after_message(position: Position) -> Position:
    """Just after the entry of a message: how the last readable message becomes a tail."""
    return at(position.parts[0], position.parts[1] + 1)


@dataclass(frozen=True)
class Layout:
    """The ledgers of one shard at one moment."""

    ledgers: tuple[Ledger, ...]
    last_confirmed: EntryId = _NEVER

    @classmethod
    def of(cls, stats: InternalStats | None) -> Layout:
        """From internal stats; None: a partition that nothing was ever written to."""
        return cls(stats.ledgers, stats.last_confirmed) if stats else cls(())

    @cached_property
    def head(self) -> Position:
        """At the first stored entry; of an empty shard: where its next entry may come."""
        for ledger in self.ledgers:
            if ledger.entries:
                return at(ledger.ledger, 0)
        return self.end

    @cached_property
    def end(self) -> Position:
        """After the last stored entry, whatever it is; in the newest ledger, even if that is empty."""
        if not self.ledgers:
            return EARLIEST if self.last_confirmed.ledger < 0 else after(self.last_confirmed)
        return at(self.ledgers[-1].ledger, self.ledgers[-1].entries)

    @property
    def is_empty(self) -> bool:
        """No entry is stored."""
        return not any(ledger.entries for ledger in self.ledgers)

    def holds(self, ledger: int) -> bool:
        """Whether a ledger is still there, be it empty."""
        return any(row.ledger == ledger for row in self.ledgers)

    def inside(self, position: Position) -> Position:
        """The nearest place from the head to the end."""
        return min(max(position, self.head), self.end)

    def index_of(self, position: Position) -> int:
        """How many entries are stored before a place."""
        ledger, entry, _ = position.parts
        older = sum(row.entries for row in self.ledgers if row.ledger < ledger)
        inside = next((row.entries for row in self.ledgers if row.ledger == ledger), 0)
        return older + min(max(entry, 0), inside)

    def shifted(self, position: Position, entries: int) -> Position:
        """The place so many stored entries later (earlier, if negative), across ledgers, not beyond head or end."""
        index = self.index_of(position) + entries
        if index <= 0:
            return self.head
        for row in self.ledgers:
            if index < row.entries:
                return at(row.ledger, index)
            index -= row.entries
        return self.end

    def before(self, position: Position) -> Position:
        """At the last entry stored before a place, in an older ledger if need be; of the first one: at itself."""
        return self.shifted(max(position, self.head), -1)

    def spans(self, start: Position, end: Position) -> tuple[Span, ...]:
        """Every stored entry of which a part lies in `[start, end)`, ledger by ledger; none of an empty stretch.

        A bound inside a batch counts the batch's entry on both of its sides.
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

    def entry_bytes_at(self, position: Position) -> float:
        """The mean stored size of the entries of the ledger of a place; 0: it has none, or is not there."""
        row = next((row for row in self.ledgers if row.ledger == position.parts[0]), None)
        return row.bytes / row.entries if row and row.entries else 0.0

    def entry_bytes(self, ledger: int) -> float:
        """The mean stored size of a ledger's entries."""
        row = next(row for row in self.ledgers if row.ledger == ledger)
        return row.bytes / row.entries if row.entries else 0.0
