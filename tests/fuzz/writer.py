"""Protobuf messages in any encoding that is legal: what a producer may write, and no client does."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)

Value = int | bytes | list[tuple[int, "Value"]]
"""A number, a text, or the fields of a message."""
Wanted = Sequence[tuple[int, Value]]
"""Fields by number, in the order in which clients write them."""

INT32, INT64, FLAG, TEXT = "int32", "int64", "flag", "text"
Schema = Mapping[int, str]
SINGLE: Schema = {2: TEXT, 3: INT32, 4: FLAG, 5: INT64, 6: FLAG, 7: TEXT, 8: INT64, 9: FLAG, 10: FLAG}
METADATA: Schema = {
    **dict.fromkeys((1, 5, 6, 16, 18, 26), TEXT),
    **dict.fromkeys((8, 9, 11, 20, 27, 28, 29), INT32),
    **dict.fromkeys((2, 3, 12, 22, 23, 24), INT64),
    **dict.fromkeys((17, 25, 30), FLAG),
}
PAIR: Schema = {1: TEXT, 2: TEXT}
"""Kinds of the fields of which the last one counts."""

_UNKNOWN = (11, 15, 33, 100, 2047, 2048, 70_000, (1 << 29) - 1)


def varint(number: int, more: int = 0) -> bytes:
    """A varint with up to so many bytes more than it needs."""
    number %= 1 << 64
    out = bytearray()
    while True:
        out.append(number % 128 | 128)
        number //= 128
        if not number:
            break
    out += b"\x80" * min(more, 10 - len(out))
    out[-1] %= 128
    return bytes(out)


def usual(wanted: Wanted) -> bytes:
    """As clients write it."""
    return b"".join(_field(number, usual(value) if isinstance(value, list) else value) for number, value in wanted)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | BYTES) + varint(len(value)) + value


@dataclass
class Writer:
    """Writes messages; each liberty is taken with the probability `wildness`.

    Args:
        dice: they decide.
        wildness: 0: as clients write.
        widest: bytes of the longest tags and lengths: 5 at most, the protobuf library takes them.
    """

    dice: random.Random
    wildness: float = 0.5
    widest: int = 10

    def write(self, wanted: Wanted, schema: Schema) -> bytes:
        """A message with these fields."""
        if not self.wildness:
            return usual(wanted)
        fields = [(number, self._written(number, value, schema)) for number, value in wanted]
        if self._liberty():
            fields = self._shuffled(fields)
        for number in [number for number, _ in wanted if number in schema]:
            if self._liberty():  # the last one counts
                before = next(place for place, (other, _) in enumerate(fields) if other == number)
                decoy = self._number() if schema[number] != TEXT else self._text()
                fields.insert(self.dice.randint(0, before), (number, self._written(number, decoy, schema)))
        many = 100 if self.dice.random() < self.wildness / 100 else 3
        for _ in range(many):
            if many > 3 or self._liberty():
                fields.insert(self.dice.randint(0, len(fields)), (0, self.unknown(schema)))
        return b"".join(data for _, data in fields)

    def unknown(self, schema: Schema, depth: int = 0) -> bytes:
        """An unknown field, of any wire type; perhaps a known number with a foreign one."""
        wire = self.dice.choice((VARINT, FIXED64, BYTES, GROUP, FIXED32))
        number = self.dice.choice(
            [number for number in (*_UNKNOWN, 1, 2, 3, 5, 8) if _is_foreign(number, wire, schema)]
        )
        tag = self._tag(number, wire)
        if wire == VARINT:
            return tag + self._varint(self._number())
        if wire == BYTES:
            text = self._text()
            return tag + self._length(len(text)) + text
        if wire == GROUP:
            inner = b"".join(
                self.unknown(schema, depth + 1) for _ in range(self.dice.randint(0, 2 if depth < 5 else 0))
            )
            return tag + inner + self._tag(number, END_GROUP)
        return tag + self.dice.randbytes(8 if wire == FIXED64 else 4)

    def _written(self, number: int, value: Value, schema: Schema) -> bytes:
        if isinstance(value, list):
            value = self.write(value, PAIR)
        if isinstance(value, bytes):
            return self._tag(number, BYTES) + self._length(len(value)) + value
        if self._liberty():
            value = self._same(value, schema.get(number))
        return self._tag(number, VARINT) + self._varint(value)

    def _same(self, value: int, kind: str | None) -> int:
        """Another number that means the same in so many bits."""
        if kind == FLAG and value:
            return self.dice.choice((2, 127, 128, 1 << 31, 1 << 40, (1 << 64) - 1))
        return value + (self.dice.getrandbits(32) << 32) if kind == INT32 else value

    def _shuffled(self, fields: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """In any order, but those of one number."""
        order = [number for number, _ in fields]
        self.dice.shuffle(order)
        queues = {number: iter([data for other, data in fields if other == number]) for number in order}
        return [(number, next(queues[number])) for number in order]

    def _tag(self, number: int, wire: int) -> bytes:
        return self._length(number << 3 | wire)

    def _length(self, number: int) -> bytes:
        room = self.widest - len(varint(number))
        return varint(number, self.dice.randint(0, room) if self._liberty() else 0)

    def _varint(self, number: int) -> bytes:
        return varint(number, self.dice.randint(0, 9) if self._liberty() else 0)

    def _number(self) -> int:
        return self.dice.getrandbits(self.dice.choice((1, 7, 8, 32, 64)))

    def _text(self) -> bytes:
        return self.dice.randbytes(self.dice.choice((0, 1, 3, 20, 130)))

    def _liberty(self) -> bool:
        return self.dice.random() < self.wildness


def _is_foreign(number: int, wire: int, schema: Schema) -> bool:
    """Whether no decoder looks at this field."""
    kind = schema.get(number)
    if kind is None:  # repeated ones too: properties
        return number in _UNKNOWN or (number == 1 and schema is SINGLE and wire != BYTES)
    return wire not in {BYTES, VARINT} or (kind == TEXT) != (wire == BYTES)
