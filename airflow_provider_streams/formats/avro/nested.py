"""Readers of values that hold other values, for all lanes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import (
    Array,
    Flags,
    Ints,
    lists,
    nulls,
    number_values,
    numbers,
    structs,
    valid_flags,
)
from airflow_provider_streams.formats.avro.rows import MOST_EMPTY_ITEMS, RowReader
from airflow_provider_streams.formats.avro.steps import VARINT_ROOM, Step, read_index
from airflow_provider_streams.formats.causes import GOOD, Causes
from airflow_provider_streams.formats.lanes import Lanes, Places

FEW_LANES: Final = 24
"""With fewer lanes than these, items are read one by one: a step costs as much for one lane as for hundreds."""


FEW_OF: Final = 4
"""Where a value is there in fewer than one of so many lanes, they alone are read."""

_NULL_AND_ANOTHER: Final = 2


class Structs:
    """Fields, one after the other."""

    takes_zero = False

    def __init__(self, kind: pa.StructType, steps: Sequence[Step]) -> None:
        self.kind, self._steps = kind, steps
        self.room = sum(step.room for step in steps)
        self.least = sum(step.least for step in steps)

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Structs."""
        fields = [step.read(lanes, places) for step in self._steps]
        return structs(self.kind, fields, places.count, places.valid)


class Alone:
    """The index of a branch, of which one at most is not null."""

    takes_zero = False

    def __init__(self, kind: pa.DataType, branches: Sequence[Step | None], broken: int, unknown: int) -> None:
        self.kind, self._count = kind, len(branches)
        self._index = next((at for at, step in enumerate(branches) if step), -1)
        self._step = branches[self._index] if self._index >= 0 else None
        self._is_nullable = (
            self._count == _NULL_AND_ANOTHER and self._index == 1 and self._step is not None and self._step.takes_zero
        )
        self._broken, self._unknown = broken, unknown
        self.room = VARINT_ROOM + (self._step.room if self._step else 0)
        self.least = 1

    def read(self, lanes: Lanes, places: Places) -> Array:
        """The column of that branch, with nulls."""
        index = read_index(lanes, self._count, self._broken, self._unknown)
        if self._step is None:
            return nulls(self.kind, places.count)
        if self._is_nullable and places.whole and places.valid is None and not lanes.codes.any():
            present = index == 1
            if np.count_nonzero(present) >= len(present) // FEW_OF:
                # null's index ends with a byte of zero: read again, as the value, it ends where the index did
                lanes.at += index - 1
                return self._step.read(lanes, places.nulls_but(present))
        return _some(self._step, lanes, places, (index == self._index) & (lanes.codes == GOOD))


class WidenedUnions:
    """The index of a branch; branches of numbers that one type can hold."""

    room = 2 * VARINT_ROOM
    least = 1
    takes_zero = False

    def __init__(self, kind: pa.DataType, branches: Sequence[Step | None], broken: int, unknown: int) -> None:
        self.kind, self._branches = kind, branches
        self._broken, self._unknown = broken, unknown

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Numbers."""
        index = read_index(lanes, len(self._branches), self._broken, self._unknown)
        values = np.zeros(places.count, np.float64 if pa.types.is_floating(self.kind) else np.int64)
        valid = np.zeros(places.count, np.bool_)
        for number, step in enumerate(self._branches):
            present = (index == number) & (lanes.codes == GOOD)
            if step is not None and present.any():
                column = _some(step, lanes, places, present)
                here = valid_flags(column)
                with np.errstate(invalid="ignore"):  # a NaN that signals becomes one that does not
                    values[here] = number_values(column)[here]
                valid |= here
        return numbers(self.kind, values, valid)


class Unions:
    """The index of a branch; each branch is a field of a struct."""

    takes_zero = False

    def __init__(self, kind: pa.StructType, branches: Sequence[Step | None], broken: int, unknown: int) -> None:
        self.kind, self._branches = kind, branches
        self._broken, self._unknown = broken, unknown
        self.room = VARINT_ROOM + max((step.room for step in branches if step), default=0)
        self.least = 1

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Structs of which one field is not null; null for the branch null."""
        index = read_index(lanes, len(self._branches), self._broken, self._unknown)
        members, valid = [], np.zeros(places.count, np.bool_)
        for number, step in enumerate(self._branches):
            if step is not None:
                present = (index == number) & (lanes.codes == GOOD)
                members.append(_some(step, lanes, places, present))
                valid[places.index[present]] = True
        return structs(self.kind, members, places.count, valid)


