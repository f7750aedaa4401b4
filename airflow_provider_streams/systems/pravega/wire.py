"""The segment store's protocol as bytes: no sockets here, so that readers, tests and fuzzers share it.

A frame is `int32 type, int32 length, payload`, big-endian. Types may gain fields at their end: what is missing
there takes its default, what is too much is ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from airflow_provider_streams.errors import CorruptFrame, ProtocolError
from airflow_provider_streams.systems.pravega import compact

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


M = TypeVar("M", bound=type[Message])
MESSAGES: dict[int, type[Message]] = {}


def _message(kind: int, layout: str) -> Callable[[M], M]:
    def register(message: M) -> M:
        message.TYPE, message.LAYOUT = kind, layout
        MESSAGES[kind] = message
        return message

    return register


@_message(-127, "int int")
@dataclass(frozen=True, slots=True)
class Hello(Message):
    """The first message of both sides: the newest and the oldest version spoken."""

    high: int = VERSION_HIGH
    low: int = VERSION_LOW


@_message(1, "long uuid text text")
@dataclass(frozen=True, slots=True)
class SetupAppend(Message):
    """Announces a writer on a segment."""

    request_id: int
    writer: UUID
    segment: str
    token: str = ""


@_message(2, "long text uuid long")
@dataclass(frozen=True, slots=True)
class AppendSetup(Message):
    """The last event number the segment holds of the writer: resend only what follows."""

    request_id: int
    segment: str
    writer: UUID
    last_event_number: int = NO_EVENT


@_message(3, "uuid rest")
@dataclass(frozen=True, slots=True)
class AppendBlock(Message):
    """Whole events; applied, as one, by the end that follows."""

    writer: UUID
    data: bytes | memoryview


@_message(4, "uuid int data int long long")
@dataclass(frozen=True, slots=True)
class AppendBlockEnd(Message):
    """Ends a block; `size_of_whole_events` are the bytes that the block before it carried."""

    writer: UUID
    size_of_whole_events: int
    data: bytes | memoryview
    num_events: int
    last_event_number: int
    request_id: int = 0


@_message(7, "uuid long long long long")
@dataclass(frozen=True, slots=True)
class DataAppended(Message):
    """Everything up to `event_number` is stored."""

    writer: UUID
    event_number: int
    previous_event_number: int
    request_id: int = 0
    write_offset: int = -1


@_message(9, "text long int text long")
@dataclass(frozen=True, slots=True)
class ReadSegment(Message):
    """Asks for bytes; the server clamps the length to [8, 2 MiB] and may answer with fewer."""

    segment: str
    offset: int
    length: int
    token: str
    request_id: int


@_message(10, "text long bool bool data long")
@dataclass(frozen=True, slots=True)
class SegmentRead(Message):
    """Bytes of a segment."""

    segment: str
    offset: int
    at_tail: bool
    end_of_segment: bool
    data: bytes | memoryview
    request_id: int = 0


@_message(11, "long text text")
@dataclass(frozen=True, slots=True)
class GetStreamSegmentInfo(Message):
    """Asks where a segment starts and ends."""

    request_id: int
    segment: str
    token: str = ""


@_message(12, "long text bool bool bool long long long")
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
class GetSegmentAttribute(Message):
    """Asks for one attribute of a segment."""

    request_id: int
    segment: str
    attribute: UUID
    token: str = ""


@_message(35, "long long")
@dataclass(frozen=True, slots=True)
class SegmentAttribute(Message):
    """An attribute's value; `NO_ATTRIBUTE` if the segment has none of that name."""

    request_id: int
    value: int


@_message(38, "long text long text")
@dataclass(frozen=True, slots=True)
class TruncateSegment(Message):
    """Drops a segment's bytes before an offset."""

    request_id: int
    segment: str
    offset: int
    token: str = ""


class Refusal(Message):
    """A message by which the server refuses a request."""

    request_id: int


@_message(50, "long text text text")
@dataclass(frozen=True, slots=True)
class WrongHost(Refusal):
    """The segment lives elsewhere; `correct_host` is empty in practice: ask the controller again."""

    request_id: int
    segment: str
    correct_host: str = ""
    stack: str = ""


