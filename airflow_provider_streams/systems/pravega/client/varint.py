"""Pravega's variable-width integers and versioned records, of which cuts, event pointers and watermarks consist."""

from __future__ import annotations

import struct

from airflow_provider_streams.errors import ProtocolError

_Forms = tuple[tuple[int, int, int], ...]
"""Bytes, bits of the value in them, and the marker in the first byte; ascending."""
_INT: _Forms = ((1, 7, 0x00), (2, 14, 0x80), (4, 30, 0xC0))
_LONG: _Forms = ((1, 6, 0x00), (2, 14, 0x40), (4, 30, 0x80), (8, 62, 0xC0))
_SIGNED: _Forms = ((1, 5, 0x00), (2, 13, 0x20), (4, 29, 0x40), (8, 61, 0x60))


def _encode(value: int, forms: _Forms, sign: int = 0) -> bytes:
    for size, bits, marker in forms:
        if 0 <= value < 1 << bits:
            return (value | (marker | sign) << 8 * (size - 1)).to_bytes(size, "big")
    raise ProtocolError(f"{value} is too large for a compact integer")


def compact_int(value: int) -> bytes:
    """`0 <= value < 2**30`."""
    return _encode(value, _INT)


def compact_long(value: int) -> bytes:
    """`0 <= value < 2**62`."""
    return _encode(value, _LONG)


def compact_signed_long(value: int) -> bytes:
    """`-2**61 <= value < 2**61`."""
    return _encode(-value - 1, _SIGNED, 0x80) if value < 0 else _encode(value, _SIGNED)


class Reader:
    """Takes values from the front of some bytes.

    Raises:
        ProtocolError: every method, when the bytes end too early or are no such value.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = bytes(data)
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes have not been taken."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if not 0 <= size <= self.left:
            raise ProtocolError(f"{size} bytes expected, {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def fixed(self, form: str) -> int:
        """One fixed-width integer, big-endian, by its `struct` letter."""
        value: int = struct.unpack(f">{form}", self.take(struct.calcsize(f">{form}")))[0]
        return value

    def text(self) -> str:
        """A text of at most 65,535 bytes after its length."""
        raw = self.take(self.fixed("H"))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("a name is not UTF-8") from error

    def record(self, prefix: bytes) -> Reader:
        """The content of a versioned record: its prefix (version and revision), a length, the content.

        Later revisions may only append to a content, so the caller may ignore its end.
        """
        found = self.take(len(prefix))
        if found != prefix:
            raise ProtocolError(f"a record starts with {found.hex()}, not with {prefix.hex()}")
        return Reader(self.take(self.fixed("i")))

    def compact_int(self) -> int:
        """The reverse of `varint.compact_int`."""
        return self._compact(self._peek(), _INT)

    def compact_long(self) -> int:
        """The reverse of `varint.compact_long`."""
        return self._compact(self._peek(), _LONG)

    def compact_signed_long(self) -> int:
        """The reverse of `varint.compact_signed_long`."""
        first = self._peek()
        value = self._compact(first & 0x7F, _SIGNED)
        return -value - 1 if first & 0x80 else value

    def _peek(self) -> int:
        return self._data[self._at] if self.left else 0

    def _compact(self, first: int, forms: _Forms) -> int:
        size, bits, _ = next(form for form in reversed(forms) if first >= form[2])
        return int.from_bytes(self.take(size), "big") & (1 << bits) - 1


def record(prefix: bytes, content: bytes) -> bytes:
    """The reverse of `Reader.record`."""
    return prefix + struct.pack(">i", len(content)) + content


def text(value: str) -> bytes:
    """The reverse of `Reader.text`; `ProtocolError` for more than 65,535 bytes."""
    raw = value.encode()
    if len(raw) > 0xFFFF:  # noqa: PLR2004
        raise ProtocolError(f"a text of {len(raw)} bytes is too long to send")
    return struct.pack(">H", len(raw)) + raw
