"""Headers as most producers write them: [key] size [sequence id], each understood by a few loads, or left alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.decode.rows import Rows
from airflow_provider_streams.systems.pulsar.decode.unaligned import Flags, Ints, Loads, Words
from airflow_provider_streams.systems.pulsar.decode.walk import ABSENT, KEY, SEQUENCE_ID, SIZE

_LENGTH: Final = 4
_TAG_AND_LENGTH: Final = 2
_LONGEST_TAIL: Final = 8
_LAST: Final = 0x7F
_NOWHERE: Final = 1 << 40
"""Far beyond every buffer: what comes there ends nowhere."""


def parse(loads: Loads, rows: Rows, ends: Ints, chosen: slice) -> Flags:
    """Fill these rows, whose messages must end at their places in `ends`.

    Understood are headers below 256 bytes, keys below 128 and values below 16 KiB, without other fields.

    Returns:
        Which of them are not such; what is filled for these means nothing.
    """
    words = loads.words.view(np.int64)
    begin, end = rows.begin[chosen], ends[chosen]
    head = words[begin]  # 4 bytes length of the header, the first tag, the length of a key
    body = (head >> 24) & 0xFF
    body += begin
    body += _LENGTH
    skipped = _KEYS[(head >> 32) & 0xFFFF]
    odd: Flags = (head & 0xFF_FFFF) != 0
    odd |= skipped < 0
    odd |= body > end
    at = np.minimum(begin + skipped, end)
    at += _LENGTH
    word = words[at]  # the tag of the size, and its varint
    odd |= (word & 0xFF) != SIZE
    odd |= body + _SIZES[(word >> 8) & 0xFFFF] != end
    tail = at + _TAG_AND_LENGTH
    tail += (word >> 15) & 1  # the size has two bytes
    odd |= _is_odd_tail(loads.words[tail], body - tail)
    if rows.key_start is not None and rows.key_end is not None:
        _put_keys(rows.key_start[chosen], rows.key_end[chosen], (begin, at), (skipped == 0) | odd)
    rows.value_start[chosen] = body
    rows.value_end[chosen] = end
    return odd


def _put_keys(starts: Ints, ends: Ints, messages: tuple[Ints, Ints], keyless: Flags) -> None:
    """Of `messages`, their beginnings and the places behind their keys."""
    np.add(messages[0], _LENGTH + _TAG_AND_LENGTH, out=starts)
    ends[...] = messages[1]
    if keyless.any():
        starts[keyless] = ABSENT
        ends[keyless] = ABSENT


def _is_odd_tail(word: Words, length: Ints) -> Flags:
    """Which headers have behind their size neither nothing nor just a sequence id, `length` bytes with its tag."""
    length = np.minimum(length.view(np.uint64), _LONGEST_TAIL + 1).view(np.int64)  # negative ones are huge
    odd: Flags = (word & _TAIL_BITS[length]) != _TAILS[length]
    return odd


def _keys() -> Ints:
    """How many bytes a key takes, of any two that a header begins with; 0: none, the size comes first; -1: neither."""
    tag, length = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    keys = np.full(1 << 16, -1, np.int64)
    keys[tag == SIZE] = 0
    keyed = (tag == KEY) & (length <= _LAST)
    keys[keyed] = length[keyed] + _TAG_AND_LENGTH
    return keys


def _sizes() -> Ints:
    """The varint of any two bytes; longer ones end nowhere."""
    low, high = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    sizes = np.where(low <= _LAST, low, (low & _LAST) | (high << 7))
    sizes[(low > _LAST) & (high > _LAST)] = _NOWHERE
    return sizes.astype(np.int64)


def _tails() -> tuple[Words, Words]:
    """Which bits of a tail are always the same, and how they are, for each length; 1: no tail has it, nor more."""
    bits, tails = [0], [0]
    for length in range(1, _LONGEST_TAIL + 2):
        fits = 1 < length <= _LONGEST_TAIL
        bits.append(0xFF | sum(0x80 << 8 * byte for byte in range(1, length)) if fits else 0)
        tails.append(SEQUENCE_ID | sum(0x80 << 8 * byte for byte in range(1, length - 1)) if fits else 1)
    return np.array(bits, np.uint64), np.array(tails, np.uint64)


_KEYS: Final = _keys()
_SIZES: Final = _sizes()
_TAIL_BITS, _TAILS = _tails()
