"""Headers as most producers write them: [key] size [sequence id], each understood by a few loads, or left alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.decode.rows import Rows
from airflow_provider_streams.systems.pulsar.decode.unaligned import SHORT_VARINTS, Flags, Ints, Loads
from airflow_provider_streams.systems.pulsar.decode.walk import ABSENT, KEY, SEQUENCE_ID, SIZE

_LENGTH: Final = 4
_TAG_AND_LENGTH: Final = 2
_LONGEST_TAIL: Final = 8
_SHORT_TAIL: Final = 5
"""Of so many bytes, it lies within eight from the tag of the size on."""
_LAST: Final = 0x7F
_BEYOND: Final = 256
"""More bytes than such a header has, but fewer than there are behind every buffer: it then ends before its fields."""


def parse(loads: Loads, rows: Rows, chosen: slice) -> Flags:
    """Fill these rows, whose values must end at their places in `rows.value_end`.

    Understood are headers below 256 bytes, keys below 128 and values below 16 KiB, without other fields.

    Returns:
        Which of them are not such; what is filled for these means nothing.
    """
    words = loads.words.view(np.int64)
    begin, end, body = rows.begin[chosen], rows.value_end[chosen], rows.value_start[chosen]
    head = words[begin]  # 4 bytes length of the header, the first tag, the length of a key
    np.right_shift(head, 24, out=body)
    body &= 0xFF
    body += begin
    body += _LENGTH
    skipped = _KEYS[(head >> 32) & 0xFFFF]
    head &= 0xFF_FFFF
    odd: Flags = head != 0
    at = begin + skipped
    at += _LENGTH
    word = words[at]  # the tag of the size, and its varint
    odd |= (word & 0xFF) != SIZE
    size = SHORT_VARINTS[(word >> 8) & 0xFFFF]
    size += body
    odd |= size != end
    wide = (word >> 15) & 1  # the size has two bytes
    length = body - at
    length -= wide
    length -= _TAG_AND_LENGTH
    if length.max(initial=0) <= _SHORT_TAIL:
        wide <<= 3
        wide += 8 * _TAG_AND_LENGTH
        word >>= wide
    else:
        wide += at
        wide += _TAG_AND_LENGTH
        word = words[wide]
    odd |= _is_odd_tail(word, length)
    if rows.key_start is not None and rows.key_end is not None:
        _put_keys(rows.key_start[chosen], rows.key_end[chosen], (begin, at), (skipped == 0) | odd)
    return odd


def _put_keys(starts: Ints, ends: Ints, messages: tuple[Ints, Ints], keyless: Flags) -> None:
    """Of `messages`, their beginnings and the places behind their keys."""
    np.add(messages[0], _LENGTH + _TAG_AND_LENGTH, out=starts)
    ends[...] = messages[1]
    if keyless.any():
        starts[keyless] = ABSENT
        ends[keyless] = ABSENT


def _is_odd_tail(word: Ints, length: Ints) -> Flags:
    """Which headers have behind their size neither nothing nor just a sequence id, `length` bytes with its tag."""
    length = np.minimum(length.view(np.uint64), _LONGEST_TAIL + 1).view(np.int64)  # negative ones are huge
    kinds = length[:1] if (length == length[0]).all() else length
    odd: Flags = (word & _TAIL_BITS[kinds]) != _TAILS[kinds]
    return odd


def _keys() -> Ints:
    """How many bytes a key takes, of any two that a header begins with; 0: the size comes first; `_BEYOND`: neither."""
    tag, length = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    keys = np.full(1 << 16, _BEYOND, np.int64)
    keys[tag == SIZE] = 0
    keyed = (tag == KEY) & (length <= _LAST)
    keys[keyed] = length[keyed] + _TAG_AND_LENGTH
    return keys


def _tails() -> tuple[Ints, Ints]:
    """Which bits of a tail are always the same, and how they are, for each length; 1: no tail has it, nor more."""
    bits, tails = [0], [0]
    for length in range(1, _LONGEST_TAIL + 2):
        fits = 1 < length <= _LONGEST_TAIL
        bits.append(0xFF | sum(0x80 << 8 * byte for byte in range(1, length)) if fits else 0)
        tails.append(SEQUENCE_ID | sum(0x80 << 8 * byte for byte in range(1, length - 1)) if fits else 1)
    return np.array(bits, np.uint64).view(np.int64), np.array(tails, np.uint64).view(np.int64)


_KEYS: Final = _keys()
_TAIL_BITS, _TAILS = _tails()
