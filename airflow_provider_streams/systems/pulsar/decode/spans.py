"""Any entries to rows: one buffer of all payloads, and where in it the parts of each message lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.decode import single, starts
from airflow_provider_streams.systems.pulsar.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.decode.entry import BadEntry, Group
from airflow_provider_streams.systems.pulsar.decode.headers import CHUNK, HeaderParser
from airflow_provider_streams.systems.pulsar.decode.loads import PADDING, Flags, Ints, Loads
from airflow_provider_streams.systems.pulsar.decode.rows import PropertySpans, Rows
from airflow_provider_streams.systems.pulsar.decode.walk import LENGTH, Span, find_starts, read_header
from airflow_provider_streams.systems.pulsar.limits import Limits, TooLarge
from airflow_provider_streams.systems.pulsar.protobuf import Malformed

WALK, SINGLE, STRIDE, PIECES, LANES, HOP = range(6)
PATHS: Final = ("walk", "single", "stride", "pieces", "lanes", "hop")
"""How the starts of an entry's messages were found: `walk` read every field of every header on the way."""


class SpanReader:
    """Reads all `entries` into `rows`, whose spans lie in `data`."""

    def __init__(self, group: Group, columns: Collection[str], limits: Limits) -> None:
        self._entries, self._limits = group.entries, limits
        self._path = np.where(group.is_batch, WALK, SINGLE)
        self._stored, self._first_row = group.stored, group.first_row
        lengths, parts = _parts(group, columns)
        self._end = np.cumsum(lengths)
        self._begin = self._end - lengths
        self.data = b"".join([*parts, PADDING])
        self._loads = Loads(self.data)
        self.rows = Rows.of(np.repeat(np.arange(len(self._stored)), self._stored), columns)
        self._properties: list[PropertySpans] = []
        self._counts = np.zeros(len(self._stored), np.int64)

    @property
    def paths(self) -> Counter[str]:
        """How many entries were read in which way."""
        counts = np.bincount(self._path, minlength=len(PATHS)).tolist()
        return Counter({path: count for path, count in zip(PATHS, counts, strict=True) if count})

    def read(self) -> None:
        """Fill `rows`.

        Raises:
            BadEntry: naming an entry that cannot be read.
        """
        self._find_starts()
        odd = self._parse(np.arange(len(self.rows)))
        guessed = np.unique(self.rows.owner[odd])
        guessed = guessed[~np.isin(self._path[guessed], (WALK, SINGLE))]
        if len(guessed):
            odd = self._parse_again(odd, guessed)
        self._walk_all(odd)
        if self.rows.properties is not None:
            self.rows.properties = PropertySpans.joined(self._properties)

    def _parse(self, chosen: Ints) -> Ints:
        """Parse the headers of these rows; returns those left to the walk."""
        parser = HeaderParser(self._loads, self.rows, self._ends())
        left = []
        for first in range(0, len(chosen), CHUNK):
            some = chosen[first : first + CHUNK]
            odd, properties = parser.parse(some)
            left.append(some[odd])
            if odd.any():  # rows ascend
                properties = [part.keep(~odd[np.searchsorted(some, part.row)]) for part in properties]
            self._note_properties(properties)
        return np.concatenate(left) if left else chosen

    def _parse_again(self, odd: Ints, guessed: Ints) -> Ints:
        """Find the starts of these entries by the walk, and parse their rows again; returns the rows left to it."""
        again = np.isin(self.rows.owner, guessed)
        self._properties = [found.keep(~again[found.row]) for found in self._properties]
        self._counts[guessed] = 0
        self._path[guessed] = WALK
        for number in guessed.tolist():
            self._walk_starts(number)
        self.rows.clear(again)
        return np.concatenate([odd[~again[odd]], self._parse(np.flatnonzero(again))])

    def _find_starts(self) -> None:
        """Fill `rows.begin`, by the cheapest way that fits."""
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
        for number in np.flatnonzero(self._path == WALK).tolist():
            self._walk_starts(number)

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

    def _walk_starts(self, number: int) -> None:
        try:
            self.rows.begin[self._rows_of(number)] = find_starts(self.data, *self._place(number))
        except Malformed as error:
            raise BadEntry(self._entries[number], error) from error

    def _walk_all(self, odd: Ints) -> None:
        """Read the headers of these rows, whose messages end where they should, one by one."""
        found: list[tuple[int, int, int, int, int]] = []
        for row, owner in zip(odd.tolist(), self.rows.owner[odd].tolist(), strict=True):
            try:
                properties = self._walk(row)
                if properties:
                    self._counts[owner] += len(properties)
                    self._limits.check_rows(int(self._counts[owner]), "properties")
            except Malformed as error:
                raise BadEntry(self._entries[owner], error) from error
            found += [(row, *name, *value) for name, value in properties]
        self._properties.append(PropertySpans.of(found))

    def _walk(self, row: int) -> Sequence[tuple[Span, Span]]:
        at, body = int(self.rows.begin[row]) + LENGTH.size, int(self.rows.value_start[row])
        header = read_header(self.data, at, body, with_properties=self.rows.properties is not None)
        self.rows.put(row, header)
        return header.properties

    def _note_properties(self, found: Sequence[PropertySpans]) -> None:
        """Note properties of many rows, as long as no entry has too many."""
        if not found:
            return
        self._properties += found
        owners = self.rows.owner[np.concatenate([part.row for part in found])]
        self._counts += np.bincount(owners, minlength=len(self._counts))
        most = int(self._counts.argmax())
        try:
            self._limits.check_rows(int(self._counts[most]), "properties")
        except TooLarge as error:
            raise BadEntry(self._entries[most], error) from error


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
