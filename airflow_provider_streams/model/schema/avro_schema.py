"""Avro schemas: their JSON read into values, with names resolved and checked. It needs no Avro library.

The rules are those of Avro's specification. As producers are lenient, it ignores unknown attributes and logical types,
and checks a default only when it is used. Schemas that differ by aliases only are equal, as in Java.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH
from airflow_provider_streams.model.schema.types import MISSING

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type. `logical` is what its values mean, if the logical type is known and fits.

    `java_class` is the class that Avro's reflection made it of, if that says more. `unresolved` says why the reader's
    schema does not take its values; empty: it does.
    """

    kind: str
    logical: Logical | None = None
    java_class: str = field(default="", compare=False)
    unresolved: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed number of bytes; `unresolved` as in `Primitive`."""

    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = field(default=(), compare=False)
    unresolved: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type; a decimal has precision and scale."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Enum:
    """One of these symbols, by its index; `unresolved` as in `Primitive`.

    Readers take `default`, unless it is empty, for a symbol that they lack.
    """

    name: str
    symbols: tuple[str, ...]
    aliases: tuple[str, ...] = field(default=(), compare=False)
    default: str = field(default="", compare=False)
    unresolved: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of items; `java_class` as in `Primitive`."""

    items: Schema
    java_class: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Map:
    """Values by text."""

    values: Schema


