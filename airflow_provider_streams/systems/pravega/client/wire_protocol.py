"""The segment store's protocol as bytes: no sockets here, so that readers, tests and fuzzers share it.

A frame is `int32 type, int32 length, payload`, big-endian. Types may gain fields at their end: a missing field takes
its default, surplus bytes are ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform
from uuid import UUID

from airflow_provider_streams.errors import CorruptFrame, ProtocolError
from airflow_provider_streams.systems.pravega.client import varint

VERSION_HIGH, VERSION_LOW = 16, 5
"""The protocol versions that we offer: what 0.9 to 0.13 servers accept."""
HEADER = struct.Struct(">ii")
MAX_PAYLOAD = (1 << 24) - 1
NO_EVENT = -(1 << 63)
"""The last event number of a writer that a segment has not seen."""
NO_ATTRIBUTE = -(1 << 63)
CREATION_TIME = UUID(int=1 << 127)
"""The attribute of a segment that holds when it was made, in milliseconds since 1970; written once."""


class Message:
    """One message; a subclass's fields are its layout, in order, each of a kind named in `LAYOUT`."""

    TYPE: ClassVar[int]
    LAYOUT: ClassVar[str]


M = TypeVar("M", bound=Message)
MESSAGES: dict[int, type[Message]] = {}


@dataclass_transform(frozen_default=True)
def _message(kind: int, layout: str) -> Callable[[type[M]], type[M]]:
    """A frozen dataclass that is sent and received as frames of this type."""

    def register(plain: type[M]) -> type[M]:
        message = dataclass(frozen=True, slots=True)(plain)
        message.TYPE, message.LAYOUT = kind, layout
        MESSAGES[kind] = message
        return message

    return register


@_message(-127, "int int")
class Hello(Message):
    """The first message of both sides: the newest and the oldest version spoken."""

    high: int = VERSION_HIGH
    low: int = VERSION_LOW


@_message(1, "long uuid text text")
class SetupAppend(Message):
    """Announces a writer on a segment."""

    request_id: int
    writer: UUID
    segment: str
    token: str = ""


@_message(2, "long text uuid long")
class AppendSetup(Message):
    """The last event number the segment holds of the writer: resend only what follows."""

    request_id: int
    segment: str
    writer: UUID
    last_event_number: int = NO_EVENT


@_message(3, "uuid rest")
class AppendBlock(Message):
    """Whole events; applied, as one, by the end that follows."""

    writer: UUID
    data: bytes | memoryview


@_message(4, "uuid int data int long long")
class AppendBlockEnd(Message):
    """Ends a block; `size_of_whole_events` are the bytes that the block before it carried."""

    writer: UUID
    size_of_whole_events: int
    data: bytes | memoryview
    num_events: int
    last_event_number: int
    request_id: int = 0


@_message(7, "uuid long long long long")
class DataAppended(Message):
    """Everything up to `event_number` is stored."""

    writer: UUID
    event_number: int
    previous_event_number: int
    request_id: int = 0
    write_offset: int = -1


@_message(9, "text long int text long")
class ReadSegment(Message):
    """Asks for bytes; the server clamps the length to [8, 2 MiB] and may answer with fewer."""

    segment: str
    offset: int
    length: int
    token: str
    request_id: int


@_message(10, "text long bool bool data long")
class SegmentRead(Message):
    """Bytes of a segment."""

    segment: str
    offset: int
    at_tail: bool
    end_of_segment: bool
    data: bytes | memoryview
    request_id: int = 0


@_message(11, "long text text")
class GetStreamSegmentInfo(Message):
    """Asks where a segment starts and ends."""

    request_id: int
    segment: str
    token: str = ""


@_message(12, "long text bool bool bool long long long")
class StreamSegmentInfo(Message):
    """Where a segment starts and ends."""

    request_id: int
    segment: str
    exists: bool
    is_sealed: bool
    is_deleted: bool
    last_modified_ms: int
    write_offset: int
    start_offset: int = 0


@_message(34, "long text uuid text")
class GetSegmentAttribute(Message):
    """Asks for one attribute of a segment."""

    request_id: int
    segment: str
    attribute: UUID
    token: str = ""


@_message(35, "long long")
class SegmentAttribute(Message):
    """An attribute's value; `NO_ATTRIBUTE` if the segment has none of that name."""

    request_id: int
    value: int


