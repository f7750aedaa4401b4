"""Decompresses the bytes after a registry's header, to no more bytes than `room` allows."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa

from airflow_provider_streams.errors import InvalidSchema, as_clause

Decompress: TypeAlias = Callable[[bytes, int], bytes]
"""The data of compressed bytes. It raises `TooMuch` for more bytes, and anything that it raises makes the event bad."""

LEAST_ROOM: Final = 64 << 10
MOST_ROOM: Final = 64 << 20
MOST_RATIO: Final = 250


class TooMuch(Exception):  # callers catch it: a cause, no error of the package
    """The data would be too large."""


def room(size: int) -> int:
    """The most bytes for some compressed bytes: 250 times as many, at least 64 KiB, at most 64 MiB."""
    return min(max(LEAST_ROOM, size * MOST_RATIO), MOST_ROOM)


def codec(name: str) -> Decompress:
    """The function of a codec: `gzip`, `snappy`, or `package.module:function`.

    Such a function takes and returns bytes. If its attribute `bounded` is true, it also takes the most bytes to return,
    as `airflow_provider_streams.formats.codecs:lz4` does.

    Raises:
        InvalidSchema: there is no such codec here.
    """
    if name in _OWN:
        return _OWN[name]
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InvalidSchema(f"codec {name!r}", "it is neither gzip nor snappy, nor of the form package.module:function")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidSchema(
            f"codec {name!r}",
            f"it cannot be imported ({as_clause(error)})",
            "Install it where Spark's tasks run, or send it.",
        ) from error
    return found if getattr(found, "bounded", False) else _unbounded(found)


def gzip(data: bytes, most: int) -> bytes:
    """Decompress one or more gzip members, and nothing after them."""
    pieces: list[bytes] = []
    left = most
    while True:
        member = zlib.decompressobj(wbits=_GZIP)
        piece = member.decompress(data, left + 1)
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooMuch
        if not member.eof:
            raise ValueError("a gzip member without its end")
        if not member.unused_data:
            return b"".join(pieces)
        data = member.unused_data


def snappy(data: bytes, most: int) -> bytes:
    """Decompress a raw block: its size as a varint, then its elements."""
    size = shift = 0
    for byte in data[:_SIZE_BYTES]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004  # the bit that says more follow
            break
    else:
        raise ValueError("it does not begin with a size")
    if size > most:
        raise TooMuch
    return pa.Codec("snappy").decompress(data, size, asbytes=True)


def lz4(data: bytes, most: int) -> bytes:
    """Decompress LZ4's frame format."""
    if not data:
        raise ValueError("no frame at all")
    with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
        found = stream.read(most + 1)
    if len(found) > most:
        raise TooMuch
    return found


lz4.bounded = True  # type: ignore[attr-defined]


def _unbounded(function: Callable[[bytes], bytes]) -> Decompress:
    def decompress(data: bytes, most: int) -> bytes:
        found = function(data)
        if len(found) > most:
            raise TooMuch
        return found

    return decompress


_GZIP: Final = 31
_SIZE_BYTES: Final = 5
_OWN: Final[dict[str, Decompress]] = {"gzip": gzip, "snappy": snappy}