@_message(51, "long text text long")
@dataclass(frozen=True, slots=True)
class SegmentIsSealed(Refusal):
    """Nothing can be appended any more."""

    request_id: int
    segment: str
    stack: str = ""
    offset: int = -1


@_message(53, "long text text long")
@dataclass(frozen=True, slots=True)
class NoSuchSegment(Refusal):
    """Never made, deleted, or wholly truncated away."""

    request_id: int
    segment: str
    stack: str = ""
    offset: int = -1


@_message(56, "long text long text long")
@dataclass(frozen=True, slots=True)
class SegmentIsTruncated(Refusal):
    """The offset lies before `start_offset`, the first one still held."""

    request_id: int
    segment: str
    start_offset: int
    stack: str = ""
    offset: int = -1


@_message(60, "long text int")
@dataclass(frozen=True, slots=True)
class AuthTokenCheckFailed(Refusal):
    """The delegation token is refused; on a read the request id is 0. Code 1: it has expired."""

    request_id: int
    stack: str = ""
    code: int = -1


TOKEN_EXPIRED = 1


@_message(61, "long text text int")
@dataclass(frozen=True, slots=True)
class ErrorMessage(Refusal):
    """Anything else that went wrong."""

    request_id: int
    segment: str = ""
    message: str = ""
    code: int = -1


@_message(100, "")
@dataclass(frozen=True, slots=True)
class KeepAlive(Message):
    """Says nothing; both sides may send it when idle."""


def encode(message: Message) -> bytes:
    """A message as a frame.

    Raises:
        ProtocolError: a text or the whole is too large to send.
    """
    kinds = message.LAYOUT.split()
    values = [getattr(message, field.name) for field in fields(message)]  # type: ignore[arg-type]
    payload = b"".join(_ENCODE[kind](value) for kind, value in zip(kinds, values, strict=True))
    if len(payload) > MAX_PAYLOAD:
        raise ProtocolError(f"a message of {len(payload)} bytes is too large to send")
    return HEADER.pack(message.TYPE, len(payload)) + payload


def frame_size(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Type and payload length of a frame.

    Raises:
        CorruptFrame: a length that no server sends, so the peer is something else.
    """
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
        value, at = _DECODE[kind](payload, at)
        values.append(value)
    return message(*values)


def _number(form: str) -> Callable[[memoryview, int], tuple[Any, int]]:
    layout = struct.Struct(f">{form}")

    def decode_number(payload: memoryview, at: int) -> tuple[Any, int]:
        return layout.unpack_from(payload, at)[0], at + layout.size

    return decode_number


def _decode_bytes(payload: memoryview, at: int, size: int) -> tuple[memoryview, int]:
    if not 0 <= size <= len(payload) - at:
        raise ValueError("a field is longer than its frame")
    return payload[at : at + size], at + size


def _decode_text(payload: memoryview, at: int) -> tuple[str, int]:
    raw, at = _decode_bytes(payload, at + 2, struct.unpack_from(">H", payload, at)[0])
    return str(raw, "utf-8", "replace"), at


def _decode_data(payload: memoryview, at: int) -> tuple[memoryview, int]:
    return _decode_bytes(payload, at + 4, struct.unpack_from(">i", payload, at)[0])


def _decode_uuid(payload: memoryview, at: int) -> tuple[UUID, int]:
    raw, at = _decode_bytes(payload, at, 16)
    return UUID(bytes=bytes(raw)), at


_ENCODE: dict[str, Callable[[Any], bytes | memoryview]] = {
    "int": struct.Struct(">i").pack,
    "long": struct.Struct(">q").pack,
    "bool": struct.Struct(">?").pack,
    "text": compact.text,
    "uuid": lambda value: value.bytes,
    "data": lambda value: struct.pack(">i", len(value)) + value,
    "rest": lambda value: value,
}
_DECODE: dict[str, Callable[[memoryview, int], tuple[Any, int]]] = {
    "int": _number("i"),
    "long": _number("q"),
    "bool": _number("?"),
    "text": _decode_text,
    "uuid": _decode_uuid,
    "data": _decode_data,
    "rest": lambda payload, at: (payload[at:], len(payload)),
}
