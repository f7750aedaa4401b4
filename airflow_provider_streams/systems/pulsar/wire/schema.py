"""A protocol buffers message as a dataclass: each field says its number and its kind, once, for both directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Self

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pulsar.protobuf import Malformed, as_int64, encode_field, fields


class Kind(NamedTuple):
    """How a Python value travels."""

    encode: Callable[[Any], int | bytes]
    decode: Callable[[int | bytes], Any]
    repeated: bool = False


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise Malformed("bytes stand where a number belongs")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Malformed("a number stands where bytes belong")
    return value


def _utf8(value: int | bytes) -> str:
    # names and error texts are for people: a broken byte must not hide the message around it
    return _bytes(value).decode("utf-8", "replace")


_INTEGER = Kind(int, _number)
_SIGNED = Kind(int, lambda value: as_int64(_number(value)))
_FLAG = Kind(int, lambda value: _number(value) != 0)
_TEXT = Kind(str.encode, _utf8)
_BLOB = Kind(bytes, _bytes)


def _field(number: int, kind: Kind, default: Any = None) -> Any:
    return dataclasses.field(default=default, metadata={"number": number, "kind": kind})


def integer(number: int, default: int | None = None) -> Any:
    """An unsigned integer; `default` when it is absent."""
    return _field(number, _INTEGER, default)


def signed_integer(number: int, default: int | None = None) -> Any:
    """An integer that may be negative."""
    return _field(number, _SIGNED, default)


def flag(number: int, default: bool | None = None) -> Any:  # noqa: FBT001 - the field's default value, not a switch
    """A boolean."""
    return _field(number, _FLAG, default)


def text(number: int, default: str | None = None) -> Any:
    """UTF-8 text."""
    return _field(number, _TEXT, default)


def texts(number: int) -> Any:
    """Any number of texts, as a tuple."""
    return _field(number, _TEXT._replace(repeated=True), ())


def blob(number: int) -> Any:
    """Bytes."""
    return _field(number, _BLOB)


def nested(number: int, message: type[Message]) -> Any:
    """Another message."""
    return _field(number, Kind(lambda value: value.to_bytes(), lambda value: message.from_bytes(_bytes(value))))


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """What every message can; None means absent, unknown fields are skipped."""

    def to_bytes(self) -> bytes:
        """Its fields in the order of their declaration."""
        out = bytearray()
        for name, number, kind in _layout(type(self)):  # type: ignore[arg-type]  # classes are hashable
            value = getattr(self, name)
            for item in value if kind.repeated else () if value is None else (value,):
                out += encode_field(number, kind.encode(item))
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`; of a field that comes twice the last one counts.

        Raises:
            ProtocolError: the bytes are not such a message.
        """
        known = {number: (name, kind) for name, number, kind in _layout(cls)}  # type: ignore[arg-type]  # as above
        values: dict[str, Any] = {}
        for number, value in read_fields(data):
            if number in known:
                name, kind = known[number]
                item = _decode(kind, value, f"{cls.__name__}.{name}")
                values[name] = (*values.get(name, ()), item) if kind.repeated else item
        return cls(**values)


def _decode(kind: Kind, value: int | bytes, name: str) -> Any:
    try:
        return kind.decode(value)
    except Malformed as error:
        raise ProtocolError(f"{name}: {error}") from error


def read_fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Number and value of every field of a message.

    Raises:
        ProtocolError: the bytes are not a message.
    """
    try:
        return list(fields(data, 0, len(data)))
    except Malformed as error:
        raise ProtocolError(f"{len(data)} bytes that should be a command are not: {error}") from error


@cache
def _layout(message: Any) -> tuple[tuple[str, int, Kind], ...]:
    return tuple((item.name, item.metadata["number"], item.metadata["kind"]) for item in dataclasses.fields(message))
