"""Names of the numbers of Protobuf's enums: the number is the identity, and the reader's schema names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_streams.formats.protobuf.columns import MessagePair

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message


class Unnamed(ValueError):
    """A message holds a number of a closed enum that has no name."""


class Enums:
    """The enums of a message's fields, and of the messages in it."""

    def __init__(self, message: MessagePair) -> None:
        self._names: dict[tuple[str, int], Mapping[int, str]] = {}
        self._messages: dict[str, Descriptor] = {}
        self.closed = False
        """Whether one of them is closed: a proto2 enum, of which the runtime gives known numbers only."""
        self._add(message, set())

    def names(self, field: FieldDescriptor) -> Mapping[int, str] | None:
        """The names of a field's numbers; None: it is no enum."""
        return self._names.get(_key(field))

    def named(self, message: Message) -> Message:
        """A message whose closed enums are numbers, as the writer's own type, which has their names.

        Raises:
            Unnamed: a number has no name.
        """
        if not self.closed:
            return message
        from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415  # an extra

        own = GetMessageClass(self._messages[message.DESCRIPTOR.full_name])()
        own.MergeFromString(message.SerializePartialToString())
        for one in (own, message):
            one.DiscardUnknownFields()
        if own.ByteSize() != message.ByteSize():
            raise Unnamed
        return own

    def _add(self, message: MessagePair, seen: set[tuple[str, bool]]) -> None:
        """Add a message. A message that the reader names overrides the same message that it does not name."""
        name = message.own.full_name
        if (name, message.known is None) in seen:
            return
        seen.add((name, message.known is None))
        self._messages[name] = message.own
        for pair in message.fields():
            enum, known = pair.field.enum_type, pair.known.enum_type if pair.known else None
            if enum is not None:
                self.closed |= enum.is_closed
                if known is not None or _key(pair.field) not in self._names:
                    self._names[_key(pair.field)] = _names(enum, known)
            if pair.message is not None:
                self._add(pair.message, seen)


def _key(field: FieldDescriptor) -> tuple[str, int]:
    return field.containing_type.full_name, field.number  # type: ignore[union-attr]  # a message's field


def _names(enum: EnumDescriptor, reader: EnumDescriptor | None) -> dict[int, str]:
    """The reader's names. A number that it lacks keeps the writer's name, unless the reader uses the name otherwise."""
    own = {number: value.name for number, value in enum.values_by_number.items()}
    if reader is None:
        return own
    kept = {number: name for number, name in own.items() if name not in reader.values_by_name}
    return {**kept, **{number: value.name for number, value in reader.values_by_number.items()}}
