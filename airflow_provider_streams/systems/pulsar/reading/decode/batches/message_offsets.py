"""Where the messages of batches start, by their lengths alone: five ways, of which the cheapest is used for a batch.

The results are well-founded guesses. This module rejects a batch whose last message ends elsewhere than the batch, and
`bulk_headers` checks every single message again.
"""

from __future__ import annotations

import re
from math import isqrt
from typing import Final

import numpy as np

from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, read_varint
from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import LENGTH, Tag, payload_size
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import SHORT_VARINTS, Flags, Ints, Loads

FEWEST_LANES: Final = 32
"""For fewer batches side by side, Python's steps are faster than numpy's."""

FEWEST_STRIDES: Final = 64
"""For batches of fewer messages, a check for one size costs more than it saves."""

MOST_LANES: Final = 1024
"""At most so many pieces of large batches: then numpy's own time per step is small."""

_MESSAGES_PER_CUT: Final = 8
"""Finding a place to cut takes as long as stepping over so many messages side by side."""

FEWEST_IN_PIECE: Final = 16
"""Pieces of fewer messages cost more than they save."""

LONGEST_TO_SCAN: Final = 256
"""Average bytes of a message: for longer ones, other ways read fewer bytes."""

_SCANNED_TOGETHER: Final = 8192
"""Messages whose places stay in the processor's cache."""

_MOST_PAIRS: Final = 8
"""Pairs of zero bytes per message; with more, other ways are faster."""

FEWEST_TO_CUT: Final = 4 * FEWEST_IN_PIECE
"""Batches of fewer messages are not cut."""


def stride(loads: Loads, start: int, end: int, count: int) -> int | None:
    """The bytes of each message, if all begin alike and one size fits; else None."""
    step, rest = divmod(end - start, count)
    if rest or hop(loads.data, start, start + step, 1) is None:
        return None
    heads = loads.words[start:end:step]
    return None if ((heads ^ heads[0]) & _ALIKE).any() else step


