"""Decompresses payloads: Pulsar compresses a batch (or all chunks of a message) as one block."""

from __future__ import annotations

import zlib
from functools import cache
from itertools import count
from typing import Literal

import pyarrow as pa

from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, read_varint
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits

LZ4, ZLIB, ZSTD, SNAPPY = range(1, 5)

_NAMES: dict[int, Literal["lz4_raw", "zstd", "snappy"]] = {LZ4: "lz4_raw", ZSTD: "zstd", SNAPPY: "snappy"}

Payload = bytes | bytearray | memoryview

_LAST_LITERALS = 5
_marks = count(1)


def decompress(payload: Payload, compression: int, size: int, limits: Limits) -> bytes:
    """`payload` decompressed to exactly `size` bytes.

    Raises:
        Malformed: it is beyond the limits, of another size, or of an unknown compression.
    """
    limits.check_bytes(size)
    limits.check_ratio(size, len(payload))
    if not len(payload) and not size:
        return b""  # clients write nothing for a message without a value, with any compression
    if compression == ZLIB:
        return _inflate(payload, size)
    if compression not in _NAMES:
        raise Malformed(f"compression {compression} is unknown")
    return _native(payload, compression, size)


def _inflate(payload: Payload, size: int) -> bytes:
    """The Java client ends with a SYNC_FLUSH instead of a last block, so only the size tells that it is complete."""
    try:
        data = zlib.decompressobj().decompress(payload, size + 1)
    except zlib.error as error:
        raise Malformed(str(error)) from error
    if len(data) != size:
        raise Malformed(f"it does not decompress to the {size} bytes its metadata state")
    return data


def _native(payload: Payload, compression: int, size: int) -> bytes:
    try:
        data: bytes = _codec(compression).decompress(payload, size, asbytes=True)
        # Arrow would append uninitialised memory to a block of fewer than `size` bytes
        if compression == SNAPPY:
            short = read_varint(bytes(payload[:10]), 0)[0] != size
        else:
            short = compression == LZ4 and size > 0 and not _ends_at(payload, size)
    except (OSError, ValueError, IndexError) as error:
        raise Malformed(str(error)) from error
    if short:
        raise Malformed(f"it decompresses to fewer than the {size} bytes its metadata state")
    return data


def _ends_at(payload: Payload, size: int) -> bool:
    """Whether an LZ4 block that fits into `size` bytes fills them: then another end of it appears at their end.

    A block's last five bytes, or all bytes after the first, are literals, which decompress to themselves. See "End of
    block conditions" in LZ4's block format.
    """
    if len(payload) <= _LAST_LITERALS:
        return payload[0] >> 4 == size
    # bytes that memory cannot contain yet, and of which no suffix is a prefix
    number = next(_marks)
    mark = bytes([255, *(number >> shift & 127 for shift in (21, 14, 7, 0))])
    marked: bytes = _codec(LZ4).decompress(bytes(payload[:-_LAST_LITERALS]) + mark, size, asbytes=True)
    return marked.endswith(mark)


@cache
def _codec(compression: int) -> pa.Codec:
    return pa.Codec(_NAMES[compression])