@dataclass(frozen=True, slots=True)
class Union:
    """One of these branches, by its index."""

    branches: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record; `default` is JSON, or `MISSING`."""

    name: str
    schema: Schema
    default: Any = field(default=MISSING, hash=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Record:
    """Fields, one after the other. `aliases` are former full names, and `unresolved` is as in `Primitive`."""

    name: str
    fields: tuple[RecordField, ...]
    aliases: tuple[str, ...] = field(default=(), compare=False)
    unresolved: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Recursive:
    """A named type inside itself."""

    name: str


Named: TypeAlias = Record | Enum | Fixed
Schema: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Record | Recursive


def parse(schema: str | dict[str, Any] | list[Any]) -> Schema:
    """The schema of JSON text, or of JSON values.

    Raises:
        InvalidSchema: it is not JSON, or not an Avro schema.
    """
    data: Any = schema
    if isinstance(schema, str) and schema not in PRIMITIVES:
        try:
            data = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema("Avro", f"its text is not JSON ({error})") from None
    return _Parser().schema(data, "", 0)


def alternatives(schema: Schema) -> Iterator[Schema]:
    """A schema itself, and those inside it without a record around them."""
    yield schema
    match schema:
        case Array(inner) | Map(inner):
            yield from alternatives(inner)
        case Union(branches):
            for branch in branches:
                yield from alternatives(branch)


def everything(schema: Schema, seen: set[int] | None = None) -> Iterator[Schema]:
    """Every schema inside a schema, and itself; the fields of each record once."""
    seen = set() if seen is None else seen
    for one in alternatives(schema):
        yield one
        if isinstance(one, Record) and id(one) not in seen:
            seen.add(id(one))
            for field_ in one.fields:
                yield from everything(field_.schema, seen)


def records(schema: Schema) -> dict[str, Record]:
    """Every record inside a schema by its full name, perhaps itself."""
    return {one.name: one for one in everything(schema) if isinstance(one, Record)}


class _Parser:
    """Reads one schema, and keeps the named types so far."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}
        self._open: set[str] = set()

    def schema(self, data: Any, space: str, depth: int) -> Schema:
        """A schema inside the namespace `space`."""
        if depth > MOST_DEPTH:
            raise InvalidSchema("Avro", f"types are nested deeper than {MOST_DEPTH} levels")
        match data:
            case str():
                return self._by_name(data, space)
            case list():
                return self._union(data, space, depth)
            case {"type": str(kind)}:
                return self._typed(kind, data, space, depth)
            case {"type": inner}:
                return self.schema(inner, space, depth + 1)
        raise InvalidSchema(_shown(data), "not an Avro schema")

    def _typed(self, kind: str, data: dict[str, Any], space: str, depth: int) -> Schema:  # noqa: PLR0911  # one each
        match kind:
            case "record" | "error":
                return self._record(data, space, depth)
            case "enum":
                return self._enum(data, space)
            case "fixed":
                return self._fixed(data, space)
            case "array":
                return Array(self.schema(_member(data, "items"), space, depth + 1), _java_class(data))
            case "map":
                return Map(self.schema(_member(data, "values"), space, depth + 1))
            case _ if kind in PRIMITIVES:
                return Primitive(kind, _logical(kind, data), _java_class(data))
        return self._by_name(kind, space)

    def _by_name(self, name: str, space: str) -> Schema:
        if name in PRIMITIVES:
            return Primitive(name)
        full = _full(name, space)
        if full not in self._named and full not in self._open and "." not in name:
            full = name  # of the null namespace
        if full in self._open:
            return Recursive(full)
        if full not in self._named:
            raise InvalidSchema(name, "no type of this name is defined before it is used")
        return self._named[full]

    def _record(self, data: dict[str, Any], space: str, depth: int) -> Record:
        full = self._define(data, space)
        inner = full.rpartition(".")[0]
        self._open.add(full)
        fields = _member(data, "fields")
        if not isinstance(fields, list):
            raise InvalidSchema(full, "its fields are not a list")
        record = Record(full, tuple(self._field(one, full, inner, depth) for one in fields), _aliases(data, full))
        names = [one.name for one in record.fields]
        if len(set(names)) != len(names):
            raise InvalidSchema(full, "two fields have one name")
        self._open.discard(full)
        self._named[full] = record
        return record

    def _field(self, data: Any, record: str, space: str, depth: int) -> RecordField:
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise InvalidSchema(record, "a field has no name")
        aliases = data.get("aliases") or ()
        return RecordField(
            data["name"],
            self.schema(_member(data, "type"), space, depth + 1),
            data.get("default", MISSING),
            tuple(alias for alias in aliases if isinstance(alias, str)),
        )

    def _enum(self, data: dict[str, Any], space: str) -> Enum:
        full = self._define(data, space)
        symbols = _member(data, "symbols")
        if not isinstance(symbols, list) or not symbols or not all(isinstance(one, str) for one in symbols):
            raise InvalidSchema(full, "its symbols are not a list of names")
        default = next((one for one in symbols if one == data.get("default")), "")
        self._named[full] = enum = Enum(full, tuple(symbols), _aliases(data, full), default)
        return enum

    def _fixed(self, data: dict[str, Any], space: str) -> Fixed:
        full = self._define(data, space)
        size = _member(data, "size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MOST_FIXED:
            raise InvalidSchema(full, f"its size is no number of bytes up to {_MOST_FIXED}")
        self._named[full] = fixed = Fixed(full, size, _logical("fixed", data, size), _aliases(data, full))
        return fixed

    def _union(self, data: list[Any], space: str, depth: int) -> Union:
        branches = tuple(self.schema(one, space, depth + 1) for one in data)
        if not branches:
            raise InvalidSchema("a union", "it has no branch")
        if any(isinstance(one, Union) for one in branches):
            raise InvalidSchema("a union", "it holds another union")
        names = [branch_name(one) for one in branches]
        if len(set(names)) != len(names):
            raise InvalidSchema("a union", f"two branches are of one type: {', '.join(names)}")
        return Union(branches)

    def _define(self, data: dict[str, Any], space: str) -> str:
        name = data.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidSchema(_shown(name), "not the name of a type")
        own = data.get("namespace")
        full = _full(name, own if isinstance(own, str) else space)
        if full in self._named or full in self._open:
            raise InvalidSchema(full, "it is defined twice")
        return full


def branch_name(schema: Schema) -> str:
    """The name that distinguishes a union's branch from the others: its type's, or its own."""
    match schema:
        case Primitive(kind):
            return kind
        case Array() | Map() | Union():
            return type(schema).__name__.lower()
    return schema.name


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _aliases(data: dict[str, Any], full: str) -> tuple[str, ...]:
    """Full names; an alias without a namespace has the type's namespace."""
    found, space = data.get("aliases"), full.rpartition(".")[0]
    return tuple(_full(one, space) for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _member(data: dict[str, Any], name: str) -> Any:
    if name not in data:
        raise InvalidSchema(_shown(data.get("name") or data.get("type")), f"it has no {name!r}")
    return data[name]


def _logical(kind: str, data: dict[str, Any], size: int = 0) -> Logical | None:
    """The logical type, if it fits its type; otherwise none, as the specification says."""
    name = data.get("logicalType")
    if name == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(data, size)
    if name == "uuid" and (kind == "string" or size == _UUID_BYTES):
        return Logical("uuid")
    return Logical(name) if isinstance(name, str) and name in _OF.get(kind, ()) else None


def _decimal(data: dict[str, Any], size: int) -> Logical | None:
    precision, scale = data.get("precision"), data.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not precision > 0 or not 0 <= scale <= precision:
        return None
    if size and 10**precision > 2 ** (8 * size - 1):
        return None
    return Logical("decimal", precision, scale)


def _java_class(data: dict[str, Any]) -> str:
    found = data.get("java-class")
    return found if isinstance(found, str) else ""


def _shown(data: Any) -> str:
    text = str(data)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + ".."


_OF: Final = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
        "local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos",
    ),
}  # fmt: skip
_NAME: Final = re.compile(r"[^\s.]+(\.[^\s.]+)*")
_UUID_BYTES: Final = 16
_MOST_FIXED: Final = 1 << 20
_SHOWN: Final = 60
