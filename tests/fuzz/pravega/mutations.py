"""Bytes damaged on purpose: what a broken server sends, and what a hostile one may."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

Dice = random.Random

_NUMBERS = (0, 1, -1, 7, 8, 127, 128, 255, 256, (1 << 15) - 1, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 24, 0x48545450)
_LONGS = (*_NUMBERS, 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1, -(1 << 63), 1 << 62, -(1 << 62))
_TEXTS = (b"9223372036854775808", b"-1", b"99999999999999999999999", b" ", b",", b":", b"\xd9\xa3", b"nan", b"1e999")


def mutated(dice: Dice, data: bytes) -> bytes:
    """The bytes with one to four faults."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        data = dice.choice(FAULTS)(dice, data)
    return data


def _place(dice: Dice, data: bytes) -> int:
    """More often near the beginning: all that follows depends on what is there."""
    return dice.randrange(min(len(data), dice.choice((8, 30, 200, max(len(data), 1)))) + 1)


def _change(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] + bytes([dice.choice((0, 1, 0x7F, 0x80, 0xC0, 0xFF, dice.randrange(256)))]) + data[at + 1 :]


def _flip(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def _cut(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] if dice.random() < 0.5 else data[:at] + data[at + dice.randint(1, 12) :]


def _insert(dice: Dice, data: bytes) -> bytes:
    at = _place(dice, data)
    return data[:at] + dice.choice((dice.randbytes(dice.randint(1, 9)), dice.choice(_TEXTS))) + data[at:]


def _overwrite(dice: Dice, data: bytes) -> bytes:
    """A number of four or eight bytes, or a text, over what is there."""
    at = _place(dice, data)
    number = dice.choice(
        (struct.pack(">i", dice.choice(_NUMBERS)), struct.pack(">q", dice.choice(_LONGS)), dice.choice(_TEXTS))
    )
    return data[:at] + number + data[at + len(number) :]


def _repeat(dice: Dice, data: bytes) -> bytes:
    first, last = sorted((_place(dice, data), _place(dice, data)))
    return data[:last] + data[first:last] * dice.choice((1, 2, 50)) + data[last:]


FAULTS: Sequence[Callable[[Dice, bytes], bytes]] = (_change, _flip, _cut, _insert, _overwrite, _repeat)
