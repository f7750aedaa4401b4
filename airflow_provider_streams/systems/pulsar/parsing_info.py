"""Schemas of type PROTOBUF: field numbers stand beside an Avro schema, and of the outermost message alone.

Pulsar's Java client keeps `[{"number", "name", "type", "label"}, ..]` in the property `__PARSING_INFO__`. Of messages
inside the message nobody tells the numbers, nor those of an enum's symbols.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.systems.pulsar.protobuf import write_varint

_PROPERTY: Final = "__PARSING_INFO__"
_TYPES: Final = {
    "DOUBLE": 1, "FLOAT": 2, "INT64": 3, "UINT64": 4, "INT32": 5, "FIXED64": 6, "FIXED32": 7, "BOOL": 8, "STRING": 9,
    "BYTES": 12, "UINT32": 13, "ENUM": 5, "SFIXED32": 15, "SFIXED64": 16, "SINT32": 17, "SINT64": 18,
}  # fmt: skip
"""As descriptors number them; an enum is read as the number that it is on the wire."""
_LABELS: Final = {"LABEL_OPTIONAL": 1, "LABEL_REQUIRED": 1, "LABEL_REPEATED": 3}
_HINT: Final = "Give the descriptor: value=Protobuf(descriptor, message); or read bytes with value=Bytes()."


def descriptor_of(data: str, properties: Mapping[str, str]) -> tuple[str, str]:
    """A `FileDescriptorSet` as base64, and the name of the message in it.

    Args:
        data: the schema's Avro text.
        properties: of the schema.

    Raises:
        InvalidSchema: it does not tell enough.
    """
    try:
        record, fields = json.loads(data), json.loads(properties[_PROPERTY])
        name, package = str(record["name"]), str(record.get("namespace") or "")
        made = b"".join(_text(2, _field(one)) for one in fields)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidSchema):
            raise
        raise InvalidSchema("PROTOBUF", "the broker does not tell its fields' numbers", _HINT) from error
    # only what the package is called in Java stands there, and a class within a class has a dollar sign
    package = package.replace("$", ".").strip(".")
    file = _text(1, b"topic.proto") + _text(2, package.encode()) + _text(4, _text(1, name.encode()) + made)
    return base64.b64encode(_text(1, file + _text(12, b"proto3"))).decode(), f"{package}.{name}".strip(".")


def _field(told: Mapping[str, Any]) -> bytes:
    type_ = str(told["type"])
    if type_ not in _TYPES:
        reason = f"the broker does not tell what its field {told['name']!r} holds ({type_})"
        raise InvalidSchema("PROTOBUF", reason, _HINT)
    numbers = {3: int(told["number"]), 4: _LABELS.get(str(told.get("label")), 1), 5: _TYPES[type_]}
    return _text(1, str(told["name"]).encode()) + b"".join(_number(tag, one) for tag, one in numbers.items())


def _text(field: int, data: bytes) -> bytes:
    return write_varint(field << 3 | 2) + write_varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return write_varint(field << 3) + write_varint(value)
