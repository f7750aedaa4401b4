"""Reads headers as most producers write them, [key] size [sequence id], by a few loads each."""

from __future__ import annotations

from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import ABSENT, Tag
from airflow_provider_streams.systems.pulsar.reading.decode.rows import Rows
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import SHORT_VARINTS, Flags, Ints, Loads

_LENGTH: Final = 4
_TAG_AND_LENGTH: Final = 2
_LONGEST_TAIL: Final = 8
_SHORT_TAIL: Final = 5
"""A tail of so many bytes is within eight bytes of the tag of the size."""
_LAST: Final = 0x7F
_BEYOND: Final = 256
"""More bytes than such a header has, but less than the padding of a buffer."""


def parse(loads: Loads, rows: Rows, chosen: slice) -> Flags:
    """Fill these rows, whose values must end at their places in `rows.value_end`.

    It handles headers below 256 bytes, keys below 128 and values below 16 KiB, without other fields. Returns which rows
    are odd; their content means nothing.
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
    odd |= (word & 0xFF) != Tag.SIZE
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
    if Tag.KEY in rows.spans:
        starts, ends = (places[chosen] for places in rows.spans[Tag.KEY])
        np.add(begin, _LENGTH + _TAG_AND_LENGTH, out=starts)
        ends[...] = at
        keyless = (skipped == 0) | odd
        if keyless.any():
            starts[keyless] = ABSENT
            ends[keyless] = ABSENT
    return odd


def _is_odd_tail(word: Ints, length: Ints) -> Flags:
    """Which headers have more than a sequence id of `length` bytes, with its tag, after their size."""
    length = np.minimum(length.view(np.uint64), _LONGEST_TAIL + 1).view(np.int64)  # negative ones are huge
    kinds = length[:1] if (length == length[0]).all() else length
    odd: Flags = (word & _TAIL_BITS[kinds]) != _TAILS[kinds]
    return odd


def _keys() -> Ints:
    """The bytes of a key, for any two bytes at the start of a header; 0: the size is first; `_BEYOND`: neither."""
    tag, length = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    keys = np.full(1 << 16, _BEYOND, np.int64)
    keys[tag == Tag.SIZE] = 0
    keyed = (tag == Tag.KEY) & (length <= _LAST)
    keys[keyed] = length[keyed] + _TAG_AND_LENGTH
    return keys


def _tails() -> tuple[Ints, Ints]:
    """The constant bits of a tail, and their values, for each length; 1: no tail has this length."""
    bits, tails = [0], [0]
    for length in range(1, _LONGEST_TAIL + 2):
        fits = 1 < length <= _LONGEST_TAIL
        bits.append(0xFF | sum(0x80 << 8 * byte for byte in range(1, length)) if fits else 0)
        tails.append(Tag.SEQUENCE_ID | sum(0x80 << 8 * byte for byte in range(1, length - 1)) if fits else 1)
    return np.array(bits, np.uint64).view(np.int64), np.array(tails, np.uint64).view(np.int64)


_KEYS: Final = _keys()
_TAIL_BITS, _TAILS = _tails()
