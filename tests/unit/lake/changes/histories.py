"""A small database with concurrent transactions, its connector, and a stream of what the connector sent, as lists.

Nothing here knows how changes are applied. `Event.number` is the change's place in the source's log as it was
published: the truth, which the applying side never sees.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field, replace
from typing import Any

KEYS = 4
COLUMNS = ("a", "b", "c")
Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One message of the stream."""

    op: str
    key: int | None
    values: Row
    position: int
    lsn: int
    time: int
    number: int = -1
    """Of a change, copies included; -1: a row of a snapshot."""
    unavailable: tuple[str, ...] = ()

    def row(self, history: int = 0) -> Row:
        """As a change row."""
        return {
            "h": history,
            "id": self.key,
            **{name: self.values.get(name) for name in COLUMNS},
            "_op": self.op,
            "_position": f"{self.position:08x}",
            "_log_position": f"{self.lsn:016X}",
            "_source_ts": self.time,
            "_unavailable": list(self.unavailable),
        }


@dataclass
class _Transaction:
    changes: list[tuple[str, int | None, Row, int, tuple[str, ...]]] = field(default_factory=list)
    rows: dict[int, Row | None] = field(default_factory=dict)
    waiting: dict[int, tuple[Row, int]] = field(default_factory=dict)
    """Inserts that were written, and wait for the transaction that holds the key."""


class Database:
    """Runs a random workload; `events` is the stream."""

    def __init__(self, seed: int, *, copies_cross_snapshots: bool = False, commit_log: bool = False) -> None:
        self.random = random.Random(seed)
        self.rows: dict[int, Row] = {}
        self.events: list[Event] = []
        self._crosses, self._commit_log = copies_cross_snapshots, commit_log
        self._open: list[_Transaction] = []
        self._log: list[Event] = []
        self._resendable = 0
        self._lsn = self._time = 1000
        self._run(self.random.randint(8, 40))

    def _run(self, steps: int) -> None:
        if self.random.random() < 0.5:
            for _ in range(3):
                self._step()
            self._snapshot()
        for _ in range(steps):
            self._step()
            if self.random.random() < (0.12 if self._crosses else 0.05):
                self._snapshot()
            if self.random.random() < (0.25 if self._crosses else 0.12):
                self._restart()
        while self._open:
            self._commit(self._open[0])

    def _step(self) -> None:
        draw = self.random.random()
        if draw < 0.25 and len(self._open) < 3:
            self._open.append(_Transaction())
        elif draw < 0.4 and self._open:
            self._commit(self.random.choice(self._open))
        elif draw < 0.45:
            self._truncate()
        elif self._open:
            self._change(self.random.choice(self._open), self.random.randrange(KEYS))
        else:
            self._open.append(_Transaction())

    def _next_lsn(self) -> int:
        self._lsn += self.random.randint(1, 300)
        return self._lsn

    def _change(self, transaction: _Transaction, key: int) -> None:
        holder = next((one for one in self._open if key in one.rows), None)
        if holder is not None and holder is not transaction:
            # the insert is written, then it finds the key: it can only go on if the holder deletes the row
            if not any(key in one.waiting for one in self._open) and not transaction.waiting:
                transaction.waiting[key] = (self._values(), self._next_lsn())
            return
        if key in transaction.waiting:
            return
        now = transaction.rows[key] if key in transaction.rows else self.rows.get(key)
        if now is None:
            self._write(transaction, "c", key, self._values())
        elif self.random.random() < 0.35:
            self._write(transaction, "d", key, None)
        else:
            self._update(transaction, key, now)

    def _update(self, transaction: _Transaction, key: int, now: Row) -> None:
        new = self._values()
        unavailable = () if self._crosses else tuple(name for name in COLUMNS if self.random.random() < 0.25)
        self._write(
            transaction,
            "u",
            key,
            {name: now[name] if name in unavailable else new[name] for name in COLUMNS},
            unavailable,
        )

    def _write(
        self, transaction: _Transaction, op: str, key: int, values: Row | None, unavailable: tuple[str, ...] = ()
    ) -> None:
        transaction.rows[key] = values
        sent = {name: value for name, value in (values or {}).items() if name not in unavailable}
        transaction.changes.append((op, key, sent, self._next_lsn(), unavailable))

    def _values(self) -> Row:
        return {name: self.random.choice([None, self.random.randrange(100)]) for name in COLUMNS}

    def _commit(self, transaction: _Transaction) -> None:
        self._open.remove(transaction)
        self._time += self.random.randint(1, 50)
        for key, (values, lsn) in transaction.waiting.items():
            if key not in self.rows and not any(key in one.rows for one in self._open):
                transaction.rows[key] = values
                transaction.changes.append(("c", key, values, lsn, ()))
        self._publish(transaction.changes)
        for key, row in transaction.rows.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

    def _publish(self, changes: list[tuple[str, int | None, Row, int, tuple[str, ...]]]) -> None:
        for op, key, values, lsn, unavailable in changes:
            place = len(self._log) + 5000 if self._commit_log else lsn
            event = Event(op, key, values, len(self.events), place, self._time, len(self._log), unavailable)
            self._log.append(event)
            self.events.append(event)

    def _truncate(self) -> None:
        if self._open:
            return
        self._time += 1
        changes: list[tuple[str, int | None, Row, int, tuple[str, ...]]] = [("t", None, {}, self._next_lsn(), ())]
        self.rows = {}
        if self.random.random() < 0.3:  # and inserts in the same transaction
            key, values = self.random.randrange(KEYS), self._values()
            changes.append(("c", key, values, self._next_lsn(), ()))
            self.rows[key] = values
        self._publish(changes)

    def _snapshot(self) -> None:
        lsn = self._next_lsn() if not self._commit_log else len(self._log) + 4999
        time = self._time + self.random.randint(0, 100)  # a snapshot takes a while, and others commit meanwhile
        rows = list(self.rows.items())
        self.random.shuffle(rows)
        for key, row in rows:
            self.events.append(Event("r", key, dict(row), len(self.events), lsn, time))
        if not self._crosses:
            self._resendable = len(self._log)

    def _restart(self) -> None:
        """Changes since the last stored place come again, with the same coordinates."""
        if len(self._log) > self._resendable:
            first = self.random.randint(max(self._resendable, len(self._log) - 8), len(self._log) - 1)
            for event in self._log[first:]:
                self.events.append(replace(event, position=len(self.events)))


