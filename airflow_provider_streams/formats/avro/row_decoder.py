"""Avro values one after the other, in plain Python: for long arrays of few records, and for recursive types.

fastavro is faster, but not safe for untrusted bytes. A few thousand bytes of a recursive type end the process, and it
accepts negative indices, booleans of any byte, and an array of 2^40 nulls. The rules are those of `column_decoders.py`.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import struct
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias

from airflow_provider_streams.errors import UNFIT
from airflow_provider_streams.formats.arrow.times import OUTSIDE, Scale, as_text
from airflow_provider_streams.formats.arrow.vectorized_cursor import VectorizedCursor
from airflow_provider_streams.formats.avro import columns
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.model.schema import avro_schema as avro

MOST_LEVELS: Final = 64
"""How deep the values of a recursive type may be nested."""

MOST_EMPTY_ITEMS: Final = 1_000
"""Array items of no bytes: the payload's size does not limit their number, and they take memory."""


class Refused(Exception):  # this module catches it: a cause, no error of the package
    """Why a value cannot be read."""


class Datum:
    """One payload's bytes among others, and a cursor in them."""

    __slots__ = ("at", "data", "depth", "end")

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data, self.at, self.end, self.depth = data, at, end, 0

    def zigzag(self) -> int:
        """The next number, of up to ten bytes."""
        value = shift = 0
        data, at, end = self.data, self.at, self.end
        while at < end and shift < _VARINT_BITS:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004  # the bit that says more follow
                self.at = at
                if value > _MOST_UNSIGNED:
                    break
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise Refused(BROKEN)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start, stop = self.at, self.at + size
        if size < 0 or stop > self.end:
            raise Refused(BROKEN)
        self.at = stop
        return self.data[start:stop].tobytes()


Read: TypeAlias = Callable[[Datum], Any]


class ReadItems(Protocol):
    """Reads items up to the end of an array, of which some are in the current block, and some are known."""

    def __call__(self, datum: Datum, left: int = 0, taken: int = 0) -> list[Any]:
        """The items."""


class RowReader:
    """Reads values of one schema at the cursor of a lane.

    Args:
        schema: the values' schema; for `items`, an array or a map.
        known: records by name, for recursive types.
        causes: numbers the causes.
        path: the value's path, for causes.
    """

    def __init__(self, schema: avro.Schema, known: dict[str, avro.Record], causes: Causes, path: str) -> None:
        self._schema, self._causes, self._path = schema, causes, path
        self._compiler = _Compiler(known, as_json=False)

    def value(self, lanes: VectorizedCursor, lane: int) -> Any:
        """The lane's next value as its column has it; None: it has none, and the lane fails."""
        return self._at(lanes, lane, self._read)

    def items(self, lanes: VectorizedCursor, lane: int, left: int, taken: int) -> list[Any]:
        """The lane's items up to the end of its array, of which `left` are in its block, and `taken` are known."""
        return self._at(lanes, lane, lambda datum: self._items(datum, left, taken)) or []

    @cached_property
    def _read(self) -> Read:
        return self._compiler.read(self._schema)

    @cached_property
    def _items(self) -> ReadItems:
        assert isinstance(self._schema, avro.Array | avro.Map)  # noqa: S101  # as the constructor says
        return self._compiler.items(self._schema)

    def _at(self, lanes: VectorizedCursor, lane: int, read: Read) -> Any:
        datum = Datum(lanes.data.data, int(lanes.at[lane]), int(lanes.end[lane]))
        try:
            value = read(datum)
        except Refused as refused:
            lanes.codes[lane] = self._causes.code(f"{self._path}: {refused}")
            lanes.at[lane] = lanes.end[lane]
            return None
        lanes.at[lane] = datum.at
        return value


