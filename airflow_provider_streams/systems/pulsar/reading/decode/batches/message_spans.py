"""Any entries to rows: one buffer of all payloads, and where in it the parts of each message lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, as_int32, write_varint
from airflow_provider_streams.systems.pulsar.reading.decode.batches import message_offsets
from airflow_provider_streams.systems.pulsar.reading.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.reading.decode.entry import BadEntry, Group
from airflow_provider_streams.systems.pulsar.reading.decode.headers import common_headers
from airflow_provider_streams.systems.pulsar.reading.decode.headers.bulk_headers import CHUNK, HeaderParser
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import (
    LENGTH,
    Span,
    Tag,
    find_starts,
    read_header,
)
from airflow_provider_streams.systems.pulsar.reading.decode.memory import one_memory
from airflow_provider_streams.systems.pulsar.reading.decode.rows import PropertySpans, Rows
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING, Flags, Ints, Loads
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits, TooLarge

WALK, SINGLE, STRIDE, SCAN, PIECES, LANES, HOP = range(7)
PATHS: Final = ("walk", "single", "stride", "scan", "pieces", "lanes", "hop")
"""How the starts of an entry's messages were found; `walk` reads every field of every header."""

_CERTAIN: Final = (WALK, SINGLE)
"""The other ways guess."""

Failures = dict[int, Malformed]
"""Entries, by number, whose messages are not at the expected places, or that have too many properties."""


class SpanReader:
    """Reads all `entries` into `rows`, whose spans lie in `data`."""

    def __init__(self, group: Group, columns: Collection[str], limits: Limits) -> None:
        self._entries, self._limits = group.entries, limits
        self._path = np.where(group.is_batch, WALK, SINGLE)
        self._stored, self._first_row = group.stored, group.first_row
        memory = one_memory(group)
        self.data: bytes | memoryview
        self.data, self._begin, self._end = memory or _joined(group, columns)
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
        """Fill `rows`; raises `BadEntry` for an entry that cannot be read."""
        self._find_starts()
        self._put_ends()
        failures = self._parse(self._uncommon())
        guessed = [number for number in failures if self._path[number] not in _CERTAIN]
        certain = {number: error for number, error in failures.items() if number not in guessed}
        if guessed:
            certain |= self._parse_again(guessed)
        for number, error in certain.items():
            raise BadEntry(self._entries[number], error)
        if self.rows.properties is not None:
            self.rows.properties = PropertySpans.joined(self._properties)

    def _uncommon(self) -> Ints:
        """The rows whose headers are not common ones; reads the common headers."""
        count = len(self.rows)
        if Tag.SEQUENCE_ID in self.rows.numbers:
            return np.arange(count)
        left: list[Ints] = []
        for first in range(0, count, CHUNK):
            odd = common_headers.parse(self._loads, self.rows, slice(first, min(first + CHUNK, count)))
            if odd.all():  # then the others are uncommon as a rule
                return np.concatenate([*left, np.arange(first, count)])
            left.append(np.flatnonzero(odd) + first)
        return np.concatenate(left) if left else np.arange(0)

    def _parse_again(self, guessed: Sequence[int]) -> Failures:
        """Find the starts of these entries by the walk, and parse their rows again."""
        again = np.isin(self.rows.owner, guessed)
        self._properties = [found.keep(~again[found.row]) for found in self._properties]
        self._counts[guessed] = 0
        self._path[guessed] = WALK
        for number in guessed:
            self._walk_starts(number)
        self._put_ends()
        self.rows.clear(again)
        return self._parse(np.flatnonzero(again))

    def _parse(self, chosen: Ints) -> Failures:
        """Fill these rows, if their messages begin and end at the expected places."""
        failures: Failures = {}
        parser = HeaderParser(self._loads, self.rows)
        for first in range(0, len(chosen), CHUNK):
            some = chosen[first : first + CHUNK]
            odd, properties = parser.parse(some)
            if odd.any():  # rows ascend
                properties = [part.keep(~odd[np.searchsorted(some, part.row)]) for part in properties]
                properties.append(self._walk(some[odd], failures))
            if properties:
                self._note_properties(properties, failures)
        return failures

    def _walk(self, odd: Ints, failures: Failures) -> PropertySpans:
        """Fill these rows one by one; returns their properties."""
        found: list[tuple[int, int, int, int, int]] = []
        for row, owner in zip(odd.tolist(), self.rows.owner[odd].tolist(), strict=True):
            if owner in failures:
                continue
            try:
                found += [(row, *name, *value) for name, value in self._walk_row(row)]
            except Malformed as error:
                failures[owner] = error
        return PropertySpans.of(found)

    def _walk_row(self, row: int) -> Sequence[tuple[Span, Span]]:
        at, end = int(self.rows.begin[row]) + LENGTH.size, int(self.rows.value_end[row])
        body = at + LENGTH.unpack_from(self.data, at - LENGTH.size)[0]
        if body > end:
            raise Malformed("the header of a message reaches beyond it")
        most = 0 if self.rows.properties is None else self._limits.max_entry_rows
        header = read_header(self.data, at, body, most_properties=most)
        if body + as_int32(header.number(Tag.SIZE)) != end or Tag.SIZE not in header.last:
            raise Malformed("a message does not end where the next one begins")
        self.rows.put(row, header)
        return header.properties

    def _note_properties(self, found: Sequence[PropertySpans], failures: Failures) -> None:
        """Note properties of many rows, except of an entry that has too many."""
        owners = self.rows.owner[np.concatenate([part.row for part in found])]
        self._counts += np.bincount(owners, minlength=len(self._counts))
        for number in np.flatnonzero(self._counts > self._limits.max_entry_rows).tolist():
            try:
                self._limits.check_rows(int(self._counts[number]), "properties")
            except TooLarge as error:
                failures.setdefault(number, error)
        if failures:
            failed = np.array(list(failures))
            found = [part.keep(~np.isin(self.rows.owner[part.row], failed)) for part in found]
        self._properties += found

    def _find_starts(self) -> None:
        """Fill `rows.begin` by the cheapest way that fits."""
        single_ones = self._path == SINGLE
        self.rows.begin[self._first_row[single_ones]] = self._begin[single_ones]
        many = ~single_ones & (self._stored >= message_offsets.FEWEST_STRIDES)
        for number in np.flatnonzero(many).tolist():
            self._path[number] = self._stride(number)
        short = self._end - self._begin <= self._stored * message_offsets.LONGEST_TO_SCAN
        scanned = np.flatnonzero(many & short & (self._path == WALK))
        if len(scanned):
            self._side_by_side(scanned, message_offsets.scan, SCAN)
        large = np.flatnonzero((self._path == WALK) & (self._stored >= message_offsets.FEWEST_TO_CUT))
        if 0 < len(large) <= message_offsets.MOST_LANES // 2:
            self._side_by_side(large, message_offsets.pieces, PIECES)
        left = np.flatnonzero(self._path == WALK)
        if len(left) >= message_offsets.FEWEST_LANES:
            self._side_by_side(left, message_offsets.lanes, LANES)
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
        step = message_offsets.stride(self._loads, begin, end, count)
        if step is None:
            return WALK
        self.rows.begin[self._rows_of(number)] = np.arange(begin, end, step)
        return STRIDE

    def _hop(self, number: int) -> int:
        begin, end, count = self._place(number)
        found = message_offsets.hop(bytes(self.data[begin:end]), 0, end - begin, count)
        if found is None:
            return WALK
        self.rows.begin[self._rows_of(number)] = np.array(found) + begin
        return HOP

    def _place(self, number: int) -> tuple[int, int, int]:
        """Begin, end and count of a batch."""
        return int(self._begin[number]), int(self._end[number]), int(self._stored[number])

    def _rows_of(self, number: int) -> slice:
        first = int(self._first_row[number])
        return slice(first, first + int(self._stored[number]))

    def _put_ends(self) -> None:
        """Where each message must end: at the next one of its batch, or at the end of its batch."""
        ends, filled = self.rows.value_end, self._stored > 0
        ends[:-1] = self.rows.begin[1:]
        ends[(self._first_row + self._stored - 1)[filled]] = self._end[filled]

    def _walk_starts(self, number: int) -> None:
        try:
            self.rows.begin[self._rows_of(number)] = find_starts(self.data, *self._place(number))
        except Malformed as error:
            raise BadEntry(self._entries[number], error) from error


