"""Payloads damaged on purpose."""

from __future__ import annotations

import random
from collections.abc import Sequence

_ODD = (0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_PIECES = (
    b"\x80" * 10, b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x7f", b"\x01", b"\x03",
    b"\xff\xff\xff\xff\x0f", b"\x00\x00", b"\xfe",
)  # fmt: skip


def changed(dice: random.Random, data: bytes, pieces: Sequence[bytes] = _PIECES) -> bytes:
    """The payload with one to three faults."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(7):
            case 0:
                data = data[:at] + bytes([dice.choice((*_ODD, dice.randrange(256)))]) + data[at + 1 :]
            case 1:
                data = data[:at] + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]
            case 2:
                data = data[:at]
            case 3:
                data = data[:at] + data[at + dice.randint(1, 6) :]
            case 4:
                data = data[:at] + dice.choice(pieces) + data[at:]
            case 5:
                data = data[:at] + dice.randbytes(dice.randint(1, 5)) + data[at:]
            case _:
                other = dice.randrange(len(data) + 1)
                data = data[:at] + data[min(at, other) : max(at, other)][:60] + data[at:]
    return data
