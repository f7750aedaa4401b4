"""What a Protobuf message becomes as columns.

| Protobuf | column |
|---|---|
| bool, float, double, bytes, string | boolean, float, double, binary, string |
| int32, sint32, sfixed32; int64, sint64, sfixed64 | int; long |
| uint32, fixed32 | long |
| uint64, fixed64 | decimal(20,0); as the key of a map: string |
| enum | string: the name; of a number without one, its digits |
| message | struct; inside itself: string, as JSON |
| repeated, map | array, map |
| google.protobuf.Timestamp | timestamp, nanoseconds cut to microseconds |
| google.protobuf.StringValue and the other wrappers | the column of what they hold, with nulls |
| google.protobuf.Struct, Value, ListValue | string, as JSON |

A field that says whether it is there (`optional`, a member of a `oneof`, a message) is null where it is not; another
one has its default. Lists and maps are empty, never null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.protobuf.descriptors import message_of
from airflow_provider_streams.model.row_type import (
    MISSING,
    MOST_DEPTH,
    MOST_LEAVES,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor


def row_type(descriptor_set: str, message: str) -> Type:
    """The type of the message's rows.

    Raises:
        InvalidSchema: no such message, or one of more columns than `MOST_LEAVES`.
        MissingDependency: Protobuf's runtime is not installed.
    """
    return type_of_message(message_of(descriptor_set, message))


def type_of_message(descriptor: Descriptor) -> StructOf:
    """The same, of a descriptor."""
    return _Unfolding().struct(descriptor, ())


def map_entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor] | None:
    """Key and value of a map, which is written as a list of messages; None: it is no map."""
    message = field.message_type
    if message is None or not message.GetOptions().map_entry:
        return None
    return message.fields_by_name["key"], message.fields_by_name["value"]


class _Unfolding:
    """Counts the columns that it makes."""

    def __init__(self) -> None:
        self._left = MOST_LEAVES

    def struct(self, descriptor: Descriptor, around: tuple[str, ...]) -> StructOf:
        inside = (*around, descriptor.full_name)
        if len(inside) > MOST_DEPTH:
            raise InvalidSchema(inside[0], f"types are nested deeper than {MOST_DEPTH} levels")
        return StructOf(tuple(self._field(field, inside) for field in descriptor.fields))

    def _field(self, field: FieldDescriptor, around: tuple[str, ...]) -> Field:
        entry = map_entry(field)
        if entry:
            type_: Type = MapOf(_key(entry[0]), self._one(entry[1], around))
        else:
            one = self._one(field, around)
            type_ = ArrayOf(one) if field.is_repeated else one
        default = None if field.has_presence else MISSING
        return Field(field.name, type_, nullable=field.has_presence, default=default)

    def _one(self, field: FieldDescriptor, around: tuple[str, ...]) -> Type:
        message = field.message_type
        if message is not None and message.full_name not in SPECIAL and message.full_name not in around:
            return self.struct(message, around)
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema(around[0], f"it unfolds to more than {MOST_LEAVES} columns")
        if message is not None:
            return SPECIAL.get(message.full_name, Simple("string"))
        return LEAVES[field.type]


def _key(field: FieldDescriptor) -> Type:
    found = LEAVES[field.type]
    return found if isinstance(found, Simple) else Simple("string")


_UNSIGNED: Final = Decimal(20, 0)
UNSIGNED: Final = (4, 6)
"""Numbers of descriptors for fields of 64 bits without a sign."""
_WORDS: Final = {
    "double": (1,), "float": (2,), "long": (3, 7, 13, 16, 18), "int": (5, 15, 17), "boolean": (8,), "string": (9, 14),
    "binary": (12,),
}  # fmt: skip
LEAVES: Final[dict[int, Type]] = {
    **dict.fromkeys(UNSIGNED, _UNSIGNED),
    **{number: Simple(word) for word, numbers in _WORDS.items() for number in numbers},
}
"""The type of a field that is no message, by the number that descriptors have for it."""

TIMESTAMP: Final = "google.protobuf.Timestamp"
WRAPPERS: Final[dict[str, Type]] = {
    "google.protobuf.DoubleValue": Simple("double"),
    "google.protobuf.FloatValue": Simple("float"),
    "google.protobuf.Int64Value": Simple("long"),
    "google.protobuf.UInt64Value": _UNSIGNED,
    "google.protobuf.Int32Value": Simple("int"),
    "google.protobuf.UInt32Value": Simple("long"),
    "google.protobuf.BoolValue": Simple("boolean"),
    "google.protobuf.StringValue": Simple("string"),
    "google.protobuf.BytesValue": Simple("binary"),
}
SPECIAL: Final[dict[str, Type]] = {
    **WRAPPERS,
    TIMESTAMP: Simple("timestamp"),
    "google.protobuf.Struct": Simple("string"),
    "google.protobuf.Value": Simple("string"),
    "google.protobuf.ListValue": Simple("string"),
}
"""Messages that become no struct."""