def _single_header(metadata: EntryMetadata, size: int, columns: Collection[str]) -> bytes:
    """The header of a message without a batch, made of its entry's metadata; only fields that `columns` need.

    It makes the payload of `size` bytes after it look like a batch of one.
    """
    out = b"\x18" + _varint(size)
    if metadata.key is not None and "key" in columns:
        out = b"\x12" + _varint(len(metadata.key)) + metadata.key + out
    if metadata.properties and "properties" in columns:
        out = metadata.properties + out
    if metadata.event_ms and "event_time" in columns:
        out += b"\x28" + write_varint(metadata.event_ms)
    if metadata.key_b64 and "key_bytes" in columns:
        out += b"\x30\x01"
    if metadata.ordering_key is not None and "ordering_key" in columns:
        out += b"\x3a" + _varint(len(metadata.ordering_key)) + metadata.ordering_key
    if metadata.sequence_id is not None and "sequence_id" in columns:
        out += b"\x40" + write_varint(metadata.sequence_id)
    if metadata.null_value:
        out += b"\x48\x01"
    return LENGTH.pack(len(out)) + out


def _varint(number: int) -> bytes:
    return _SMALL_VARINTS[number] if number < len(_SMALL_VARINTS) else write_varint(number)


_SMALL_VARINTS: Final = [write_varint(number) for number in range(1 << 10)]


def _joined(group: Group, columns: Collection[str]) -> tuple[bytes, Ints, Ints]:
    """One buffer, and where each entry begins and ends in it; single messages get a header each."""
    sizes = [len(payload) for payload in group.payloads]
    lengths = np.array(sizes)
    parts: Iterable[Payload] = group.payloads
    if not group.is_batch.all():
        heads = [
            b"" if metadata.num_messages is not None else _single_header(metadata, size, columns)
            for metadata, size in zip(group.metadata, sizes, strict=True)
        ]
        lengths += [len(head) for head in heads]
        parts = chain.from_iterable(zip(heads, group.payloads, strict=True))
    ends = np.cumsum(lengths)
    return b"".join([*parts, PADDING]), ends - lengths, ends
