"""One Avro value after the other, in plain Python: for long arrays of few records, and for types inside themselves.

fastavro is faster, but not for bytes of strangers: a few thousand bytes of a type inside itself end the process, and it
takes negative indices, booleans of any byte, and an array of 2^40 nulls. The rules are those of `steps.py`.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from airflow_provider_streams.formats.avro.columns import (
    LOGICAL_TIMES,
    branches_with_values,
    is_decimal,
    member_names,
    widened,
)
from airflow_provider_streams.formats.causes import Causes
from airflow_provider_streams.formats.lanes import Lanes
from airflow_provider_streams.formats.times import Scale, as_text
from airflow_provider_streams.model.avro_schema import (
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Recursive,
    Schema,
    Union,
)

MOST_LEVELS: Final = 64
"""Values of a type inside itself, inside themselves."""

MOST_EMPTY_ITEMS: Final = 1_000
"""Items of an array that take no byte: their number alone is no measure of the payload, and they take memory."""


class Refused(Exception):  # caught here: a cause, no error of the package
    """Why a value cannot be read."""


class Datum:
    """One payload's bytes among others, and how far they are read."""

    __slots__ = ("at", "data", "depth", "end")

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data, self.at, self.end, self.depth = data, at, end, 0

    def varint(self) -> int:
        """The next number of up to ten bytes, unsigned."""
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
                return value
            shift += 7
        raise Refused(_BROKEN)

    def zigzag(self) -> int:
        """The next number."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        start, stop = self.at, self.at + size
        if size < 0 or stop > self.end:
            raise Refused(_BROKEN)
        self.at = stop
        return self.data[start:stop].tobytes()


Read: TypeAlias = Callable[[Datum], Any]


class RowReader:
    """Reads values of one schema at the cursor of a lane.

    Args:
        schema: of the values; of `items`, it is an array or a map.
        known: records by name, which the schema may hold inside themselves.
        path: where the value is, for causes.
        as_json: values as JSON has them, in text; otherwise as their column has them.
    """

    def __init__(
        self, schema: Schema, known: dict[str, Record], causes: Causes, path: str, *, as_json: bool = False
    ) -> None:
        self._schema, self._known, self._causes, self._path, self._as_json = schema, known, causes, path, as_json
        self._compiled: tuple[Read, int] | None = None

    def value(self, lanes: Lanes, lane: int) -> str | None:
        """The lane's next value as JSON text; None where it has none: the lane fails."""
        datum = _datum(lanes, lane)
        try:
            text = json.dumps(self._read(datum), ensure_ascii=False, allow_nan=False)
        except Refused as refused:
            self._fail(lanes, lane, str(refused))
            return None
        lanes.at[lane] = datum.at
        return text

    def items(self, lanes: Lanes, lane: int, left: int, taken: int) -> list[Any]:
        """The lane's items up to the end of its array; `left` are those of the block that it stands in."""
        datum = _datum(lanes, lane)
        read, least = self._item
        values: list[Any] = []
        try:
            _read_items(datum, read, least, values, (left, taken))
            if isinstance(self._schema, Map):
                _refuse_doubles(values)
        except Refused as refused:
            self._fail(lanes, lane, str(refused))
            return []
        lanes.at[lane] = datum.at
        return values

    @property
    def _read(self) -> Read:
        if not self._compiled:
            self._compiled = _Compiler(self._known, as_json=self._as_json).read(self._schema), 0
        return self._compiled[0]

    @property
    def _item(self) -> tuple[Read, int]:
        if not self._compiled:
            self._compiled = _Compiler(self._known, as_json=self._as_json).item(self._schema)
        return self._compiled

    def _fail(self, lanes: Lanes, lane: int, why: str) -> None:
        lanes.codes[lane] = self._causes.code(f"{self._path}: {why}")
        lanes.at[lane] = lanes.end[lane]


def _datum(lanes: Lanes, lane: int) -> Datum:
    return Datum(lanes.data.data, int(lanes.at[lane]), int(lanes.end[lane]))


