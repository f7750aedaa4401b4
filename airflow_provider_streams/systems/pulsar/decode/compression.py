"""Payloads decompressed whole: Pulsar compresses a batch (or all chunks of a message) as one block."""

from __future__ import annotations

import zlib
from functools import cache
from itertools import count
from typing import Literal

import pyarrow as pa

from airflow_provider_streams.systems.pulsar.limits import Limits
from airflow_provider_streams.systems.pulsar.protobuf import Malformed, read_varint

LZ4, ZLIB, ZSTD, SNAPPY = range(1, 5)

_NAMES: dict[int, Literal["lz4_raw", "zstd", "snappy"]] = {LZ4: "lz4_raw", ZSTD: "zstd", SNAPPY: "snappy"}

Payload = bytes | bytearray | memoryview

_LAST_LITERALS = 5
_marks = count(1)


def decompress(payload: Payload, compression: int, size: int, limits: Limits) -> bytes:
    """`payload` decompressed to exactly `size` bytes.

    Raises:
        Malformed: it is larger than the limits allow, does not decompress to `size` bytes, or the compression is
            unknown.
    """
    limits.check_bytes(size)
    limits.check_ratio(size, len(payload))
    if not len(payload) and not size:
        return b""  # what clients write for a message without a value, whatever their compression
    if compression == ZLIB:
        return _inflate(payload, size)
    if compression not in _NAMES:
        raise Malformed(f"compression {compression} is unknown")
    return _native(payload, compression, size)


def _inflate(payload: Payload, size: int) -> bytes:
    """The Java client ends with a SYNC_FLUSH, not with a last block: the size alone tells that all has come."""
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
        short = _is_shorter(payload, compression, size)
    except (OSError, ValueError, IndexError) as error:
        raise Malformed(str(error)) from error
    if short:
        raise Malformed(f"it decompresses to fewer than the {size} bytes its metadata state")
    return data


def _is_shorter(payload: Payload, compression: int, size: int) -> bool:
    """Whether the block holds fewer than `size` bytes: Arrow would hand out uninitialised memory after them."""
    if compression == SNAPPY:
        return read_varint(bytes(payload[:10]), 0)[0] != size
    return compression == LZ4 and size > 0 and not _ends_at(payload, size)


def _ends_at(payload: Payload, size: int) -> bool:
    """Whether an LZ4 block, which fits into `size` bytes, fills them: another end of it is found at their end.

    A block's last five bytes are literals, or all of its bytes behind the first: whatever stands there decompresses to
    itself. See LZ4's block format, "End of block conditions".
    """
    if len(payload) <= _LAST_LITERALS:
        return payload[0] >> 4 == size
    # bytes that no memory holds yet, and of which no end is a beginning
    number = next(_marks)
    mark = bytes([255, *(number >> shift & 127 for shift in (21, 14, 7, 0))])
    marked: bytes = _codec(LZ4).decompress(bytes(payload[:-_LAST_LITERALS]) + mark, size, asbytes=True)
    return marked.endswith(mark)


@cache
def _codec(compression: int) -> pa.Codec:
    return pa.Codec(_NAMES[compression])
