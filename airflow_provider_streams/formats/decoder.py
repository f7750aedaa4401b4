"""Payload bytes to columns: each payload by the schema it was written with, all of them as the plan's columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats import framing
from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decode_failures import (
    APART,
    GOOD,
    Causes,
    Codes,
    OtherObjects,
    blame,
    of_other_type,
)
from airflow_provider_streams.formats.framing import Framed, Registered
from airflow_provider_streams.formats.versions.version_reader import Newest, Projected, VersionReader
from airflow_provider_streams.model.schema.decoding import ANY_NAME, ANY_VERSION, Decoding, newest_of

MOST_ROWS: Final = 20_000
MOST_BYTES: Final = 16 << 20
"""The most that is decoded at once: its memory fits into a processor's cache. A usual batch of a system's reader is one
piece, since each piece has a cost of its own, however few its rows are."""


class Payloads(NamedTuple):
    """A batch as it was read."""

    value: Array
    """Binary; null: a tombstone."""
    key: Array | None = None
    """Binary; null: no key."""
    version: Array | None = None
    """Binary: the schema version in the message's metadata; null: none."""
    written: Array | None = None
    """Timestamps in microseconds; null: not known."""
    position: Array | None = None
    """Of changes, each message's place in the stream; see `formats.change_data.positions`."""

    def at(self, rows: Ints) -> Payloads:
        """Some of them, in ascending order."""
        return Payloads(*(None if one is None else arrays.at_rows(one, rows) for one in self))  # type: ignore[arg-type]


class Decoded(NamedTuple):
    """The same batch as columns, row by row."""

    value: Array
    """Of the Arrow type of `Decoding.value`; null for tombstones and bad rows."""
    key: Array | None
    """Of the Arrow type of `Decoding.key`, null for bad rows; or as it was read, if keys are not decoded."""
    causes: Array
    """Why a row is bad: dictionary of strings, null for good rows. No text says what a payload holds."""
    versions: Array
    """The number of the schema version that a payload names; null: it names none."""

    def slice(self, start: int, count: int) -> Decoded:
        """Some rows, not copied."""
        return Decoded(*(None if one is None else one.slice(start, count) for one in self))  # type: ignore[arg-type]


class Decoder:
    """Decodes the payloads of one name of a plan.

    Args:
        decoding: what the plan pinned.
        name: the source's name (`Declaration.dataset`).

    Raises:
        InvalidSchema, MissingDependency: its schemas decode nothing. A version whose rows cannot have the plan's
            columns is no error: its rows are bad.
    """

    def __init__(self, decoding: Decoding, name: str) -> None:
        self._decoding = decoding
        self._name = name
        self._schemas = decoding.schemas.get(name) or decoding.schemas.get(ANY_NAME) or {}
        self._causes = Causes()
        self._registered = Registered(decoding.made.get(name, {}), self._causes)
        self._readers: dict[str, VersionReader] = {}
        self._keys: Projected | None = None
        if decoding.key_schema is not None and decoding.key is not None:
            self._keys = Projected(decoding.key_schema, decoding.key, self._causes.below("the key: "))
        self._value_type = arrow_type(decoding.value)
        self._key_type = None if decoding.key is None else arrow_type(decoding.key)
        if ANY_VERSION in self._schemas:
            self._reader(ANY_VERSION)
        self._otherwise = Decoder(decoding.otherwise, name) if decoding.otherwise else None

    @property
    def unmatched(self) -> OtherObjects:
        """JSON objects with keys without a column, if a column was empty in all objects so far."""
        return self._causes.unmatched

    def decode(self, payloads: Payloads) -> Decoded:
        """Never raises for what payloads hold."""
        decoded = self._decode(payloads)
        if self._otherwise is None or decoded.causes.null_count == len(payloads.value):
            return decoded
        other = of_other_type(decoded.causes).to_numpy(zero_copy_only=False)
        bad = np.flatnonzero(arrays.valid_flags(decoded.causes) & ~other)
        again = self._otherwise.decode(payloads.at(bad))
        better = np.flatnonzero(~arrays.valid_flags(again.causes))
        return _in_place_of(decoded, again, bad[better], better)

    def _decode(self, payloads: Payloads) -> Decoded:
        made = [self._piece(payloads.at(np.arange(start, stop))) for start, stop in pieces(payloads.value)]
        if len(made) == 1:
            return made[0]
        return Decoded(*(_joined([piece[place] for piece in made]) for place in range(len(Decoded._fields))))  # type: ignore[arg-type]

    def _piece(self, payloads: Payloads) -> Decoded:
        count = len(payloads.value)
        codes = np.zeros(count, np.int16)
        framed = self._framed(payloads, codes)
        rows = _Rows(count)
        for version, places in self._groups(framed, payloads, codes):
            keys = None if payloads.key is None else arrays.at_rows(payloads.key, places)
            read = self._reader(version).read(arrays.at_rows(framed.bodies, places), keys)
            if read.codes.any():
                codes[places] = read.codes
            rows.add(places, read.values, read.keys)
        if self._keys and payloads.key is not None:
            rest = np.flatnonzero(rows.missing & (codes == GOOD))
            key_values, codes[rest] = self._keys.read(arrays.at_rows(payloads.key, rest))
            rows.add(rest, arrays.nulls(self._value_type, len(rest)), key_values)
        return self._decoded(payloads, framed, rows, codes)

    def _decoded(self, payloads: Payloads, framed: Framed, rows: _Rows, codes: Codes) -> Decoded:
        value = rows.values(self._value_type)
        key = payloads.key if self._key_type is None else rows.keys(self._key_type)
        bad = codes != GOOD
        if bad.any():
            codes[bad & (codes != APART) & framing.starts_as_java(payloads.value)] = self._causes.code(framing.JAVA)
            value = _without(value, bad)
            key = key if key is None or self._key_type is None else _without(key, bad)
        return Decoded(value, key, self._causes.array(codes), framing.version_numbers(framed))

    def _framed(self, payloads: Payloads, codes: Codes) -> Framed:
        match self._decoding.framing:
            case "message":
                return framing.named_by_message(payloads.value, payloads.version, codes, self._causes)
            case "header":
                return framing.named_by_header(payloads.value, codes, self._causes)
        return Framed(payloads.value, None, np.zeros(len(payloads.value), np.bool_))

    def _groups(self, framed: Framed, payloads: Payloads, codes: Codes) -> list[tuple[str, Ints]]:
        """Rows by the version that decodes them. Other rows get their cause."""
        asking = arrays.valid_flags(payloads.value)
        if payloads.key is not None and self._key_type is not None and not self._keys:
            asking |= arrays.valid_flags(payloads.key)  # keys without a schema of their own
        if ANY_VERSION in self._schemas:
            self._blame_named(framed, asking, codes)
            return [(ANY_VERSION, np.flatnonzero(asking & (codes == GOOD)))]
        times = self._registered.times(payloads.written)
        self._set_aside_others(framed, times, codes)
        blame(codes, asking & ~framed.named, self._causes.code("it says no schema version"))
        groups = []
        for number, places in framing.of_version(framed, asking & (codes == GOOD)).items():
            if str(number) in self._schemas:
                groups.append((str(number), self._registered.in_time(number, places, times, codes)))
            else:
                codes[places] = self._causes.code(f"its schema version {number} is none of those that the plan pinned")
        return groups

    def _set_aside_others(self, framed: Framed, times: Ints | None, codes: Codes) -> None:
        """Mark payloads of types that are not read, including tombstones."""
        types = self._decoding.types
        if types is None:
            return
        for number, places in framing.of_version(framed, codes == GOOD).items():
            if types.is_other(self._name, str(number)):
                codes[self._registered.in_time(number, places, times, codes)] = APART

    def _blame_named(self, framed: Framed, asking: Flags, codes: Codes) -> None:
        """Blame messages that name a version, in a topic without schemas: they are not its plain bytes."""
        if self._decoding.framing != "message" or not framed.named.any():
            return
        for number, places in framing.of_version(framed, asking & (codes == GOOD)).items():
            cause = f"it names schema version {number}, and the topic has no schema (any more)"
            codes[places] = self._causes.code(cause)

    def _reader(self, version: str) -> VersionReader:
        if version not in self._readers:
            decoding, types = self._decoding, self._decoding.types
            alike = types.alike(self._name, version, self._schemas) if types else self._schemas
            newest = Newest(newest_of(alike), newest_of(self._schemas))
            schema = self._schemas[version]
            self._readers[version] = VersionReader(
                schema, version, decoding, self._causes, newest=newest, name=self._name
            )
        return self._readers[version]


