"""Steps that read values with inner values, for all lanes at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.arrow.vectorized_cursor import ColumnSlots, VectorizedCursor
from airflow_provider_streams.formats.avro.column_decoders import VARINT_ROOM, Step, read_index
from airflow_provider_streams.formats.avro.row_decoder import MOST_EMPTY_ITEMS, RowReader
from airflow_provider_streams.formats.decode_failures import GOOD, Causes

FEW_LANES: Final = 24
"""Fewer lanes read their items one by one: a step costs as much for one lane as for hundreds."""

FEW_OF: Final = 4
"""If fewer than one of so many lanes have a value, only they are read."""

_NULL_AND_ANOTHER: Final = 2


class Structs(Step):
    """Fields, one after the other."""

    def __init__(self, kind: pa.StructType, steps: Sequence[Step]) -> None:
        self.kind, self._steps = kind, steps
        self.room = sum(step.room for step in steps)
        self.least = sum(step.least for step in steps)

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        fields = [step.read(lanes, places) for step in self._steps]
        return arrays.structs(cast("pa.StructType", self.kind), fields, places.count, places.valid)


class Branches(Step):
    """The index of a branch, and its value. A branch without a step is null."""

    def __init__(self, kind: pa.DataType, branches: Sequence[Step | None], broken: int, unknown: int) -> None:
        self.kind, self._branches, self._broken, self._unknown = kind, branches, broken, unknown
        self.room = VARINT_ROOM + max((step.room for step in branches if step), default=0)

    def _index_of(self, lanes: VectorizedCursor) -> Ints:
        return read_index(lanes, len(self._branches), self._broken, self._unknown)

    def _columns(self, lanes: VectorizedCursor, places: ColumnSlots) -> Iterator[tuple[Flags, Array]]:
        """The lanes and the column of each branch but null."""
        index = self._index_of(lanes)
        for number, step in enumerate(self._branches):
            if step is not None:
                present = (index == number) & (lanes.codes == GOOD)
                yield present, _some(step, lanes, places, present)


class Alone(Branches):
    """A union of which at most one branch is not null: the column of that branch, with nulls."""

    def __init__(self, kind: pa.DataType, branches: Sequence[Step | None], broken: int, unknown: int) -> None:
        super().__init__(kind, branches, broken, unknown)
        self._index = next((at for at, step in enumerate(branches) if step), -1)
        self._step = branches[self._index] if self._index >= 0 else None
        self._is_nullable = (
            len(branches) == _NULL_AND_ANOTHER and self._index == 1 and self._step is not None and self._step.takes_zero
        )

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        index = self._index_of(lanes)
        if self._step is None:
            return arrays.nulls(self.kind, places.count)
        if self._is_nullable and places.whole and places.valid is None and not lanes.codes.any():
            present = index == 1
            if np.count_nonzero(present) >= len(present) // FEW_OF:
                # null's index ends with a byte of zero: read again, as the value, it ends where the index did
                lanes.at += index - 1
                return self._step.read(lanes, places.nulls_but(present))
        return _some(self._step, lanes, places, (index == self._index) & (lanes.codes == GOOD))


class WidenedUnions(Branches):
    """A union of numbers that one type holds."""

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        values = np.zeros(places.count, np.float64 if pa.types.is_floating(self.kind) else np.int64)
        valid = np.zeros(places.count, np.bool_)
        for _, column in self._columns(lanes, places):
            here = arrays.valid_flags(column)
            with np.errstate(invalid="ignore"):  # a NaN that signals becomes one that does not
                values[here] = arrays.number_values(column)[here]
            valid |= here
        return arrays.numbers(self.kind, values, valid)


class Unions(Branches):
    """Any other union: structs with a field for each branch but null, of which one is not null."""

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        members, valid = [], np.zeros(places.count, np.bool_)
        for present, column in self._columns(lanes, places):
            members.append(column)
            valid[places.index[present]] = True
        return arrays.structs(cast("pa.StructType", self.kind), members, places.count, valid)


class Lists(Step):
    """Arrays or maps: blocks of items, each after its number of items, up to an empty block.

    Each round reads one item of every lane that has one left. The last few lanes read their items one by one.
    """

    def __init__(self, kind: pa.DataType, item: Step, rows: RowReader, causes: Causes, path: str) -> None:
        self.kind, self._item, self._rows = kind, item, rows
        self.room = 3 * VARINT_ROOM + item.room
        self._broken = causes.code(f"{path}: ends early, or is no Avro array or map")
        self._too_many = causes.code(f"{path}: claims more items than its bytes can hold")
        self._double = causes.code(f"{path}: a key is there twice")

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        pieces, owners = self._items(lanes)
        counts = np.bincount(owners, minlength=len(lanes)) if len(owners) else np.zeros(len(lanes), np.int64)
        items = _together(pieces, owners, self._item.kind)
        if pa.types.is_map(self.kind):
            self._refuse_doubles(lanes, items, counts)
        return arrays.lists(self.kind, places.spread(counts), items, places.valid)

    def _items(self, lanes: VectorizedCursor) -> tuple[list[Array], Ints]:
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
            pieces.append(self._item.read(sub, ColumnSlots.all(len(active))))
            owners.append(active)
            sub.fail(sub.at > sub.end, self._broken)
            lanes.put(active, sub)
            good = sub.codes == GOOD
            active, left = active[good], left[good] - 1
        return pieces, np.concatenate(owners) if owners else np.zeros(0, np.int64)

    def _next_blocks(self, lanes: VectorizedCursor, active: Ints, left: Ints, taken: Ints) -> tuple[Ints, Ints]:
        """Starts the next block of lanes whose block has ended. Lanes without a next block are done."""
        ended = left == 0
        if not ended.any():
            return active, left
        lane = active[ended]
        sub = lanes.pick(lane)
        counts = self._block(sub)
        most = (sub.end - sub.at) // self._item.least if self._item.least else MOST_EMPTY_ITEMS - taken[lane]
        taken[lane] += counts
        sub.fail((counts < 0) | (counts > most), self._too_many)
        lanes.put(lane, sub)
        left[ended] = np.where(sub.codes == GOOD, counts, 0)
        return active[left > 0], left[left > 0]

    def _block(self, lanes: VectorizedCursor) -> Ints:
        """The number of items; after a negative number comes the block's size in bytes, which is not needed."""
        counts = lanes.zigzag(self._broken)
        sized = np.flatnonzero((counts < 0) & (lanes.codes == GOOD))
        if len(sized):
            sub = lanes.pick(sized)
            sub.zigzag(self._broken)
            lanes.put(sized, sub)
        return np.abs(counts)  # the least number has no positive and stays negative: too many

    def _rest(self, lanes: VectorizedCursor, active: Ints, left: Ints, taken: Ints) -> tuple[Array, Ints]:
        """The remaining items of a few lanes, one by one."""
        values: list[Any] = []
        owners: list[Ints] = []
        for lane, count in zip(active.tolist(), left.tolist(), strict=True):
            found = self._rows.items(lanes, lane, count, int(taken[lane]))
            values.extend(found)
            owners.append(np.full(len(found), lane, np.int64))
        return pa.array(values, self._item.kind), np.concatenate(owners)

    def _refuse_doubles(self, lanes: VectorizedCursor, entries: Array, counts: Ints) -> None:
        """Fail lanes with a map that has a key twice: either value could be meant."""
        if not len(entries):
            return
        keys = cast("pa.StructArray", entries).field(0).dictionary_encode()
        whose = np.repeat(np.arange(len(counts)), counts)
        both = whose * len(keys.dictionary) + arrays.number_values(keys.indices)
        unique, first = np.unique(both, return_index=True)
        if len(unique) < len(both):
            double = np.ones(len(both), np.bool_)
            double[first] = False
            wrong = np.zeros(len(lanes), np.bool_)
            wrong[whose[double]] = True
            lanes.fail(wrong, self._double)


class InnerRecords(Step):
    """A record inside itself: read one by one, as JSON text."""

    kind = pa.string()
    room = 0

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        texts: list[str | None] = [None] * places.count
        for lane in np.flatnonzero(lanes.codes == GOOD).tolist():
            texts[places.index[lane]] = self._rows.value(lanes, lane)
        return pa.array(texts, self.kind)


def _some(step: Step, lanes: VectorizedCursor, places: ColumnSlots, present: Flags) -> Array:
    """The column of the lanes with a value, with nulls for the others."""
    if present.all():
        return step.read(lanes, places)
    some = np.flatnonzero(present)
    if not len(some):
        return arrays.nulls(step.kind, places.count)
    sub = lanes.pick(some)
    column = step.read(sub, places.some(some))
    lanes.put(some, sub)
    return column


def _together(pieces: list[Array], owners: Ints, kind: pa.DataType) -> Array:
    """Items in the order of their lanes."""
    if not pieces:
        return arrays.nulls(kind, 0)
    if len(pieces) == 1:
        return pieces[0]
    order = np.argsort(owners, kind="stable")
    return pa.concat_arrays(pieces).take(arrays.numbers(pa.int64(), order))
