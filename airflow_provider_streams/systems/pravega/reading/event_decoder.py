"""Stored bytes to events: finds the frames in a block, and hands their payloads to Arrow as a whole.

A segment is a plain sequence of `int32 0, int32 length, payload`. Nothing marks the next event, so reading must begin
at an event, and every event is found from the one before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_streams.errors import CutNotAtEventBoundary, EventTooLarge

HEADER_BYTES = 8
_HEADER = struct.Struct(">Q")
_LARGEST = (1 << 31) - 1
"""An event's type is 0, so its header as one number is its length; anything larger is no event."""
_SAME_SIZE_PROBE = 16


@dataclass(frozen=True, slots=True)
class Events:
    """Consecutive whole events of one segment."""

    payloads: pa.BinaryArray
    offsets: npt.NDArray[np.int64]
    """Where each event is stored (its header), in bytes of the segment."""
    end: int
    """Where the event after the last one starts."""

    def __len__(self) -> int:
        return len(self.offsets)

    def slices(self, rows: int) -> Iterator[Events]:
        """Pieces of at most `rows` events, without copying."""
        for first in range(0, len(self), rows):
            stop = first + rows
            end = self.end if stop >= len(self) else int(self.offsets[stop])
            yield Events(self.payloads.slice(first, rows), self.offsets[first:stop], end)


class EventParser:
    """Takes the bytes of a range, block by block, and gives its events; keeps incomplete ones for the next block.

    Args:
        shard: the segment's name, for errors.
        start: where the range starts.
        end: where it ends.
        most: bytes of the largest event, its header included; memory is bounded by twice as many.

    Raises:
        CutNotAtEventBoundary, EventTooLarge: by `feed`, as soon as the bytes show it.
    """

    def __init__(self, shard: str, start: int, end: int, most: int = _LARGEST) -> None:
        self._shard, self._start, self._end, self._most = shard, start, end, most
        self._at = start
        """Where the first event stored in `_carried` starts."""
        self._carried: list[memoryview] = []
        self._held = 0
        self._wanted = HEADER_BYTES
        self._payloads = _every_second(0)

    @property
    def at(self) -> int:
        """Where the first event starts that was not given yet."""
        return self._at

    @property
    def next_byte(self) -> int:
        """The offset of the byte that must be fed next."""
        return self._at + self._held

    def restart(self, start: int) -> None:
        """Forget incomplete bytes, and go on with an event that starts further on."""
        self._carried, self._held, self._wanted = [], 0, HEADER_BYTES
        self._at = self._start = start

    def feed(self, memory: memoryview, start: int = 0) -> Events | None:
        """The whole events that the bytes from `start` on complete; None: none yet.

        The bytes in front of `start` may be overwritten: the few bytes left of the last block move there, if there is
        room, instead of both blocks.
        """
        self._carried.append(memory[start:])
        self._held += len(memory) - start
        if self._held < self._wanted:
            return None
        data = self._joined(memory, start)
        starts, stop = _walk(data)
        events = self._events(data, starts, stop) if starts.size else None
        self._carried, self._held = [data[stop:]] if stop < len(data) else [], len(data) - stop
        self._at += stop
        self._wanted = self._next_size(data, stop)
        return events

    def _joined(self, memory: memoryview, start: int) -> memoryview:
        *before, block = self._carried
        at = first = start - self._held + len(block)
        if first < 0:
            return memoryview(b"".join(self._carried))
        for part in before:
            memory[at : at + len(part)] = part
            at += len(part)
        return memory[first:]

    def _events(self, data: memoryview, starts: npt.NDArray[np.int64], stop: int) -> Events:
        size = stop // len(starts)
        equal = np.array_equal(starts, np.arange(0, stop, size))
        payloads = _columns(data, len(starts), size) if equal else self._picked(data, starts, stop)
        return Events(payloads, starts + self._at, self._at + stop)

    def _picked(self, data: memoryview, starts: npt.NDArray[np.int64], stop: int) -> pa.BinaryArray:
        # header, payload, header, payload, ..: a valid binary array over the block as it is; every second one is kept
        edges = np.empty(2 * len(starts) + 1, dtype=np.int32)
        edges[:-1:2] = starts
        edges[1::2] = starts
        edges[1::2] += HEADER_BYTES
        edges[-1] = stop
        buffers = [None, pa.py_buffer(edges.data), pa.py_buffer(data)]
        both = pa.BinaryArray.from_buffers(pa.binary(), 2 * len(starts), buffers)
        if len(self._payloads) < len(starts):
            self._payloads = _every_second(2 * len(starts))
        return cast("pa.BinaryArray", both.take(self._payloads.slice(0, len(starts))))

    def _next_size(self, data: memoryview, stop: int) -> int:
        """How many bytes the next event has, as far as known; checks that it can be one."""
        if len(data) - stop < HEADER_BYTES:
            return HEADER_BYTES
        (length,) = _HEADER.unpack_from(data, stop)
        if length > _LARGEST - HEADER_BYTES:
            raise CutNotAtEventBoundary(self._shard, self._at, first=self._at == self._start)
        size: int = HEADER_BYTES + length
        if self._at + size > self._end:
            if self._at == self._start:
                raise CutNotAtEventBoundary(self._shard, self._at, first=True)
            raise CutNotAtEventBoundary(self._shard, self._at, self._end)
        if size > self._most:
            raise EventTooLarge(self._shard, self._at, size, self._most)
        return size

    def finish(self) -> None:
        """All bytes were fed; `CutNotAtEventBoundary` if some at the end are no whole event."""
        if self._held:
            raise CutNotAtEventBoundary(self._shard, self._at, self._end)