class _Compiler:
    """Schemas to functions that read a value."""

    def __init__(self, known: dict[str, Record], *, as_json: bool) -> None:
        self._known, self._as_json = known, as_json
        self._records: dict[str, Read] = {}

    def read(self, schema: Schema) -> Read:
        """The function for a schema."""
        match schema:
            case Record():
                return self._record(schema)
            case Recursive(name):
                return self._recursive(name)
            case Union():
                return self._union(schema)
            case Array() | Map():
                return self._list(schema)
            case Enum(_, symbols):
                return _symbol(symbols)
        return self._leaf(schema)

    def item(self, schema: Schema) -> tuple[Read, int]:
        """The function for the items of an array or a map, and the least bytes of one."""
        if isinstance(schema, Array):
            return self.read(schema.items), _least(schema.items)
        assert isinstance(schema, Map)  # noqa: S101  # for the type checker
        value = self.read(schema.values)
        return (lambda datum: (_text(datum), value(datum))), 1 + _least(schema.values)

    def _record(self, record: Record) -> Read:
        fields = [(one.name, self.read(one.schema)) for one in record.fields]
        return lambda datum: {name: read(datum) for name, read in fields}

    def _recursive(self, name: str) -> Read:
        if not self._as_json:
            inner = _Compiler(self._known, as_json=True).read(Recursive(name))
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

    def _union(self, union: Union) -> Read:
        branches = branches_with_values(union)
        reads = [self.read(branch) if branch in branches else _nothing for branch in union.branches]
        names = [""] * len(reads)
        if not self._as_json and len(branches) > 1 and not widened(branches):
            members = iter(member_names(branches))
            names = [next(members) if read is not _nothing else "" for read in reads]

        def read(datum: Datum) -> Any:
            index = datum.zigzag()
            if not 0 <= index < len(reads):
                raise Refused("names no branch of its union")
            value = reads[index](datum)
            return {names[index]: value} if names[index] else value

        return read

    def _list(self, schema: Array | Map) -> Read:
        read_item, least = self.item(schema)
        as_json = self._as_json

        def read(datum: Datum) -> Any:
            values: list[Any] = []
            _read_items(datum, read_item, least, values, (0, 0))
            if isinstance(schema, Map):
                _refuse_doubles(values)
                return dict(values) if as_json else values
            return values

        return read

    def _leaf(self, schema: Schema) -> Read:
        assert isinstance(schema, Primitive | Fixed)  # noqa: S101  # for the type checker
        raw = _take(schema.size) if isinstance(schema, Fixed) else _PRIMITIVES[schema.kind]
        if schema.logical:
            return self._logical(schema.logical, raw, schema)
        if raw is _double or raw is _float:
            return (lambda datum: _json_number(raw(datum))) if self._as_json else raw
        if isinstance(schema, Fixed) or schema.kind == "bytes":
            return (lambda datum: base64.b64encode(raw(datum)).decode()) if self._as_json else raw
        return raw

    def _logical(self, logical: Logical, raw: Read, schema: Primitive | Fixed) -> Read:
        if logical.name == "uuid":
            return raw if isinstance(schema, Primitive) else (lambda datum: str(uuid.UUID(bytes=raw(datum))))
        if logical.name in LOGICAL_TIMES:
            return self._time(*LOGICAL_TIMES[logical.name], raw)
        if not is_decimal(logical):
            return (lambda datum: base64.b64encode(raw(datum)).decode()) if self._as_json else raw
        exact = _decimal(logical, raw)
        return (lambda datum: str(exact(datum))) if self._as_json else exact

    def _time(self, word: str, unit: Any, raw: Read) -> Read:
        scale, as_json = Scale.of(word, unit), self._as_json

        def read(datum: Datum) -> Any:
            found = scale.one(raw(datum))
            if found is None:
                raise Refused(OUTSIDE)
            return as_text(word, found) if as_json else found

        return read


def _read_items(datum: Datum, read: Read, least: int, values: list[Any], state: tuple[int, int]) -> None:
    left, taken = state
    while True:
        for _ in range(left):
            values.append(read(datum))  # noqa: PERF401  # what was read so far counts when it is refused
        left = datum.zigzag()
        if left < 0:
            left = -left
            datum.zigzag()
        if not left:
            return
        taken += left
        if left * least > datum.end - datum.at or (not least and taken > MOST_EMPTY_ITEMS):
            raise Refused("claims more items than its bytes can hold")


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Refused("a key is there twice")


def _least(schema: Schema) -> int:
    """Bytes of the shortest value."""
    match schema:
        case Primitive(kind):
            return {"null": 0, "float": 4, "double": 8}.get(kind, 1)
        case Fixed(_, size):
            return size
        case Record(_, fields):
            return sum(_least(one.schema) for one in fields)
    return 1


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
        raise Refused(_BROKEN)
    return value


def _float(datum: Datum) -> float:
    found: float = _FLOAT.unpack(datum.take(4))[0]
    return found


def _double(datum: Datum) -> float:
    found: float = _DOUBLE_BYTES.unpack(datum.take(8))[0]
    return found


def _blob(datum: Datum) -> bytes:
    return datum.take(datum.zigzag())


def _text(datum: Datum) -> str:
    try:
        return _blob(datum).decode()
    except UnicodeDecodeError:
        raise Refused(NOT_UTF8) from None


def _take(size: int) -> Read:
    return lambda datum: datum.take(size)


def _symbol(symbols: tuple[str, ...]) -> Read:
    def read(datum: Datum) -> str:
        index = datum.zigzag()
        if not 0 <= index < len(symbols):
            raise Refused("names no symbol of its enum")
        return symbols[index]

    return read


def _decimal(logical: Logical, raw: Read) -> Read:
    def read(datum: Datum) -> decimal.Decimal:
        data = raw(datum)
        number = int.from_bytes(data[-17:], "big", signed=True)
        plain = not data[:-17].strip(b"\0" if number >= 0 else b"\xff")
        if not data or not plain or abs(number) >= 10**logical.precision:
            raise Refused("is no decimal of its digits")
        return decimal.Decimal(number).scaleb(-logical.scale, _EXACT)

    return read


def _json_number(value: float) -> float | str:
    """As it is, or the word for what JSON has no number for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


NOT_UTF8: Final = "is not UTF-8"
OUTSIDE: Final = "is no time of the years 1 to 9999, or of a day"
_BROKEN: Final = "ends early, or is no Avro value of its type"
_VARINT_BITS: Final = 70
_MOST_UNSIGNED: Final = (1 << 64) - 1
_INT_LIMIT: Final = 1 << 31
_FLOAT, _DOUBLE_BYTES = struct.Struct("<f"), struct.Struct("<d")
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