def scan(loads: Loads, batches: Ints, rows: Ints, out: Ints) -> Flags:
    """Find places where headers below 256 bytes seem to begin, all of a batch with the same field.

    They begin with three zero bytes, and two of these are a pair at an even place. Most payloads have few such pairs,
    which are found fast. Arguments and result as in `lanes`.
    """
    done = np.zeros(len(rows), np.bool_)
    edges = np.flatnonzero(np.diff(np.cumsum(batches[2]) // _SCANNED_TOGETHER)) + 1
    for some in map(slice, [0, *edges.tolist()], [*edges.tolist(), len(rows)]):
        done[some] = _scan(loads, batches[:, some], rows[some], out)
    return done


def _scan(loads: Loads, batches: Ints, rows: Ints, out: Ints) -> Flags:
    starts, _, counts = batches
    pairs = [_zero_pairs(loads, *batch) for batch in batches.T.tolist()]
    lengths = np.fromiter(map(len, pairs), np.int64)
    found = np.concatenate(pairs)
    found <<= 1
    found -= loads.bytes[found + 2] != 0  # the pair is the second and the third of the zeros
    if (lengths != counts).any():
        owner = np.repeat(np.arange(len(lengths)), lengths)
        heads = loads.words[found]
        alike = heads & _BEGINNING == (loads.words[starts] & _BEGINNING)[owner]
        alike &= heads & _LENGTH != 0  # else a zero before a length that looks like the tag would be taken for a start
        found, lengths = found[alike], np.bincount(owner[alike], minlength=len(lengths))
    done: Flags = lengths == counts
    ends = np.cumsum(lengths)
    for number in np.flatnonzero(done).tolist():
        end, count, row = int(ends[number]), int(counts[number]), int(rows[number])
        out[row : row + count] = found[end - count : end]
    done[done] = out[rows[done]] == starts[done]
    return done


def _zero_pairs(loads: Loads, start: int, end: int, count: int) -> Ints:
    """The pairs of zero bytes inside a batch; none if they are too many."""
    first = (start + 1) // 2
    zero = loads.pairs[first : end // 2] == 0
    if np.count_nonzero(zero) > _MOST_PAIRS * count:
        return np.arange(0)
    return np.flatnonzero(zero) + first


def hop(data: bytes | memoryview, at: int, end: int, count: int) -> list[int] | None:
    """The starts of `count` messages from `at`, one Python step each; None if they do not end at `end`."""
    starts = []
    try:
        for _ in range(count):
            starts.append(at)
            field = at + 4
            if field > end:
                return None
            body = field + LENGTH.unpack_from(data, at)[0]
            while data[field] in _BEFORE_SIZE and field < body:
                length = data[field + 1]
                field += 2
                if length > _LAST:
                    length, field = read_varint(data, field - 1)
                field += length
            if data[field] == _SIZE and field < body:
                size = data[field + 1]
                if size > _LAST:
                    size, _ = read_varint(data, field + 1)
            else:
                size = payload_size(data, at + 4, min(body, end))
            at = body + size
    except (IndexError, Malformed):
        return None
    return starts if at == end else None


def lanes(loads: Loads, batches: Ints, rows: Ints, out: Ints) -> Flags:
    """Walk many batches side by side: one numpy step takes one message of each.

    `batches` is (3, n): starts, ends, counts; the starts of batch b go to `out[rows[b]:][:counts[b]]`. It handles
    headers below 256 bytes, keys below 128 and values below 16 KiB. Returns which batches ended where they should.
    """
    order = np.argsort(-batches[2], kind="stable")
    starts, ends, counts = batches[:, order]
    # sorted by count, the unfinished batches are always the first ones
    going = np.searchsorted(-counts, -np.arange(1, counts[0] + 1), side="right")
    steps = int(np.count_nonzero(going >= FEWEST_LANES))
    at = np.stack([starts, ends, rows[order]])
    places = _step(loads.words.view(np.int64), at, going[:steps].tolist(), out)
    done = places == ends
    for lane in range(int(going[steps]) if steps < len(going) else 0):
        rest = hop(loads.data, int(places[lane]), int(ends[lane]), int(counts[lane]) - steps)
        done[lane] = rest is not None
        if rest is not None:
            row = int(rows[order[lane]])
            out[row + steps : row + int(counts[lane])] = rest
    ended = np.empty(len(order), np.bool_)
    ended[order] = done
    return ended


def pieces(loads: Loads, batches: Ints, rows: Ints, out: Ints) -> Flags:
    """Walk few batches of many messages side by side, each cut where a message seems to start.

    After a wrong cut, the pieces have another number of messages than the batch. Such a batch is left to another way,
    as is a batch with a piece much longer than the others. Arguments, limits and result as in `lanes`.
    """
    owner, place, ends = _cut(loads.data, batches)
    counts = batches[2]
    if len(owner) < FEWEST_LANES:
        return np.zeros(len(counts), np.bool_)
    words = loads.words.view(np.int64)
    found = []
    for step in range(4 * int(counts.sum()) // len(owner) + FEWEST_IN_PIECE):
        found.append(place)
        place = place.copy()
        _advance(words, place)
        np.minimum(place, ends, out=place)
        if step % 8 == 0 and (place == ends).all():
            break
    places = np.stack(found, axis=1)
    inside = places < ends[:, np.newaxis]
    messages = np.bincount(owner, inside.sum(axis=1), minlength=len(counts))
    done: Flags = messages == counts
    inside &= done[owner][:, np.newaxis]
    first = rows[done] - np.cumsum(counts[done]) + counts[done]
    out[np.repeat(first, counts[done]) + np.arange(counts[done].sum())] = places[inside]
    return done


def _cut(data: bytes | memoryview, batches: Ints) -> tuple[Ints, Ints, Ints]:
    """Pieces of about the same bytes: the batch, start and end of each."""
    most = min(isqrt(_MESSAGES_PER_CUT * int(batches[2].sum())), MOST_LANES)
    size = max(int((batches[1] - batches[0]).sum()) // most, 1)
    owners: list[int] = []
    cuts: list[int] = []
    for number, (start, end, count) in enumerate(batches.T.tolist()):
        parts = max(min((end - start) // size, count // FEWEST_IN_PIECE), 1)
        places = range(start, end, (end - start) // parts)[1:parts]
        heads = (_HEAD.search(data, place, end) for place in places)
        at = dict.fromkeys([start, *(head.start() for head in heads if head)])
        cuts += at
        owners += [number] * len(at)
    owner, begins = np.array(owners), np.array(cuts)
    ends = batches[1][owner]
    inner = owner[:-1] == owner[1:]
    ends[:-1][inner] = begins[1:][inner]
    return owner, begins, ends


def _step(words: Ints, lanes: Ints, going: list[int], out: Ints) -> Ints:
    """Step `lanes` (3, n: places, ends, rows), in each step the first `going` ones; returns their places."""
    for active in going:
        place, end, row = lanes[:, :active]
        out[row] = place
        row += 1
        _advance(words, place)
        np.minimum(place, end + 1, out=place)  # a lane that reaches its end is exactly there
    places: Ints = lanes[0]
    return places


def _advance(words: Ints, place: Ints) -> None:
    """From the start of each message to its end."""
    head = words[place]  # 4 bytes length of the header, tag, length of the key
    size = _KEYS[(head >> 32) & 0xFFFF]
    size += place
    head >>= 24
    head &= 0xFF
    place += head
    place += _SIZES[words[size] & 0xFFFF]


_LAST: Final = 0x7F
_SIZE: Final = Tag.SIZE
_BEGINNING: Final = np.uint64(0x0000_00FF_00FF_FFFF)
"""What headers below 256 bytes with the same first field share: the first bytes of their length, and the tag."""
_LENGTH: Final = np.uint64(0xFF00_0000)
_ALIKE: Final = np.uint64(0x0000_FFFF_FFFF_FFFF)
_HEAD: Final = re.compile(rb"\0\0\0[^\0][\x0A\x12\x18]", re.DOTALL)
"""A header shorter than 256 bytes: its length, and the tag of its first field."""
_BEFORE_SIZE: Final = (Tag.PROPERTIES, Tag.KEY)
_TAG, _KEY_LENGTH = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
_KEYS: Final[Ints] = np.where(_TAG == Tag.KEY, _KEY_LENGTH + 2, 0) + LENGTH.size + 1
"""The place of the size's varint in a message, for any two bytes at the start of its header."""
_SIZES: Final = SHORT_VARINTS + LENGTH.size
