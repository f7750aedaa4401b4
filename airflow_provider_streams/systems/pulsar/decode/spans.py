"""Any entries to rows: one buffer of all payloads, and where in it the parts of each message lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.decode import single, starts
from airflow_provider_streams.systems.pulsar.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.decode.entry import Entry, Group
from airflow_provider_streams.systems.pulsar.decode.headers import HeaderParser
from airflow_provider_streams.systems.pulsar.decode.loads import PADDING, Flags, Ints, Loads
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed
from airflow_provider_streams.systems.pulsar.decode.rows import PropertySpans, Rows
from airflow_provider_streams.systems.pulsar.decode.walk import Message, walk

WALK, SINGLE, STRIDE, PIECES, LANES, HOP = range(6)
PATHS: Final = ("walk", "single", "stride", "pieces", "lanes", "hop")
"""How the starts of an entry's messages were found; `walk` also read their headers one by one."""


class MalformedEntry(Exception):
    """A payload that is no batch of as many messages as its metadata state."""

    def __init__(self, entry: Entry, why: Malformed) -> None:
        self.entry, self.why = entry, why
        super().__init__(str(why))


class SpanReader:
    """Reads all `entries` into `rows`, whose spans lie in `data`."""

    def __init__(self, group: Group, columns: Collection[str]) -> None:
        self._entries = group.entries
        self._path = np.where(group.is_batch, WALK, SINGLE)
        self._stored, self._first_row = group.stored, group.first_row
        lengths, parts = _parts(group, columns)
        self._end = np.cumsum(lengths)
        self._begin = self._end - lengths
        self.data = b"".join([*parts, PADDING])
        self._loads = Loads(self.data)
        self.rows = Rows.of(np.repeat(np.arange(len(self._stored)), self._stored), columns)

    @property
    def paths(self) -> Counter[str]:
        """How many entries were read in which way."""
        counts = np.bincount(self._path, minlength=len(PATHS)).tolist()
        return Counter({path: count for path, count in zip(PATHS, counts, strict=True) if count})

    def read(self) -> None:
        """Fill `rows`.

        Raises:
            MalformedEntry: naming an entry that is none.
        """
        self._find_starts()
        parser = HeaderParser(self._loads, self.rows, self._ends())
        chosen = np.flatnonzero((self._path != WALK)[self.rows.owner])
        odd = parser.parse(chosen)
        self._path[self.rows.owner[chosen[odd]]] = WALK
        walked = [self._walk(int(number)) for number in np.flatnonzero(self._path == WALK)]
        if self.rows.properties is not None:
            parsed = parser.properties()
            parsed = parsed.keep((self._path != WALK)[self.rows.owner[parsed.row]])
            self.rows.properties = PropertySpans.joined([parsed, *walked])

    def _find_starts(self) -> None:
        """Fill `rows.begin`, by the cheapest way that fits; what no way fits stays with `WALK`."""
        single_ones = self._path == SINGLE
        self.rows.begin[self._first_row[single_ones]] = self._begin[single_ones]
        for number in np.flatnonzero(~single_ones & (self._stored >= starts.FEWEST_STRIDES)).tolist():
            self._path[number] = self._stride(number)
        large = np.flatnonzero((self._path == WALK) & (self._stored >= starts.FEWEST_TO_CUT))
        if 0 < len(large) <= starts.MOST_LANES // 2:
            self._side_by_side(large, starts.pieces, PIECES)
        left = np.flatnonzero(self._path == WALK)
        if len(left) >= starts.FEWEST_LANES:
            self._side_by_side(left, starts.lanes, LANES)
        for number in np.flatnonzero(self._path == WALK).tolist():
            self._path[number] = self._hop(number)

    def _side_by_side(self, numbers: Ints, walk_all: Callable[[Loads, Ints, Ints, Ints], Flags], path: int) -> None:
        batches = np.stack([self._begin[numbers], self._end[numbers], self._stored[numbers]])
        found = walk_all(self._loads, batches, self._first_row[numbers], self.rows.begin)
        self._path[numbers[found]] = path

    def _stride(self, number: int) -> int:
        begin, end, count = self._place(number)
        step = starts.stride(self._loads, begin, end, count)
        if step is None:
            return WALK
        self.rows.begin[self._rows_of(number)] = np.arange(begin, end, step)
        return STRIDE

    def _hop(self, number: int) -> int:
        begin, end, count = self._place(number)
        found = starts.hop(self.data, begin, end, count)
        if found is None:
            return WALK
        self.rows.begin[self._rows_of(number)] = found
        return HOP

    def _place(self, number: int) -> tuple[int, int, int]:
        """Begin, end and count of a batch."""
        return int(self._begin[number]), int(self._end[number]), int(self._stored[number])

    def _rows_of(self, number: int) -> slice:
        first = int(self._first_row[number])
        return slice(first, first + int(self._stored[number]))

    def _ends(self) -> Ints:
        """Where each message must end: at the next one of its batch, or at the end of its batch."""
        ends = np.empty_like(self.rows.begin)
        ends[:-1] = self.rows.begin[1:]
        filled = self._stored > 0
        ends[(self._first_row + self._stored - 1)[filled]] = self._end[filled]
        return ends

    def _walk(self, number: int) -> PropertySpans:
        begin, end, count = self._place(number)
        row = int(self._first_row[number])
        try:
            messages = list(walk(self.data, begin, end, count))
        except Malformed as error:
            raise MalformedEntry(self._entries[number], error) from error
        found: list[tuple[int, int, int, int, int]] = []
        for message in messages:
            self.rows.put(row, begin, message, self.data)
            found += _property_spans(self.data, row, begin, message)
            begin, row = message.end, row + 1
        return PropertySpans.of(found)


def _parts(group: Group, columns: Collection[str]) -> tuple[Ints, Sequence[Payload]]:
    """What makes up the buffer, and how many bytes each entry has in it: single messages get a header each."""
    sizes = [len(payload) for payload in group.payloads]
    lengths = np.array(sizes)
    if group.is_batch.all():
        return lengths, group.payloads
    heads = [
        b"" if metadata.num_messages is not None else single.header(metadata, size, columns)
        for metadata, size in zip(group.metadata, sizes, strict=True)
    ]
    lengths += [len(head) for head in heads]
    return lengths, list(chain.from_iterable(zip(heads, group.payloads, strict=True)))


def _property_spans(data: bytes, row: int, at: int, message: Message) -> list[tuple[int, int, int, int, int]]:
    """Where the properties of a message lie: their bytes, found again from `at` on in their order."""
    spans = []
    for name, value in message.properties:
        name_start = data.find(name, at, message.start)
        name_end = name_start + len(name)
        value_start = data.find(value, name_end, message.start)
        at = value_start + len(value)
        spans.append((row, name_start, name_end, value_start, at))
    return spans
