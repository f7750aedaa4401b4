"""Protobuf by the official runtime, one message after the other."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError

SECONDS = (-62_135_596_800, 253_402_300_799)


class Refused(Exception):
    """Bytes that are no message of the type, or hold what no column can."""


def decode(type_: Any, data: bytes) -> Any:
    """The message as `pa.array` takes it."""
    try:
        message = type_.FromString(data)
        if not message.IsInitialized():
            raise Refused
        return _struct(message, ())
    except (DecodeError, UnicodeDecodeError):
        raise Refused from None


def _struct(message: Any, around: tuple[str, ...]) -> dict[str, Any]:
    inside = (*around, message.DESCRIPTOR.full_name)
    return {field.name: _field(message, field, inside) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any, around: tuple[str, ...]) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, item = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        said = str if key.type in (4, 6) else lambda one: one
        return [(said(_one(key, one, around)), _one(item, value[one], around)) for one in value]
    if field.is_repeated:
        return [_one(field, one, around) for one in value]
    return None if field.has_presence and not message.HasField(field.name) else _one(field, value, around)


def _one(field: Any, value: Any, around: tuple[str, ...]) -> Any:
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return found.name if found else str(value)
    if field.message_type is None:
        if field.type == 9 and isinstance(value, bytes):  # text of proto2 that is no UTF-8
            raise Refused
        return value
    name = field.message_type.full_name
    if name == "google.protobuf.Timestamp":
        if not SECONDS[0] <= value.seconds <= SECONDS[1] or not 0 <= value.nanos < 1_000_000_000:
            raise Refused
        return value.seconds * 1_000_000 + value.nanos // 1000
    if name.startswith("google.protobuf."):
        return _one(value.DESCRIPTOR.fields_by_name["value"], value.value, around)
    if name in around:
        try:
            return MessageToJson(value, indent=None, preserving_proto_field_name=True)
        except Exception:  # noqa: BLE001  # of many kinds
            raise Refused from None
    return _struct(value, around)
