"""The columns of a Protobuf message.

| Protobuf | column |
|---|---|
| bool, float, double, bytes, string | boolean, float, double, binary, string |
| int32, sint32, sfixed32; int64, sint64, sfixed64 | int; long |
| uint32, fixed32 | long |
| uint64, fixed64 | decimal(20,0); as the key of a map: string |
| enum | string: the name, or the digits of a number without a name |
| message | struct; inside itself: string, as JSON |
| repeated, map | array, map |
| google.protobuf.Timestamp | timestamp, nanoseconds cut to microseconds |
| google.protobuf.StringValue and the other wrappers | the column of their value, with nulls |
| google.protobuf.Struct, Value, ListValue | string, as JSON |

A field's number is its identity, and the reader's schema names it. A field whose number the reader lacks is named
`#<number>`, as no field of a message can be. If the reader's type differs, values take that type, if Protobuf calls
both types compatible (`retyped_fields`).

A field that says whether it is there (`optional`, a member of a `oneof`, a message) is null if it is not. Any other
field has its default. Lists and maps are empty, never null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.protobuf.descriptors import message_of
from airflow_provider_streams.formats.protobuf.retyped_fields import differ, meeting
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH, MOST_LEAVES
from airflow_provider_streams.model.schema.types import MISSING, ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor


class MessagePair(NamedTuple):
    """A message type, and the reader's."""

    own: Descriptor
    known: Descriptor | None

    def fields(self) -> list[FieldPair]:
        """The fields, with the reader's fields of the same numbers."""
        numbers = self.known.fields_by_number if self.known else {}
        return [FieldPair(one, numbers.get(one.number)) for one in self.own.fields]


class FieldPair(NamedTuple):
    """A field, and the reader's field of the same number."""

    field: FieldDescriptor
    known: FieldDescriptor | None

    @property
    def message(self) -> MessagePair | None:
        """The field's message type; None: it is no message."""
        own = self.field.message_type
        return None if own is None else MessagePair(own, self.known.message_type if self.known else None)

    @property
    def entry(self) -> tuple[FieldPair, FieldPair] | None:
        """Keys and values of a map, which is written as a list of messages; None: it is no map."""
        if self.message is None or not _is_map(self.field):
            return None
        key, value = self.message.fields()
        return key, value

    @property
    def is_list(self) -> bool:
        """Whether the values of a field that is no map are a list, by the reader's field."""
        known = self.known
        return self.field.is_repeated if known is None or _is_map(known) else known.is_repeated

    def type_differs(self, own: int | None = None) -> bool:
        """Whether values must be converted to the reader's type; `own` replaces the field's type."""
        return self.known is not None and differ(self.field.type if own is None else own, self.known.type)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def row_type(schema: WriterSchema, reader: WriterSchema | None = None) -> Type:
    """The type of the message's rows, with the names of the reader's schema.

    Raises:
        InvalidSchema: there is no such message, or it has more columns than `MOST_LEAVES`.
        MissingDependency: Protobuf's runtime is not installed.
    """
    return type_of_message(MessagePair(message_of(schema), message_of(reader) if reader else None))


def type_of_message(message: MessagePair) -> StructOf:
    """As `row_type`, for descriptors."""
    return _Unfolding().struct(message, ())


class _Unfolding:
    """Counts the columns that it makes."""

    def __init__(self) -> None:
        self._left = MOST_LEAVES

    def struct(self, message: MessagePair, around: tuple[str, ...]) -> StructOf:
        inside = (*around, message.own.full_name)
        if len(inside) > MOST_DEPTH:
            raise InvalidSchema(inside[0], f"types are nested deeper than {MOST_DEPTH} levels")
        is_named = message.known is not None
        return StructOf(tuple(self._field(pair, inside, is_named=is_named) for pair in message.fields()))

    def _field(self, pair: FieldPair, around: tuple[str, ...], *, is_named: bool) -> Field:
        field, known = pair
        if pair.entry:
            key, value = pair.entry
            type_: Type = MapOf(_key_type(key), self._one(value, around))
        else:
            one = self._one(pair, around)
            type_ = ArrayOf(one) if pair.is_list else one
        nullable = field.has_presence or (field.is_repeated and not pair.entry and not isinstance(type_, ArrayOf))
        name = known.name if known else f"#{field.number}" if is_named else field.name
        return Field(name, type_, nullable=nullable, default=None if nullable else MISSING)

    def _one(self, pair: FieldPair, around: tuple[str, ...]) -> Type:
        field, message = pair.field, pair.message
        if message is not None and message.own.full_name not in (*SPECIAL, *around):
            return self.struct(message, around)
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema(around[0], f"it unfolds to more than {MOST_LEAVES} columns")
        if message is not None:
            return SPECIAL.get(message.own.full_name, Simple("string"))
        if pair.known is not None and pair.type_differs():
            return meeting(LEAVES[field.type], LEAVES[pair.known.type])
        return LEAVES[field.type]


def _key_type(key: FieldPair) -> Type:
    found = LEAVES[key.known.type if key.known is not None and key.type_differs() else key.field.type]
    return found if isinstance(found, Simple) else Simple("string")


_UNSIGNED: Final = Decimal(20, 0)
UNSIGNED: Final = (4, 6)
"""The numbers of unsigned 64-bit types in descriptors."""
_WORDS: Final = {
    "double": (1,), "float": (2,), "long": (3, 7, 13, 16, 18), "int": (5, 15, 17), "boolean": (8,), "string": (9, 14),
    "binary": (12,),
}  # fmt: skip
LEAVES: Final[dict[int, Type]] = {
    **dict.fromkeys(UNSIGNED, _UNSIGNED),
    **{number: Simple(word) for word, numbers in _WORDS.items() for number in numbers},
}
"""The types of fields that are no messages, by their numbers in descriptors."""

TIMESTAMP: Final = "google.protobuf.Timestamp"
WRAPPERS: Final[dict[str, Type]] = {
    "google.protobuf.UInt64Value": _UNSIGNED,
    **{
        f"google.protobuf.{name}Value": Simple(word)
        for name, word in {
            "Double": "double", "Float": "float", "Int64": "long", "Int32": "int", "UInt32": "long", "Bool": "boolean",
            "String": "string", "Bytes": "binary",
        }.items()
    },
}  # fmt: skip
SPECIAL: Final[dict[str, Type]] = {
    **WRAPPERS,
    TIMESTAMP: Simple("timestamp"),
    **{f"google.protobuf.{name}": Simple("string") for name in ("Struct", "Value", "ListValue")},
}
"""Messages that do not become structs."""