@_message(50, "long text text text")
class WrongHost(Message):
    """Another store serves the segment. `correct_host` is empty in practice: ask the controller again."""

    request_id: int
    segment: str
    correct_host: str = ""
    stack: str = ""


@_message(51, "long text text long")
class SegmentIsSealed(Message):
    """Nothing can be appended any more."""

    request_id: int
    segment: str
    stack: str = ""
    offset: int = -1


@_message(53, "long text text long")
class NoSuchSegment(Message):
    """Never made, deleted, or wholly truncated away."""

    request_id: int
    segment: str
    stack: str = ""
    offset: int = -1


@_message(56, "long text long text long")
class SegmentIsTruncated(Message):
    """The offset is before `start_offset`, the first one still held."""

    request_id: int
    segment: str
    start_offset: int
    stack: str = ""
    offset: int = -1


@_message(60, "long text int")
class AuthTokenCheckFailed(Message):
    """The delegation token is refused; on a read the request id is 0. Code 1: it has expired."""

    request_id: int
    stack: str = ""
    code: int = -1


TOKEN_EXPIRED = 1


@_message(61, "long text text int")
class ErrorMessage(Message):
    """Anything else that went wrong."""

    request_id: int
    segment: str = ""
    message: str = ""
    code: int = -1


@_message(100, "")
class KeepAlive(Message):
    """Says nothing; both sides may send it when idle."""


def encode(message: Message) -> bytes:
    """A message as a frame; `ProtocolError` if a text or the whole is too large to send."""
    kinds = message.LAYOUT.split()
    values = [getattr(message, field.name) for field in fields(message)]  # type: ignore[arg-type]
    payload = b"".join(_encode_field(kind, value) for kind, value in zip(kinds, values, strict=True))
    if len(payload) > MAX_PAYLOAD:
        raise ProtocolError(f"a message of {len(payload)} bytes is too large to send")
    return HEADER.pack(message.TYPE, len(payload)) + payload


def frame_size(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Type and payload length of a frame; `CorruptFrame` for a length that no server sends."""
    kind, length = HEADER.unpack(header)
    if not 0 <= length <= MAX_PAYLOAD:
        raise CorruptFrame(f"a segment store's frame of type {kind} claims {length} bytes")
    return kind, length


def decode(kind: int, payload: memoryview) -> Message | None:
    """The message in a frame; None for a type that is not known here. Data stays in the payload, uncopied.

    Raises:
        CorruptFrame: the payload is not what the type says.
    """
    message = MESSAGES.get(kind)
    if message is None:
        return None
    try:
        return _decode(message, payload)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise CorruptFrame(f"a segment store's {message.__name__} of {len(payload)} bytes is malformed") from error


def _decode(message: type[Message], payload: memoryview) -> Message:
    values: list[Any] = []
    at = 0
    for kind, field in zip(message.LAYOUT.split(), fields(message), strict=True):  # type: ignore[arg-type]
        if at == len(payload) and field.default is not MISSING:
            break
        value, at = _decode_field(kind, payload, at)
        values.append(value)
    return message(*values)


_NUMBERS = {"int": struct.Struct(">i"), "long": struct.Struct(">q"), "bool": struct.Struct(">?")}
_TEXT_SIZE = struct.Struct(">H")


def _encode_field(kind: str, value: Any) -> bytes | memoryview:
    match kind:
        case "text":
            return varint.text(value)
        case "uuid":
            return bytes(value.bytes)
        case "data":
            return _NUMBERS["int"].pack(len(value)) + bytes(value)
        case "rest":
            return memoryview(value)
    return _NUMBERS[kind].pack(value)


def _decode_field(kind: str, payload: memoryview, at: int) -> tuple[Any, int]:
    """The value at a place, and where the next one starts."""
    if kind == "rest":
        return payload[at:], len(payload)
    if kind in _NUMBERS:
        return _NUMBERS[kind].unpack_from(payload, at)[0], at + _NUMBERS[kind].size
    size = 16
    if kind != "uuid":
        prefix = _TEXT_SIZE if kind == "text" else _NUMBERS["int"]
        (size,) = prefix.unpack_from(payload, at)
        at += prefix.size
    if not 0 <= size <= len(payload) - at:
        raise ValueError("a field is longer than its frame")
    raw = payload[at : at + size]
    value = raw if kind == "data" else str(raw, "utf-8", "replace") if kind == "text" else UUID(bytes=bytes(raw))
    return value, at + size
