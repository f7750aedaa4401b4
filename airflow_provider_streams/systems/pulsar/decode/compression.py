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

_MARK_BYTES = 12
"""So many literals, at least, must follow LZ4's last match."""
_MARK_FOLLOWS = bytes([_MARK_BYTES << 4])
_LONGEST_REPEAT = 19
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
    """Whether an LZ4 block decompresses to `size` bytes, and no fewer: what is appended to it comes right behind them.

    A block ends within a sequence: literals without a match. So a match of the byte before it is appended, and a last
    sequence of bytes that no memory holds yet. How long that match is stands in the block's last sequence, where
    encoders write 0, which is 4 bytes; 15 goes on in another byte. See LZ4's block format, "End of block conditions".
    """
    return any(_is_followed(payload, size, repeat) for repeat in (b"\x01\x00", b"\x01\x00\x00"))


def _is_followed(payload: Payload, size: int, repeat: bytes) -> bool:
    mark = next(_marks).to_bytes(_MARK_BYTES, "big")
    block = b"".join((payload, repeat, _MARK_FOLLOWS, mark))
    try:
        found: bytes = _codec(LZ4).decompress(block, size + _LONGEST_REPEAT + _MARK_BYTES, asbytes=True)
    except OSError:
        return False
    at = found.find(mark, size + 4)
    return at > 0 and found[size:at] == found[size - 1 : size] * (at - size)


@cache
def _codec(compression: int) -> pa.Codec:
    return pa.Codec(_NAMES[compression])
