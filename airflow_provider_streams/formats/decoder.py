"""Payload bytes to columns: each payload by the schema it was written with, all of them as the plan's columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Flags, Ints, nulls, numbers, offsets_of, spread, valid_flags
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes, blame
from airflow_provider_streams.formats.framing import (
    JAVA,
    Framed,
    named_by_header,
    named_by_message,
    none_named,
    of_version,
    starts_as_java,
    version_numbers,
)
from airflow_provider_streams.formats.registered import Registered
from airflow_provider_streams.formats.versions import Projected, VersionReader
from airflow_provider_streams.model.decoding import ANY_NAME, ANY_VERSION, Decoding

MOST_ROWS: Final = 20_000
MOST_BYTES: Final = 16 << 20
"""Payloads are decoded in pieces of so many: the work's memory is theirs, and fits into a processor's cache. A whole
batch of a system's reader is one piece, since each piece costs something by itself, however few its rows are."""


class Payloads(NamedTuple):
    """A batch as it was read."""

    value: Array
    """Binary; null: a tombstone."""
    key: Array | None = None
    """Binary; null: no key."""
    version: Array | None = None
    """Binary: what the message's metadata says of its schema; null: nothing."""
    written: Array | None = None
    """Timestamps in microseconds; null: nobody knows when."""


class Decoded(NamedTuple):
    """The same batch as columns, row by row."""

    value: Array
    """Of the Arrow type of `Decoding.value`; null for tombstones and bad rows."""
    key: Array | None
    """Of the Arrow type of `Decoding.key`, null for bad rows too; as it was read, where keys are not decoded."""
    causes: Array
    """Why a row is bad: dictionary of strings, null where it is good. No text says what a payload holds."""
    versions: Array
    """The number of the schema version that a payload names; null: it names none."""

    def slice(self, start: int, count: int) -> Decoded:
        """So many rows from one on, not copied."""
        return Decoded(*(None if one is None else one.slice(start, count) for one in self))  # type: ignore[arg-type]


class Decoder:
    """Decodes the payloads of one name of a plan.

    Args:
        decoding: what the plan pinned.
        name: of the source (`Declaration.dataset`).

    Raises:
        InvalidSchema, MissingDependency: at once, if nothing can be decoded by any of its schemas. A version whose rows
            cannot have the plan's columns is no error: its rows are bad.
    """

    def __init__(self, decoding: Decoding, name: str) -> None:
        self._decoding = decoding
        self._schemas = decoding.schemas.get(name) or decoding.schemas.get(ANY_NAME) or {}
        self._causes = Causes()
        self._registered = Registered(decoding.made.get(name, {}), self._causes)
        self._readers: dict[str, VersionReader] = {}
        self._keys = _key_reader(decoding, self._causes)
        self._value_type = arrow_type(decoding.value)
        self._key_type = None if decoding.key is None else arrow_type(decoding.key)
        if ANY_VERSION in self._schemas:
            self._reader(ANY_VERSION)
        self._otherwise = Decoder(decoding.otherwise, name) if decoding.otherwise else None

    def decode(self, payloads: Payloads) -> Decoded:
        """Never raises for what payloads hold."""
        decoded = self._decode(payloads)
        if self._otherwise is None or decoded.causes.null_count == len(payloads.value):
            return decoded
        bad = np.flatnonzero(valid_flags(decoded.causes))
        again = self._otherwise.decode(Payloads(*(None if one is None else _some(one, bad) for one in payloads)))  # type: ignore[arg-type]
        better = np.flatnonzero(~valid_flags(again.causes))
        return _in_place_of(decoded, again, bad[better], better)

    def _decode(self, payloads: Payloads) -> Decoded:
        pieces = [self._piece(_slice(payloads, start, stop)) for start, stop in _pieces(payloads.value)]
        if len(pieces) == 1:
            return pieces[0]
        return Decoded(*(_joined([piece[place] for piece in pieces]) for place in range(len(Decoded._fields))))  # type: ignore[arg-type]

    def _piece(self, payloads: Payloads) -> Decoded:
        count = len(payloads.value)
        codes = np.zeros(count, np.int16)
        framed = self._framed(payloads, codes)
        rows = _Rows(count, self._value_type, self._key_type)
        for version, places in self._groups(framed, payloads, codes):
            read = self._reader(version).read(_some(framed.bodies, places), _some_or_none(payloads.key, places))
            if read.codes.any():
                codes[places] = read.codes
            rows.add(places, read.values, read.keys)
        if self._keys and payloads.key is not None:
            rest = np.flatnonzero(rows.missing & (codes == GOOD))
            keys, codes[rest] = self._keys.read(_some(payloads.key, rest))
            rows.add(rest, nulls(self._value_type, len(rest)), keys)
        return self._decoded(payloads, framed, rows, codes)

    def _decoded(self, payloads: Payloads, framed: Framed, rows: _Rows, codes: Codes) -> Decoded:
        value = rows.values()
        key = payloads.key if self._key_type is None else rows.keys()
        bad = codes != GOOD
        if bad.any():
            codes[bad & starts_as_java(payloads.value)] = self._causes.code(JAVA)
            value = _without(value, bad)
            key = key if key is None or self._key_type is None else _without(key, bad)
        return Decoded(value, key, self._causes.array(codes), version_numbers(framed))

    def _framed(self, payloads: Payloads, codes: Codes) -> Framed:
        match self._decoding.framing:
            case "message":
                return named_by_message(payloads.value, payloads.version, codes, self._causes)
            case "header":
                return named_by_header(payloads.value, codes, self._causes)
        return none_named(payloads.value)

    def _asks_for_schema(self, payloads: Payloads) -> Flags:
        """Which rows cannot be decoded without one: values, and keys that have none of their own."""
        there = valid_flags(payloads.value)
        if payloads.key is None or self._key_type is None or self._keys:
            return there
        return there | valid_flags(payloads.key)

    def _groups(self, framed: Framed, payloads: Payloads, codes: Codes) -> list[tuple[str, Ints]]:
        """Rows by the version that decodes them; a row of none gets its cause."""
        asking = self._asks_for_schema(payloads)
        if ANY_VERSION in self._schemas:
            self._blame_named(framed, asking, codes)
            return [(ANY_VERSION, np.flatnonzero(asking & (codes == GOOD)))]
        blame(codes, asking & ~framed.named, self._causes.code("it says no schema version"))
        groups = []
        times = self._registered.times(payloads.written)
        for number, places in of_version(framed, asking & (codes == GOOD)).items():
            if str(number) in self._schemas:
                groups.append((str(number), self._registered.in_time(number, places, times, codes)))
            else:
                codes[places] = self._causes.code(f"its schema version {number} is none of those that the plan pinned")
        return groups

    def _blame_named(self, framed: Framed, asking: Flags, codes: Codes) -> None:
        """Messages that name a version of a topic that has none: they are not the bytes that it holds."""
        if self._decoding.framing != "message" or not framed.named.any():
            return
        for number, places in of_version(framed, asking & (codes == GOOD)).items():
            cause = f"it names schema version {number}, and the topic has no schema (any more)"
            codes[places] = self._causes.code(cause)

    def _reader(self, version: str) -> VersionReader:
        if version not in self._readers:
            self._readers[version] = VersionReader(self._schemas[version], version, self._decoding, self._causes)
        return self._readers[version]


