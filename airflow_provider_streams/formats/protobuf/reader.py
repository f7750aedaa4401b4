"""Protobuf payloads of one message type: the official runtime parses them one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, Ints, nulls, python_bytes, spread
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, Column
from airflow_provider_streams.formats.protobuf.column_values import Columns
from airflow_provider_streams.formats.protobuf.columns import MessagePair, type_of_message
from airflow_provider_streams.formats.protobuf.descriptors import message_of, with_open_enums
from airflow_provider_streams.formats.protobuf.enums import Enums
from airflow_provider_streams.model.schema.decoding import WriterSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message


class ProtobufReader:
    """Reads payloads by their message's descriptor. The reader's schema names fields and enums' numbers."""

    def __init__(
        self, schema: WriterSchema, causes: Causes, reader: WriterSchema | None = None, *, padded: bool = False
    ) -> None:
        message = MessagePair(message_of(schema), message_of(reader) if reader else None)
        self._enums = Enums(message)
        descriptor = with_open_enums(schema) if self._enums.closed else message.own
        from google.protobuf.message import DecodeError  # noqa: PLC0415  # an extra
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  # an extra

        self.type = type_of_message(message)
        self._parse: Callable[[bytes], Message] = GetMessageClass(descriptor).FromString
        self._refusal, self._causes, self._padded = DecodeError, causes, padded
        self._pair = message._replace(own=descriptor)
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
        return Columns(codes, self._causes, self._enums).struct(self._pair, self.type, messages, rows, "")

    def _readable(self, messages: list[Any], rows: Ints, codes: Codes) -> tuple[Ints, Array]:
        """The good messages' columns: proto2 alone accepts text that is not UTF-8, and fails when the text is read."""
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


def _requires(descriptor: Descriptor, seen: set[str]) -> bool:
    """Whether a field of a message, or of a message in it, is required."""
    if descriptor.full_name in seen:
        return False
    seen.add(descriptor.full_name)
    return any(
        field.is_required or (field.message_type is not None and _requires(field.message_type, seen))
        for field in descriptor.fields
    )


def _end(data: bytes) -> int:
    """Where a message ends that NULs may follow: no field has the number 0."""
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
    """Where the field that begins here ends; None: it is no field, or a group."""
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


_NO_TEXT: Final = (UnicodeDecodeError, pa.ArrowInvalid)
"""What the runtime raises for text that is not UTF-8, and Arrow if the runtime gives bytes instead."""