class Lists:
    """Blocks of items, each with their number before them, up to a block of none.

    Each step reads one item of each lane that has one left. When few lanes have, their items are read one by one.
    """

    takes_zero = False

    def __init__(self, kind: pa.DataType, item: Step, rows: RowReader, causes: ListCauses) -> None:
        self.kind, self._item, self._rows, self._causes = kind, item, rows, causes
        self.room = 3 * VARINT_ROOM + item.room
        self.least = 1

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Lists or maps."""
        pieces, owners = self._items(lanes)
        counts = np.bincount(owners, minlength=len(lanes)) if len(owners) else np.zeros(len(lanes), np.int64)
        items = _together(pieces, owners, self._item.kind)
        if pa.types.is_map(self.kind):
            self._refuse_doubles(lanes, items, counts)
        return lists(self.kind, places.spread(counts), items, places.valid)

    def _items(self, lanes: Lanes) -> tuple[list[Array], Ints]:
        """The items in the order of reading, and the lane of each."""
        pieces: list[Array] = []
        owners: list[Ints] = []
        active = np.flatnonzero(lanes.codes == GOOD)
        left = np.zeros(len(active), np.int64)
        taken = np.zeros(len(lanes), np.int64)
        while len(active):
            if len(active) < FEW_LANES:
                values, whose = self._rest(lanes, active, left, taken)
                pieces.append(values)
                owners.append(whose)
                break
            active, left = self._next_blocks(lanes, active, left, taken)
            if not len(active):
                break
            sub = lanes.pick(active)
            pieces.append(self._item.read(sub, Places.all(len(active))))
            owners.append(active)
            sub.fail(sub.at > sub.end, self._causes.broken)
            lanes.put(active, sub)
            good = sub.codes == GOOD
            active, left = active[good], left[good] - 1
        return pieces, np.concatenate(owners) if owners else np.zeros(0, np.int64)

    def _next_blocks(self, lanes: Lanes, active: Ints, left: Ints, taken: Ints) -> tuple[Ints, Ints]:
        """Where a block has ended: how many items the next one has. Lanes without another one are done."""
        ended = left == 0
        if not ended.any():
            return active, left
        lane = active[ended]
        sub = lanes.pick(lane)
        counts = self._block(sub)
        taken[lane] += counts
        sub.fail(self._too_many(sub, counts, taken[lane]), self._causes.too_many)
        lanes.put(lane, sub)
        left[ended] = np.where(sub.codes == GOOD, counts, 0)
        return active[left > 0], left[left > 0]

    def _block(self, lanes: Lanes) -> Ints:
        """The number of items; where it is negative, the block's size in bytes follows, which nobody needs here."""
        counts = lanes.zigzag(self._causes.broken)
        sized = np.flatnonzero((counts < 0) & (lanes.codes == GOOD))
        if len(sized):
            sub = lanes.pick(sized)
            sub.zigzag(self._causes.broken)
            lanes.put(sized, sub)
        return np.abs(counts)  # of the least number, which has no positive, it stays negative: too many

    def _too_many(self, lanes: Lanes, counts: Ints, taken: Ints) -> Flags:
        room = lanes.end - lanes.at
        if self._item.least:
            found: Flags = (counts < 0) | (counts > room // self._item.least)
            return found
        return (counts < 0) | (counts > MOST_EMPTY_ITEMS) | (taken > MOST_EMPTY_ITEMS)

    def _rest(self, lanes: Lanes, active: Ints, left: Ints, taken: Ints) -> tuple[Array, Ints]:
        """All that is left of a few lanes, item by item."""
        values: list[Any] = []
        owners: list[Ints] = []
        for lane, count in zip(active.tolist(), left.tolist(), strict=True):
            found = self._rows.items(lanes, lane, count, int(taken[lane]))
            values.extend(found)
            owners.append(np.full(len(found), lane, np.int64))
        return pa.array(values, self._item.kind), np.concatenate(owners)

    def _refuse_doubles(self, lanes: Lanes, entries: Array, counts: Ints) -> None:
        """A key that a map has twice: nobody can say which value was meant."""
        if not len(entries):
            return
        keys = cast("pa.StructArray", entries).field(0).dictionary_encode()
        whose = np.repeat(np.arange(len(counts)), counts)
        both = whose * len(keys.dictionary) + number_values(keys.indices)
        unique, first = np.unique(both, return_index=True)
        if len(unique) < len(both):
            double = np.ones(len(both), np.bool_)
            double[first] = False
            wrong = np.zeros(len(lanes), np.bool_)
            wrong[whose[double]] = True
            lanes.fail(wrong, self._causes.double)


class ListCauses:
    """Why a lane's array or map cannot be read."""

    def __init__(self, causes: Causes, path: str) -> None:
        self.broken = causes.code(f"{path}: ends early, or is no Avro array or map")
        self.too_many = causes.code(f"{path}: claims more items than its bytes can hold")
        self.double = causes.code(f"{path}: a key is there twice")


class InnerRecords:
    """A record inside itself: read one by one, as JSON."""

    kind = pa.string()
    room = 0
    least = 1
    takes_zero = False

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def read(self, lanes: Lanes, places: Places) -> Array:
        """JSON text."""
        texts: list[str | None] = [None] * places.count
        for lane in np.flatnonzero(lanes.codes == GOOD).tolist():
            texts[places.index[lane]] = self._rows.value(lanes, lane)
        return pa.array(texts, self.kind)


def _some(step: Step, lanes: Lanes, places: Places, present: Flags) -> Array:
    """The column of the lanes that have a value, with nulls for the others."""
    if present.all():
        return step.read(lanes, places)
    some = np.flatnonzero(present)
    if not len(some):
        return nulls(step.kind, places.count)
    sub = lanes.pick(some)
    column = step.read(sub, places.some(some))
    lanes.put(some, sub)
    return column


def _together(pieces: list[Array], owners: Ints, kind: pa.DataType) -> Array:
    """Items in the order of their lanes."""
    if not pieces:
        return nulls(kind, 0)
    if len(pieces) == 1:
        return pieces[0]
    order = np.argsort(owners, kind="stable")
    return pa.concat_arrays(pieces).take(numbers(pa.int64(), order))