def _in_place_of(decoded: Decoded, again: Decoded, places: Ints, rows: Ints) -> Decoded:
    """Some rows as they were decoded the second time."""
    chosen = np.arange(len(decoded.causes))
    chosen[places] = len(chosen) + rows
    taken = numbers(pa.int64(), chosen)
    columns = [
        None if first is None or second is None else pa.concat_arrays([first, second]).take(taken)
        for first, second in ((decoded.value, again.value), (decoded.key, again.key))
    ]
    causes = pa.concat_arrays([decoded.causes.cast(pa.string()), again.causes.cast(pa.string())]).take(taken)
    return Decoded(columns[0], columns[1], causes.dictionary_encode(), decoded.versions)  # type: ignore[arg-type]


class _Rows:
    """Columns put together of the rows of several versions."""

    def __init__(self, count: int, value_type: pa.DataType, key_type: pa.DataType | None) -> None:
        self._count, self._value_type, self._key_type = count, value_type, key_type
        self._parts: list[tuple[Ints, Array, Array | None]] = []
        self.missing = np.ones(count, np.bool_)

    def add(self, places: Ints, values: Array, keys: Array | None) -> None:
        """What some rows hold."""
        self._parts.append((places, values, keys))
        self.missing[slice(None) if len(places) == self._count else places] = False

    def values(self) -> Array:
        """All values, null where none was added."""
        return self._whole([(places, values) for places, values, _ in self._parts], self._value_type)

    def keys(self) -> Array | None:
        """All keys, null where none was added; None: they are not decoded."""
        if self._key_type is None:
            return None
        return self._whole([(places, keys) for places, _, keys in self._parts if keys is not None], self._key_type)

    def _whole(self, parts: list[tuple[Ints, Array]], kind: pa.DataType) -> Array:
        if not parts:
            return nulls(kind, self._count)
        if len(parts) == 1 and len(parts[0][0]) == self._count:
            return parts[0][1]
        places = np.concatenate([places for places, _ in parts])
        together = parts[0][1] if len(parts) == 1 else pa.concat_arrays([values for _, values in parts])
        return spread(together, places, self._count)


def _key_reader(decoding: Decoding, causes: Causes) -> Projected | None:
    if decoding.key_schema is None or decoding.key is None:
        return None
    return Projected(decoding.key_schema, decoding.key, causes.below("the key: "))


def _pieces(values: Array) -> list[tuple[int, int]]:
    """Spans of rows of at most `MOST_ROWS`, and of at most `MOST_BYTES` where a row is not larger by itself."""
    count = len(values)
    if not count:
        return [(0, 0)]
    offsets = offsets_of(values)
    spans, start = [], 0
    while start < count:
        stop = min(start + MOST_ROWS, count)
        if offsets[stop] - offsets[start] > MOST_BYTES:
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + MOST_BYTES, "right")) - 1)
        spans.append((start, stop))
        start = stop
    return spans


def _slice(payloads: Payloads, start: int, stop: int) -> Payloads:
    if stop - start == len(payloads.value):
        return payloads
    return Payloads(*(None if one is None else one.slice(start, stop - start) for one in payloads))  # type: ignore[arg-type]


def _joined(arrays: list[Array | None]) -> Array | None:
    if arrays[0] is None:
        return None
    first = arrays[0]
    if pa.types.is_dictionary(first.type):
        words = pa.concat_arrays([one.cast(pa.string()) for one in arrays if one is not None])
        return words.dictionary_encode()
    return pa.concat_arrays([one for one in arrays if one is not None])


def _some(values: Array, rows: Ints) -> Array:
    if len(rows) == len(values):
        return values
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return values.slice(int(rows[0]), len(rows))
    return values.take(numbers(pa.int64(), rows))


def _some_or_none(values: Array | None, rows: Ints) -> Array | None:
    return None if values is None else _some(values, rows)


def _without(values: Array, bad: Flags) -> Array:
    """Nulls where rows are bad."""
    places = np.arange(len(values))
    return values.take(numbers(pa.int64(), places, ~bad))
