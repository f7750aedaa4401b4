"""Batches whose messages have one size and no header field that a column needs: their values form a matrix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, buffer
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, read_varint
from airflow_provider_streams.systems.pulsar.reading.decode import arrays
from airflow_provider_streams.systems.pulsar.reading.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.reading.decode.entry import Group
from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import LENGTH
from airflow_provider_streams.systems.pulsar.reading.decode.memory import one_memory
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Ints

FEWEST_MESSAGES: Final = 32
"""Batches of fewer messages, on average, are cheaper many at a time."""

LONGEST_HEADER: Final = 64

_TEXT = {0x0A: "properties", 0x12: "key", 0x3A: "ordering_key"}
_NUMBER = {0x28: "event_time", 0x30: "", 0x40: "sequence_id", 0x50: ""}
"""Tags of SingleMessageMetadata that a matrix may have, if no column needs them."""
_SIZE: Final = 0x18
_LENGTH_MASK: Final = b"\xff" * 4


class Matrix(NamedTuple):
    """Messages of `stride` bytes each, whose values begin after `head` bytes."""

    stride: int
    head: int

    @property
    def size(self) -> int:
        """Bytes of each value."""
        return self.stride - self.head


def matrices(group: Group, columns: Collection[str]) -> list[Matrix] | None:
    """The matrix of each entry, if all entries are matrices and feed only the value among these columns."""
    if group.stored.mean() < FEWEST_MESSAGES or not group.is_batch.all():
        return None
    found = []
    for payload, stored, metadata in zip(group.payloads, group.stored.tolist(), group.metadata, strict=True):
        matrix = _matrix(payload, stored, columns)
        if matrix is None or metadata.compacted_batch_indexes:
            return None
        found.append(matrix)
    return found


def values(group: Group, found: Sequence[Matrix]) -> Array:
    """The values of the messages asked for, copied once from the payloads."""
    counts = group.asked
    sizes = np.array([matrix.size for matrix in found])
    offsets = np.zeros(int(counts.sum()) + 1, np.int32)
    np.cumsum(np.repeat(sizes, counts), out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    at = 0
    for payload, matrix, first, count in zip(group.payloads, found, group.first.tolist(), counts.tolist(), strict=True):
        shape = (count, matrix.size)
        end = at + count * matrix.size
        if end > at:
            source = np.ndarray(shape, np.uint8, payload, first * matrix.stride + matrix.head, (matrix.stride, 1))
            data[at:end].reshape(shape)[...] = source
            at = end
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, buffer(offsets), buffer(data)])


def views(group: Group, found: Sequence[Matrix], owner: Ints, index: Ints) -> Array:
    """As `values`, but as views if all payloads lie in one memory; `owner` and `index` locate each row's message."""
    memory = one_memory(group)
    if memory is None:
        return values(group, found).cast(pa.binary_view())
    data, begins, _ = memory
    strides, heads = np.array(found).T
    starts = (begins + heads)[owner] + index * strides[owner]
    return arrays.views(data, starts, starts + (strides - heads)[owner])


def _matrix(payload: Payload, count: int, columns: Collection[str]) -> Matrix | None:
    if not count:
        return None
    stride, rest = divmod(len(payload), count)
    head = LENGTH.unpack_from(payload)[0] + LENGTH.size
    if rest or head > min(stride, LONGEST_HEADER):
        return None
    matrix = Matrix(stride, head)
    mask = _mask(bytes(payload[LENGTH.size : head]), matrix.size, columns)
    return matrix if mask is not None and _alike(payload, count, stride, _LENGTH_MASK + mask) else None


def _mask(header: bytes, size: int, columns: Collection[str]) -> bytes | None:
    """The bits that every header of the batch must share with this one, to have its fields at the same places.

    None: a field feeds a column, drops a message or is unknown, or the value is not of `size` bytes.
    """
    mask = b""
    stated = -1
    try:
        while len(mask) < len(header):
            tag = header[len(mask)]
            number, after = read_varint(header, len(mask) + 1)
            if tag == _SIZE:
                mask, stated = mask.ljust(after, b"\xff"), number
            elif tag in _TEXT and _TEXT[tag] not in columns and number <= len(header):
                mask = mask.ljust(after, b"\xff") + bytes(number)
            elif tag in _NUMBER and _NUMBER[tag] not in columns:
                mask = (mask + b"\xff").ljust(after, b"\x80")
            else:
                return None
    except (IndexError, Malformed):
        return None
    return mask if stated == size and len(mask) == len(header) else None


def _alike(payload: Payload, count: int, stride: int, mask: bytes) -> bool:
    """Whether the bits of `mask` are the same at the start of all messages."""
    word = 8
    if stride < word:
        return False
    for at in range(0, len(mask), word):
        place = min(at, stride - word)
        bits = np.uint64(int.from_bytes(mask[place : place + word], "little"))
        heads = np.ndarray((count,), "<u8", payload, place, (stride,))
        if ((heads ^ heads[0]) & bits).any():
            return False
    return True