def _in_place_of(decoded: Decoded, again: Decoded, places: Ints, rows: Ints) -> Decoded:
    """The rows, some of them as they were decoded the second time."""
    chosen = np.arange(len(decoded.causes))
    chosen[places] = len(chosen) + rows
    both = [_joined([*pair]) for pair in zip(decoded[:3], again[:3], strict=True)]
    value, key, causes = (None if one is None else one.take(arrays.numbers(pa.int64(), chosen)) for one in both)
    return decoded._replace(value=value, key=key, causes=causes)  # type: ignore[arg-type]  # None only for keys


class _Rows:
    """Makes columns of the rows of several versions."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: list[tuple[Ints, Array, Array | None]] = []
        self.missing = np.ones(count, np.bool_)

    def add(self, places: Ints, values: Array, keys: Array | None) -> None:
        """Add some rows."""
        self._parts.append((places, values, keys))
        self.missing[slice(None) if len(places) == self._count else places] = False

    def values(self, kind: pa.DataType) -> Array:
        """The values of all rows, or null."""
        return self._whole([(places, values) for places, values, _ in self._parts], kind)

    def keys(self, kind: pa.DataType) -> Array:
        """The keys of all rows, or null."""
        return self._whole([(places, keys) for places, _, keys in self._parts if keys is not None], kind)

    def _whole(self, parts: list[tuple[Ints, Array]], kind: pa.DataType) -> Array:
        if not parts:
            return arrays.nulls(kind, self._count)
        if len(parts) == 1 and len(parts[0][0]) == self._count:
            return parts[0][1]
        places = np.concatenate([places for places, _ in parts])
        together = parts[0][1] if len(parts) == 1 else pa.concat_arrays([values for _, values in parts])
        return arrays.spread(together, places, self._count)


def pieces(values: Array) -> list[tuple[int, int]]:
    """Spans of at most `MOST_ROWS` rows and `MOST_BYTES` bytes, or of one larger row."""
    count = len(values)
    if not count:
        return [(0, 0)]
    offsets = arrays.offsets_of(values)
    spans, start = [], 0
    while start < count:
        stop = min(start + MOST_ROWS, count)
        if offsets[stop] - offsets[start] > MOST_BYTES:
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + MOST_BYTES, "right")) - 1)
        spans.append((start, stop))
        start = stop
    return spans


def _joined(several: list[Array | None]) -> Array | None:
    found = [one for one in several if one is not None]
    if not found or not pa.types.is_dictionary(found[0].type):
        return pa.concat_arrays(found) if found else None
    return pa.concat_arrays([one.cast(pa.string()) for one in found]).dictionary_encode()


def _without(values: Array, bad: Flags) -> Array:
    """The values, null for bad rows."""
    places = np.arange(len(values))
    return values.take(arrays.numbers(pa.int64(), places, ~bad))
