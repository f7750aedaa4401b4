"""Entries damaged on purpose: what a hostile producer may write, and what a broken one does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fuzz.plain import Stored
from tests.fuzz.writer import varint

Dice = random.Random

_BYTES = (0, 1, 2, 4, 8, 0x0A, 0x10, 0x12, 0x18, 0x1A, 0x28, 0x3A, 0x40, 0x48, 0x50, 0x5B, 0x5C, 0x7F, 0x80, 0xFF)
_NUMBERS = (-1, -3, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) + 2, 1 << 62, 1 << 63, 6 << 30, 300, 0)


def mutated(dice: Dice, entry: Stored) -> Stored:
    """The entry with one to three faults, in its metadata or its payload."""
    head, payload = entry.metadata, entry.payload
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        fault = dice.choice(FAULTS)
        if dice.random() < 0.25:
            head = fault(dice, head)
        else:
            payload = fault(dice, payload)
    return replace(entry, metadata=head, payload=payload)


def _place(dice: Dice, data: bytes) -> int:
    """More often near the beginning: there are headers, and all that follows depends on them."""
    return dice.randrange(min(len(data), dice.choice((6, 20, 200, len(data)))) + 1)


def _change_byte(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] + bytes([dice.choice((*_BYTES, dice.randrange(256)))]) + data[at + 1 :]


def _flip_bit(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def _cut(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] if dice.random() < 0.5 else data[:at] + data[at + dice.randint(1, 9) :]


def _insert(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    more = dice.choice((dice.randbytes(dice.randint(1, 9)), varint(dice.choice(_NUMBERS), dice.randint(0, 9))))
    return data[:at] + more + data[at:]


def _overwrite_number(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    number = varint(dice.choice(_NUMBERS), dice.randint(0, 9))
    return data[:at] + number + data[at + len(number) :]


def _lie_about_a_length(dice: Dice, data: bytes) -> bytes:
    """Of a varint that is there: the same bytes, another number."""
    places = [at for at, byte in enumerate(data[:400]) if byte in {0x0A, 0x12, 0x18, 0x3A}]
    if not places:
        return data
    at = dice.choice(places) + 1
    return data[:at] + varint(dice.choice((*_NUMBERS, dice.randrange(300)))) + data[at + 1 :]


def _move(dice: Dice, data: bytes) -> bytes:
    a, b = sorted((_place(dice, data), _place(dice, data)))
    piece = data[a:b][:100]
    at = _place(dice, data)
    return data[:at] + piece + data[at:]


FAULTS: Sequence[Callable[[Dice, bytes], bytes]] = (
    _change_byte,
    _flip_bit,
    _cut,
    _insert,
    _overwrite_number,
    _lie_about_a_length,
    _move,
)