def _columns(data: memoryview, count: int, stride: int) -> pa.BinaryArray:
    """The payloads of events of one size: a table of bytes without its first columns, copied at half the cost."""
    size = stride - HEADER_BYTES
    payloads = pa.allocate_buffer(count * size)
    table = np.ndarray((count, stride), np.uint8, data)
    np.ndarray((count, size), np.uint8, memoryview(payloads).cast("B"))[:] = table[:, HEADER_BYTES:]
    edges = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    buffers = [None, pa.py_buffer(edges.data), payloads]
    return cast("pa.BinaryArray", pa.BinaryArray.from_buffers(pa.binary(), count, buffers))


def _every_second(count: int) -> pa.Int64Array:
    return cast("pa.Int64Array", pa.array(np.arange(1, 2 * count, 2)))


def _walk(data: memoryview) -> tuple[npt.NDArray[np.int64], int]:
    """Where whole events start in a block that begins with one, and where the last of them ends.

    A header that is none ends the walk: it claims more bytes than any block has.
    """
    size = len(data)
    fixed, at = _same_size(data)
    starts: list[int] = []
    add, unpack = starts.append, _HEADER.unpack_from
    last = size - HEADER_BYTES
    while at <= last:
        stop = at + HEADER_BYTES + unpack(data, at)[0]
        if stop > size:
            break
        add(at)
        at = stop
    walked = np.array(starts, dtype=np.int64)
    return (np.concatenate([fixed, walked]) if fixed.size else walked), at


def _same_size(data: memoryview) -> tuple[npt.NDArray[np.int64], int]:
    """The events at the front of a block that are as long as the first one, and where they end.

    Equal headers at equal distances are, one after the other, exactly what a walk would find.
    """
    none = np.empty(0, dtype=np.int64), 0
    if len(data) < HEADER_BYTES:
        return none
    header = bytes(data[:HEADER_BYTES])
    stride = HEADER_BYTES + _HEADER.unpack(header)[0]
    count = len(data) // stride
    probe = _SAME_SIZE_PROBE * stride
    if count <= _SAME_SIZE_PROBE or bytes(data[probe : probe + HEADER_BYTES]) != header:
        return none
    headers = np.ndarray((count,), np.uint64, data, strides=(stride,))
    differs = headers != headers[0]
    same = int(differs.argmax()) if differs.any() else count
    return np.arange(0, same * stride, stride, dtype=np.int64), same * stride