def in_source_order(events: list[Event]) -> list[Event]:
    """Without copies, as the source published them.

    A snapshot's row comes after all changes that are known to be before it in the stream, and after all that the source
    published before those. A truncate has no key: snapshots' rows compare with it by coordinates.
    """
    first: dict[int, Event] = {}
    for event in sorted(events, key=lambda one: one.position):
        if event.number >= 0:
            first.setdefault(event.number, event)
    changes = [first[number] for number in sorted(first)]
    placed: list[tuple[int, int, int, Event]] = [(one.number, 0, one.position, one) for one in changes]
    for event in {one.position: one for one in events if one.number < 0}.values():
        before = [
            one.number
            for one in changes
            if (one.position < event.position if one.key == event.key else one.op == "t" and one.lsn <= event.lsn)
        ]
        placed.append((max(before, default=-1), 1, event.position, event))
    return [one for _, _, _, one in sorted(placed, key=lambda one: one[:3])]


def fold(events: list[Event]) -> dict[int, Row]:
    """The table after one pass over changes in the source's order."""
    table: dict[int, Row] = {}
    for event in in_source_order(events):
        if event.op == "t":
            table.clear()
        elif event.op == "d":
            table.pop(event.key, None)  # type: ignore[arg-type]
        else:
            before = table.get(event.key, {}) if event.op == "u" else {}  # type: ignore[arg-type]
            kept = {name: before.get(name) for name in event.unavailable}
            table[event.key] = {**{name: event.values.get(name) for name in COLUMNS}, **kept}  # type: ignore[index]
    return table


@dataclass(frozen=True)
class Schedule:
    """In which order windows of a stream are applied, some of them more than once and some never."""

    windows: list[list[Event]]
    order: list[int]

    @property
    def covered(self) -> list[Event]:
        """The events of the windows that were applied."""
        return [event for number in set(self.order) for event in self.windows[number]]


def schedule(events: list[Event], seed: int, *, all_of_them: bool = False) -> Schedule:
    """Cut a stream into windows, and apply some of them in any order."""
    chance = random.Random(seed)
    edges = sorted({0, len(events), *(chance.randint(0, len(events)) for _ in range(chance.randint(0, 15)))})
    windows = [events[start:end] for start, end in itertools.pairwise(edges)]
    chosen = [number for number in range(len(windows)) if all_of_them or chance.random() < 0.7]
    order = chosen + [number for number in chosen if chance.random() < 0.3]
    chance.shuffle(order)
    return Schedule(windows, order)
