"""Random message types and messages."""

from __future__ import annotations

import base64
import random
from typing import Any

from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool

Dice = random.Random
Kind = descriptor_pb2.FieldDescriptorProto

NUMBERS = {
    Kind.TYPE_INT32: 32, Kind.TYPE_INT64: 64, Kind.TYPE_UINT32: -32, Kind.TYPE_UINT64: -64, Kind.TYPE_SINT32: 32,
    Kind.TYPE_SINT64: 64, Kind.TYPE_FIXED32: -32, Kind.TYPE_FIXED64: -64, Kind.TYPE_SFIXED32: 32,
    Kind.TYPE_SFIXED64: 64,
}  # fmt: skip
"""Bits of each; negative: without a sign."""
_OTHERS = (Kind.TYPE_DOUBLE, Kind.TYPE_FLOAT, Kind.TYPE_BOOL, Kind.TYPE_STRING, Kind.TYPE_BYTES, Kind.TYPE_ENUM)
_KEYS = (Kind.TYPE_STRING, Kind.TYPE_INT32, Kind.TYPE_UINT64, Kind.TYPE_BOOL, Kind.TYPE_SINT64, Kind.TYPE_FIXED32)
_GOOGLES = (".google.protobuf.Timestamp", ".google.protobuf.StringValue", ".google.protobuf.UInt64Value")
_TEXTS = ("", "a", "é😀", "\0", "x" * 60)
PIECES = (
    b"\x80" * 10, b"\xff" * 9 + b"\x01", b"\0", b"\x0b", b"\x0c", b"\x08\x01", b"\x12\x00",
    b"\x0a\x02\x08\x01", b"\xff\x01",
    b"\x7a\x7f", b"\x12\x02\xff\xfe",
)  # fmt: skip


class Made:
    """A descriptor set and its message `t.M`."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        syntax = "proto3" if dice.random() < 0.8 else "proto2"
        self._file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
        self._file.dependency.extend([timestamp_pb2.DESCRIPTOR.name, wrappers_pb2.DESCRIPTOR.name])
        self._is_3, self._count = syntax == "proto3", 0
        enum = self._file.enum_type.add(name="E")
        for number in (0, 1, 5, -1):
            enum.value.add(name=f"E_{number if number >= 0 else 'LESS'}", number=number)
        self._message(self._file.message_type.add(name="M"), ".t.M", 0)
        files = descriptor_pb2.FileDescriptorSet(file=[self._file])
        self.descriptor_set = base64.b64encode(files.SerializeToString()).decode()
        pool = DescriptorPool()
        for module in (timestamp_pb2, wrappers_pb2):
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self._file.SerializeToString())
        self.descriptor = pool.FindMessageTypeByName("t.M")
        self.type: Any = message_factory.GetMessageClass(self.descriptor)

    def _message(self, message: Any, full: str, depth: int) -> None:
        dice = self._dice
        oneof = dice.random() < 0.2
        if oneof:
            message.oneof_decl.add(name="choice")
        numbers = dice.sample(range(1, 40), dice.choice((1, 2, 4, 7)))
        for number in numbers:
            field = message.field.add(name=f"f{number}", number=number, label=Kind.LABEL_OPTIONAL)
            if dice.random() < 0.12 and self._is_3:
                self._map(message, field, full)
                continue
            self._typed(message, field, full, depth)
            if dice.random() < 0.2:
                field.label = Kind.LABEL_REPEATED
            elif oneof and dice.random() < 0.6:
                field.oneof_index = 0
            elif not self._is_3 and dice.random() < 0.1:
                field.label = Kind.LABEL_REQUIRED
            elif self._is_3 and dice.random() < 0.15 and field.type != Kind.TYPE_MESSAGE:
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_f{number}")
        if oneof and not any(one.HasField("oneof_index") and one.oneof_index == 0 for one in message.field):
            message.field.add(name="f40", number=40, label=Kind.LABEL_OPTIONAL, type=Kind.TYPE_INT32, oneof_index=0)

    def _map(self, message: Any, field: Any, full: str) -> None:
        name = f"F{field.number}Entry"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=Kind.LABEL_OPTIONAL, type=self._dice.choice(_KEYS))
        value = entry.field.add(name="value", number=2, label=Kind.LABEL_OPTIONAL)
        self._leaf(value)
        field.type, field.type_name, field.label = Kind.TYPE_MESSAGE, f"{full}.{name}", Kind.LABEL_REPEATED

    def _typed(self, message: Any, field: Any, full: str, depth: int) -> None:
        pick = self._dice.random()
        if depth < 3 and pick < 0.15:
            self._count += 1
            name = f"N{self._count}"
            self._message(message.nested_type.add(name=name), f"{full}.{name}", depth + 1)
            field.type, field.type_name = Kind.TYPE_MESSAGE, f"{full}.{name}"
        elif pick < 0.25:
            field.type, field.type_name = Kind.TYPE_MESSAGE, self._dice.choice(_GOOGLES)
        elif pick < 0.28:
            field.type, field.type_name = Kind.TYPE_MESSAGE, full
        else:
            self._leaf(field)

    def _leaf(self, field: Any) -> None:
        # of a closed enum the runtime hides the numbers that it does not know: it cannot be the measure there
        field.type = self._dice.choice((*NUMBERS, *(_OTHERS if self._is_3 else _OTHERS[:-1])))
        if field.type == Kind.TYPE_ENUM:
            field.type_name = ".t.E"

    def payload(self) -> bytes:
        """A message's bytes."""
        message = self.type()
        self._fill(message, 0)
        return message.SerializePartialToString()

    def _fill(self, message: Any, depth: int) -> None:
        dice = self._dice
        for field in message.DESCRIPTOR.fields:
            if dice.random() < 0.25:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                kind = field.message_type.fields_by_name
                for _ in range(dice.randrange(3)):
                    getattr(message, field.name)[self._value(kind["key"])] = self._value(kind["value"])
            elif field.message_type is not None:
                if depth > 3:
                    continue
                target = getattr(message, field.name)
                for _ in range(dice.randrange(3) if field.is_repeated else 1):
                    inner = target.add() if field.is_repeated else target
                    inner.SetInParent()
                    self._inner(inner, depth)
            elif field.is_repeated:
                getattr(message, field.name).extend(self._value(field) for _ in range(dice.randrange(4)))
            else:
                setattr(message, field.name, self._value(field))

    def _inner(self, message: Any, depth: int) -> None:
        if message.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
            message.seconds = self._dice.choice((0, -1, 1_700_000_000, -62_135_596_800, 253_402_300_799, 1 << 60))
            message.nanos = self._dice.choice((0, 999_999_999, 1, -5, 1_000_000_000))
        else:
            self._fill(message, depth + 1)

    def _value(self, field: Any) -> Any:
        dice = self._dice
        if field.type in NUMBERS:
            bits = NUMBERS[field.type]
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if bits > 0 else (0, (1 << -bits) - 1)
            return dice.choice((0, 1, low, high, dice.randint(low, high)))
        match field.type:
            case Kind.TYPE_BOOL:
                return dice.random() < 0.5
            case Kind.TYPE_STRING:
                return dice.choice(_TEXTS)
            case Kind.TYPE_BYTES:
                return dice.randbytes(dice.choice((0, 1, 9)))
            case Kind.TYPE_ENUM:
                closed = field.enum_type.is_closed
                return dice.choice((0, 1, 5, -1) if closed else (0, 1, 5, -1, 7))
        return dice.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), 0.1))