class _Compiler:
    """Makes functions that read a value of a schema, as JSON has it or as its column has it."""

    def __init__(self, known: dict[str, avro.Record], *, as_json: bool) -> None:
        self._known, self._as_json = known, as_json
        self._records: dict[str, Read] = {}

    def read(self, schema: avro.Schema) -> Read:
        """The function for a schema."""
        why = unresolved(schema)

        def refuse(_: Datum) -> Any:
            raise Refused(why)

        return refuse if why else self._resolved(schema)

    def _resolved(self, schema: avro.Schema) -> Read:
        match schema:
            case avro.Record():
                return self._record(schema)
            case avro.Recursive(name):
                return self._recursive(name)
            case avro.Union():
                return self._union(schema)
            case avro.Array() | avro.Map():
                read_items = self.items(schema)
                as_object = self._as_json and isinstance(schema, avro.Map)
                return (lambda datum: dict(read_items(datum))) if as_object else read_items
            case avro.Enum(_, symbols):
                return _symbol(symbols)
        return self._leaf(schema)

    def items(self, schema: avro.Array | avro.Map) -> ReadItems:
        """The function for the items of an array, or the keys and values of a map."""
        if isinstance(schema, avro.Array):
            read, least = self.read(schema.items), _least(schema.items)
        else:
            value = self.read(schema.values)
            read, least = (lambda datum: (_text(datum), value(datum))), 1 + _least(schema.values)

        def read_items(datum: Datum, left: int = 0, taken: int = 0) -> list[Any]:
            values: list[Any] = []
            while True:
                values += [read(datum) for _ in range(left)]
                left = datum.zigzag()
                if left < 0:
                    left = -left
                    datum.zigzag()
                if not left:
                    break
                taken += left
                if left * least > datum.end - datum.at or (not least and taken > MOST_EMPTY_ITEMS):
                    raise Refused("claims more items than its bytes can hold")
            if isinstance(schema, avro.Map) and len({key for key, _ in values}) < len(values):
                raise Refused("a key is there twice")
            return values

        return read_items

    def _record(self, record: avro.Record) -> Read:
        fields = [(one.name, self.read(one.schema)) for one in record.fields]
        return lambda datum: {name: read(datum) for name, read in fields}

    def _recursive(self, name: str) -> Read:
        if not self._as_json:
            inner = _Compiler(self._known, as_json=True).read(avro.Recursive(name))
            return lambda datum: json.dumps(inner(datum), ensure_ascii=False, allow_nan=False)

        def read(datum: Datum) -> Any:
            datum.depth += 1
            if datum.depth > MOST_LEVELS:
                raise Refused(f"is nested deeper than {MOST_LEVELS} levels")
            if name not in self._records:
                self._records[name] = self._record(self._known[name])
            value = self._records[name](datum)
            datum.depth -= 1
            return value

        return read

    def _union(self, union: avro.Union) -> Read:
        branches = columns.branches_with_values(union)
        reads = [self.read(branch) if branch in branches else _nothing for branch in union.branches]
        names = [""] * len(reads)
        if not self._as_json and len(branches) > 1 and not columns.widened(branches):
            members = iter(columns.member_names(branches))
            names = [next(members) if read is not _nothing else "" for read in reads]

        def read(datum: Datum) -> Any:
            index = datum.zigzag()
            if not 0 <= index < len(reads):
                raise Refused("names no branch of its union")
            value = reads[index](datum)
            return {names[index]: value} if names[index] else value

        return read

    def _leaf(self, schema: avro.Schema) -> Read:
        assert isinstance(schema, avro.Primitive | avro.Fixed)  # noqa: S101  # for the type checker
        logical, is_fixed = schema.logical, isinstance(schema, avro.Fixed)
        size = schema.size if isinstance(schema, avro.Fixed) else 0
        read = (lambda datum: datum.take(size)) if isinstance(schema, avro.Fixed) else _PRIMITIVES[schema.kind]
        if logical and logical.name in columns.LOGICAL_TIMES:
            return self._time(*columns.LOGICAL_TIMES[logical.name], read)
        if logical and logical.name == "uuid":
            return (lambda datum: str(uuid.UUID(bytes=read(datum)))) if is_fixed else read
        if logical and columns.is_decimal(logical):
            exact = _decimal(logical, read)
            return (lambda datum: str(exact(datum))) if self._as_json else exact
        shown = _json_number if read in (_float, _double) else _base64 if is_fixed or read is _blob else None
        return (lambda datum: shown(read(datum))) if self._as_json and shown else read

    def _time(self, word: str, unit: Any, raw: Read) -> Read:
        scale, as_json = Scale.of(word, unit), self._as_json

        def read(datum: Datum) -> Any:
            found = scale.one(raw(datum))
            if found is None:
                raise Refused(OUTSIDE)
            return as_text(word, found) if as_json else found

        return read


def _least(schema: avro.Schema) -> int:
    """The bytes of the shortest value."""
    match schema:
        case avro.Primitive(kind):
            return {"null": 0, "float": 4, "double": 8}.get(kind, 1)
        case avro.Fixed(_, size):
            return size
        case avro.Record(_, fields):
            return sum(_least(one.schema) for one in fields)
    return 1


def unresolved(schema: avro.Schema) -> str:
    """Why the reader's schema does not take a schema's values; empty: it does."""
    why = schema.unresolved if isinstance(schema, avro.Primitive | avro.Named) else ""
    return f"{UNFIT}: {why}" if why else ""


def _nothing(_: Datum) -> None:
    return None


def _boolean(datum: Datum) -> bool:
    byte = datum.take(1)[0]
    if byte > 1:
        raise Refused("is no boolean")
    return byte == 1


def _int(datum: Datum) -> int:
    value = datum.zigzag()
    if not -_INT_LIMIT <= value < _INT_LIMIT:
        raise Refused(BROKEN)
    return value


def _unpacked(layout: struct.Struct) -> Read:
    return lambda datum: layout.unpack(datum.take(layout.size))[0]


def _blob(datum: Datum) -> bytes:
    return datum.take(datum.zigzag())


def _text(datum: Datum) -> str:
    try:
        return _blob(datum).decode()
    except UnicodeDecodeError:
        raise Refused(NOT_UTF8) from None


def _symbol(symbols: tuple[str, ...]) -> Read:
    def read(datum: Datum) -> str:
        index = datum.zigzag()
        if not 0 <= index < len(symbols):
            raise Refused("names no symbol of its enum")
        return symbols[index]

    return read


def _decimal(logical: avro.Logical, raw: Read) -> Read:
    def read(datum: Datum) -> decimal.Decimal:
        data = raw(datum)
        number = int.from_bytes(data[-17:], "big", signed=True)
        plain = not data[:-17].strip(b"\0" if number >= 0 else b"\xff")
        if not data or not plain or abs(number) >= 10**logical.precision:
            raise Refused("is no decimal of its digits")
        return decimal.Decimal(number).scaleb(-logical.scale, _EXACT)

    return read


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json_number(value: float) -> float | str:
    """A number, or the word for a value that JSON has no number for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


NOT_UTF8: Final = "is not UTF-8"
BROKEN: Final = "ends early, or is no Avro value of its type"
_VARINT_BITS: Final = 70
_MOST_UNSIGNED: Final = (1 << 64) - 1
_INT_LIMIT: Final = 1 << 31
_float, _double = _unpacked(struct.Struct("<f")), _unpacked(struct.Struct("<d"))
_EXACT: Final = decimal.Context(prec=40)
_PRIMITIVES: Final[dict[str, Read]] = {
    "null": _nothing,
    "boolean": _boolean,
    "int": _int,
    "long": Datum.zigzag,
    "float": _float,
    "double": _double,
    "bytes": _blob,
    "string": _text,
}
