"""Protobuf payloads of one message type: parsed one by one by the official runtime, made columns field by field."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Ints, lists, nulls, python_bytes, spread, structs
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes
from airflow_provider_streams.formats.protobuf.columns import (
    SPECIAL,
    TIMESTAMP,
    UNSIGNED,
    WRAPPERS,
    map_entry,
    type_of_message,
)
from airflow_provider_streams.formats.protobuf.descriptors import message_of
from airflow_provider_streams.formats.reader import Column
from airflow_provider_streams.formats.times import Scale
from airflow_provider_streams.model.decoding import WriterSchema
from airflow_provider_streams.model.row_type import ArrayOf, MapOf, StructOf, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message


class ProtobufReader:
    """Reads payloads by their message's descriptor.

    Args:
        schema: of the writer.
        causes: where causes get their numbers.
        padded: NULs behind the message belong to nothing (Pravega's serializers with a codec leave them).

    Raises:
        InvalidSchema: no such message.
        MissingDependency: Protobuf's runtime is not installed.
    """

    def __init__(self, schema: WriterSchema, causes: Causes, *, padded: bool = False) -> None:
        descriptor = message_of(schema.schema, schema.message)
        from google.protobuf.message import DecodeError  # noqa: PLC0415  # an extra
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  # an extra

        self.type = type_of_message(descriptor)
        self._parse: Callable[[bytes], Message] = GetMessageClass(descriptor).FromString
        self._refusal, self._descriptor, self._causes, self._padded = DecodeError, descriptor, causes, padded
        self._requires = _requires(descriptor, set())
        self._broken = causes.code("it is no message of its type")
        self._not_utf8 = causes.code("one of its texts is not UTF-8")
        self._lacking = causes.code("it lacks a field that its type requires")

    def read(self, payloads: Array) -> Column:
        """Parsed one by one, then column by column."""
        codes = np.zeros(len(payloads), np.int16)
        found = [self._message(data, row, codes) for row, data in enumerate(python_bytes(payloads))]
        messages = [one for one in found if one is not None]
        rows = np.flatnonzero(codes == GOOD)
        try:
            values = self._columns(messages, rows, codes)
        except _NO_TEXT:
            rows, values = self._readable(messages, rows, codes)
        return Column(values if len(rows) == len(codes) else spread(values, rows, len(codes)), codes)

    def _columns(self, messages: list[Any], rows: Ints, codes: Codes) -> Array:
        return _Columns(codes, self._causes).struct(self._descriptor, self.type, messages, rows, "")

    def _readable(self, messages: list[Any], rows: Ints, codes: Codes) -> tuple[Ints, Array]:
        """Only proto2 takes text that is no UTF-8, and finds that when it is asked for the text."""
        columns, good = [nulls(arrow_type(self.type), 0)], []
        for message, row in zip(messages, rows.tolist(), strict=True):
            try:
                columns.append(self._columns([message], np.array([row]), codes))
                good.append(row)
            except _NO_TEXT:
                codes[row] = self._not_utf8
        return np.array(good, np.int64), pa.concat_arrays(columns)

    def _message(self, data: bytes, row: int, codes: Codes) -> Message | None:
        try:
            message = self._parse(data[: _end(data)] if self._padded else data)
        except self._refusal:
            codes[row] = self._broken
            return None
        if self._requires and not message.IsInitialized():
            codes[row] = self._lacking
            return None
        return message


class _Columns:
    """Makes columns of fields; `rows` are those that the values belong to, to blame them."""

    def __init__(self, codes: Codes, causes: Causes) -> None:
        self._codes, self._causes = codes, causes

    def struct(self, descriptor: Descriptor, type_: StructOf, messages: list[Any], rows: Ints, path: str) -> Array:
        """Messages as structs."""
        columns = [
            self._field(field, one.type, messages, rows, f"{path}.{field.name}" if path else field.name)
            for field, one in zip(descriptor.fields, type_.fields, strict=True)
        ]
        return structs(arrow_type(type_), columns, len(messages))  # type: ignore[arg-type]

    def _field(self, field: FieldDescriptor, type_: Type, messages: list[Any], rows: Ints, path: str) -> Array:
        name = field.name
        match type_:
            case MapOf():
                return self._map(field, type_, list(map(attrgetter(name), messages)), rows, path)
            case ArrayOf(element):
                values = list(map(attrgetter(name), messages))
                counts = np.array([len(one) for one in values], np.int64)
                flat = [item for one in values for item in one]
                items = self._values(field, element, flat, np.repeat(rows, counts), path)
                return lists(arrow_type(type_), counts, items)
        if not field.has_presence:
            return self._values(field, type_, list(map(attrgetter(name), messages)), rows, path)
        places = np.array([at for at, one in enumerate(messages) if one.HasField(name)], np.int64)
        values = [getattr(messages[place], name) for place in places.tolist()]
        column = self._values(field, type_, values, rows[places], path)
        return column if len(places) == len(messages) else spread(column, places, len(messages))

    def _map(self, field: FieldDescriptor, type_: MapOf, values: list[Any], rows: Ints, path: str) -> Array:
        entry = map_entry(field)
        assert entry  # noqa: S101  # its type is a map
        counts = np.array([len(one) for one in values], np.int64)
        owners = np.repeat(rows, counts)
        key_kind: Any = arrow_type(type_.key)
        keys = [key for one in values for key in one]
        if entry[0].type in UNSIGNED:
            keys = [str(key) for key in keys]
        items = self._values(entry[1], type_.value, [one[key] for one in values for key in one], owners, path)
        kind: Any = arrow_type(type_)
        both = structs(pa.struct([kind.key_field, kind.item_field]), [pa.array(keys, key_kind), items], len(keys))
        return lists(kind, counts, both)

    def _values(self, field: FieldDescriptor, type_: Type, values: list[Any], rows: Ints, path: str) -> Array:
        """Single values of a field, all of them there."""
        message = field.message_type
        if message is not None:
            return self._messages(message, type_, values, rows, path)
        if field.enum_type is not None:
            names = _names(field.enum_type)
            values = [names.get(one) or str(one) for one in values]
        return pa.array(values, arrow_type(type_))

    def _messages(self, message: Descriptor, type_: Type, values: list[Any], rows: Ints, path: str) -> Array:
        if message.full_name in WRAPPERS:
            return pa.array([one.value for one in values], arrow_type(type_))
        if message.full_name == TIMESTAMP:
            return self._timestamps(values, rows, path)
        if message.full_name in SPECIAL or not isinstance(type_, StructOf):
            return self._texts(values, rows, path)
        return self.struct(message, type_, values, rows, path)

    def _timestamps(self, values: list[Any], rows: Ints, path: str) -> Array:
        seconds = np.array([one.seconds for one in values], np.int64)
        nanos = np.array([one.nanos for one in values], np.int64)
        outside = Scale.of("timestamp", "s").outside(seconds) | (nanos < 0) | (nanos >= _SECOND)
        if outside.any():
            self._blame(rows[outside], self._causes.code(f"{path}: is no time of the years 1 to 9999"))
        counts = np.where(outside, 0, seconds * 1_000_000 + nanos // 1000)
        return pa.array(counts, pa.int64()).cast(pa.timestamp("us", tz="UTC"))

    def _texts(self, values: list[Any], rows: Ints, path: str) -> Array:
        from google.protobuf.json_format import MessageToJson  # noqa: PLC0415  # an extra

        texts: list[str] = []
        for value, row in zip(values, rows.tolist(), strict=True):
            try:
                texts.append(MessageToJson(value, indent=None, preserving_proto_field_name=True))
            except Exception:  # noqa: BLE001  # it has errors of many kinds for what JSON cannot say
                self._blame(np.array([row]), self._causes.code(f"{path}: cannot be said as JSON"))
                texts.append("")
        return pa.array(texts, pa.string())

    def _blame(self, rows: Ints, code: int) -> None:
        fresh = rows[self._codes[rows] == GOOD]
        self._codes[fresh] = code


def _requires(descriptor: Descriptor, seen: set[str]) -> bool:
    """Whether a field of it, or of a message in it, is required."""
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    return any(
        field.is_required or (field.message_type is not None and _requires(field.message_type, seen))
        for field in descriptor.fields
    )


def _names(enum: EnumDescriptor) -> dict[int, str]:
    return {number: value.name for number, value in enum.values_by_number.items()}


def _end(data: bytes) -> int:
    """Where the message ends in bytes that NULs follow: no field has the number 0."""
    if not data.endswith(b"\0"):
        return len(data)
    at = 0
    while at < len(data) and data[at]:
        found = _after(data, at)
        if found is None:
            break
        at = found
    return at if not data[at:].strip(b"\0") else len(data)


def _after(data: bytes, at: int) -> int | None:
    """Where the field that begins here ends; None: it is none, or a group."""
    tag = _varint(data, at)
    if tag is None:
        return None
    number, at = tag
    match number & 7:
        case 0:
            found = _varint(data, at)
            return found[1] if found else None
        case 1:
            return at + 8
        case 2:
            length = _varint(data, at)
            return length[1] + length[0] if length else None
        case 5:
            return at + 4
    return None


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004  # the bit that says more follow
            return value, at + shift + 1
    return None


_SECOND: Final = 1_000_000_000
_NO_TEXT: Final = (UnicodeDecodeError, pa.ArrowInvalid)
"""What the runtime raises for such text, and Arrow, where the runtime gives its bytes instead."""
