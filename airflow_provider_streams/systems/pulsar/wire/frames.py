"""Frames: found in a large receive buffer by their length, checked, and handed on as views, never copied.

    command  [u32 total][u32 command size][BaseCommand]
    message  command, [0x0e02][u32 size][BrokerEntryMetadata] if asked for, [0x0e01][u32 crc32c],
             [u32 metadata size][MessageMetadata][payload]

`total` counts everything after itself, the checksum everything after itself; integers are big-endian.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple

from airflow_provider_streams.errors import CorruptFrame, FrameTooLong, MissingDependency, ProtocolError
from airflow_provider_streams.systems.pulsar.limits import Limits
from airflow_provider_streams.systems.pulsar.protobuf import Malformed, read_varint
from airflow_provider_streams.systems.pulsar.wire.blocks import BLOCK_BYTES, new_block
from airflow_provider_streams.systems.pulsar.wire.commands import MESSAGE, BrokerEntry, Command, MessageHeader
from airflow_provider_streams.systems.pulsar.wire.commands import decode_command as _decode_command

FRAME_SLACK = 10 * 1024
"""How much longer than the broker's largest message a frame may be."""
DEFAULT_MAX_MESSAGE = 5 * 1024 * 1024
DEFAULT_LIMIT = Limits.max_entry_bytes
LIMIT_OPTION = "max_entry_bytes"
"""The option of a connection that bounds frames, too."""

_ROOM = 64 * 1024
_SHORTEST = 6
_HEAD = 200
"""Bytes that surely hold the command of a message."""
_U32 = Struct(">I")
_CHECKED = Struct(">HII")
_BROKER_ENTRY = Struct(">HI")
_BROKER_MAGIC, _CHECKED_MAGIC = 0x0E02, 0x0E01
# where the parts of a frame begin, counted from its first byte
_COMMAND, _TYPE, _BODY = 8, 9, 10
_MESSAGE_TAG = MESSAGE << 3 | 2
_ONE_BYTE = 0x80

Frame = tuple[int, int]
"""First byte and end of a frame in its block."""


class RawEntry(NamedTuple):
    """One MESSAGE: an entry of a ledger. The views stay valid as long as they are held."""

    consumer_id: int
    ledger: int
    entry: int
    broker: BrokerEntry | None
    metadata: memoryview
    payload: memoryview


def encode_frame(command: Command) -> bytes:
    """A command as it goes out."""
    body = command.encode()
    return _U32.pack(len(body) + 4) + _U32.pack(len(body)) + body


class FrameBuffer:
    """Sans-IO receive side: ask for `space`, fill it, say how much was `received`, get the frames.

    Memory that was received into is not written again while anybody holds a view of it: what that shows stays as it
    is. A new block begins where the old one is full; the part of a frame at its end moves along.
    """

    def __init__(self, block_bytes: int = BLOCK_BYTES, *, limit: int = DEFAULT_LIMIT) -> None:
        self.legal = DEFAULT_MAX_MESSAGE
        """Bytes of the largest message that the broker allows; it says so."""
        self.limit = limit
        """Bytes of the largest message that we take."""
        self._block_bytes = block_bytes
        self._refusal: ProtocolError | None = None
        self._begin = self._end = 0
        self._renew(block_bytes)

    def space(self) -> memoryview:
        """Where to receive into, never empty.

        Raises:
            ProtocolError: what follows the last frames is none; see `received`.
        """
        if self._refusal:
            raise self._refusal
        if self._begin + self._needed() > len(self.view) or len(self.view) - self._end < min(_ROOM, len(self.view)):
            rest = self.bytes[self._begin : self._end]
            self._renew(max(self._block_bytes, self._needed() + _ROOM))
            self.bytes[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        return self.view[self._end :]

    def received(self, count: int) -> list[Frame]:
        """The frames that are complete now, in the current block. What is wrong behind them is raised at the next call.

        Raises:
            FrameTooLong: a message beyond our limit.
            ProtocolError: what comes is not Pulsar's protocol, or a frame longer than the broker allows.
        """
        frames = []
        longest = min(self.legal, self.limit) + FRAME_SLACK
        view, at, end = self.view, self._begin, self._end + count
        unpack = _U32.unpack_from
        while end - at >= _U32.size:
            total = unpack(view, at)[0]
            if not _SHORTEST <= total <= longest:
                self._refuse(bytes(view[at : min(end, at + _HEAD)]), total)
                break
            stop = at + _U32.size + total
            if stop > end:
                break
            frames.append((at, stop))
            at = stop
        self._begin, self._end = at, end
        if self._refusal and not frames:
            raise self._refusal
        return frames

    def kind(self, frame: Frame) -> int:
        """The command's type; 0 if only decoding it can tell."""
        view, at = self.view, frame[0]
        return view[at + _TYPE] if view[at + _COMMAND] == 1 << 3 else 0

    def command(self, frame: Frame) -> Command:
        """The command of a frame that is not a MESSAGE.

        Raises:
            ProtocolError: there is none.
        """
        return _decode_command(bytes(self.view[frame[0] + _COMMAND : _command_end(self.view, frame)]))

    def entry(self, frame: Frame) -> RawEntry:
        """The message of a MESSAGE frame, its checksum compared.

        Raises:
            CorruptFrame: the checksum is wrong, or parts reach beyond the frame.
            MissingDependency: no crc32c is installed.
        """
        view, (begin, end) = self.view, frame
        at = _command_end(view, frame)
        consumer_id, ledger, entry = _message_header(view, begin, at)
        try:
            broker, metadata, payload = self._parts(at, end)
        except ProtocolError as error:
            raise CorruptFrame(f"entry {ledger}:{entry} ({end - begin} bytes): {error}", (ledger, entry)) from error
        return RawEntry(consumer_id, ledger, entry, broker, metadata, payload)

    def _parts(self, at: int, end: int) -> tuple[BrokerEntry | None, memoryview, memoryview]:
        """What the broker noted, the metadata and the payload."""
        view, broker = self.view, None
        if end - at >= _BROKER_ENTRY.size and _BROKER_ENTRY.unpack_from(view, at)[0] == _BROKER_MAGIC:
            at, broker = _broker_entry(view, at, end)
        if end - at < _CHECKED.size:
            raise ProtocolError("it ends before its metadata")
        magic, expected, size = _CHECKED.unpack_from(view, at)
        if magic == _CHECKED_MAGIC:
            if checksum()(self.bytes[at + 6 : end]) != expected:
                raise ProtocolError("it does not have its checksum")
            at += _CHECKED.size
        else:  # very old clients wrote no checksum
            size = _U32.unpack_from(view, at)[0]
            at += _U32.size
        payload = at + size
        if payload > end:
            raise ProtocolError("its metadata reaches beyond its frame")
        return broker, view[at:payload], view[payload:end]

    def _refuse(self, head: bytes, total: int) -> None:
        if not self.limit < total - FRAME_SLACK <= self.legal:
            self._refusal = _not_a_frame(head, total, self.legal + FRAME_SLACK)
        elif len(head) == _HEAD:  # else it is waited for what names the entry
            self._refusal = FrameTooLong(total, self.limit, LIMIT_OPTION, _place(head))

    def _needed(self) -> int:
        """Bytes of the frame that begins at `_begin`, as far as known."""
        if self._end - self._begin < _U32.size:
            return _U32.size
        total: int = _U32.unpack_from(self.view, self._begin)[0]
        return min(total, self.limit + FRAME_SLACK) + _U32.size

    def _renew(self, size: int) -> None:
        self.bytes = new_block(size)
        self.view = self.bytes.data[:size]


@cache
def checksum() -> Callable[[Any], int]:
    """crc32c of a contiguous numpy array of bytes, in native code.

    Raises:
        MissingDependency: google-crc32c is not installed.
    """
    try:
        import google_crc32c  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingDependency("google_crc32c", "pulsar") from error
    value: Callable[[Any], int] = google_crc32c.value
    return value


def _command_end(view: memoryview, frame: Frame) -> int:
    begin, end = frame
    stop: int = begin + _COMMAND + _U32.unpack_from(view, begin + 4)[0]
    if stop > end or stop < begin + _BODY:
        raise ProtocolError(f"a command of {stop - begin - _COMMAND} bytes in a frame of {end - begin}")
    return stop


def _message_header(view: memoryview, begin: int, end: int) -> tuple[int, int, int]:
    """Consumer, ledger and entry: read in place where they are written as brokers do, else field by field."""
    at = begin + _BODY
    head = bytes(view[at:end])
    if (
        len(head) > 8  # noqa: PLR2004 - up to the first byte of the ledger's number
        and head[0] == _MESSAGE_TAG
        and head[1] < _ONE_BYTE
        and head[2] == 1 << 3
        and head[3] < _ONE_BYTE
        and head[4] == 2 << 3 | 2
        and head[5] < _ONE_BYTE
        and head[6] == 1 << 3
    ):
        try:
            ledger, at = read_varint(head, 7)
            if head[at] == 2 << 3:
                entry, at = read_varint(head, at + 1)
                if at <= 6 + head[5] and ledger >> 63 == 0 == entry >> 63:
                    return head[3], ledger, entry
        except (IndexError, Malformed):
            pass
    return _message_header_by_field(bytes(view[begin + _COMMAND : end]))


def _message_header_by_field(data: bytes) -> tuple[int, int, int]:
    command = _decode_command(data)
    if not isinstance(command, MessageHeader) or command.message_id is None:
        raise CorruptFrame("a message without an id")
    return command.consumer_id, command.message_id.ledger, command.message_id.entry


def _place(head: bytes) -> tuple[int, int] | None:
    """Ledger and entry of the MESSAGE that begins so; None: it is none, or they have not come yet."""
    try:
        return _message_header(memoryview(head), 0, _command_end(memoryview(head), (0, len(head))))[1:]
    except (ProtocolError, struct_error):
        return None


def _broker_entry(view: memoryview, at: int, end: int) -> tuple[int, BrokerEntry]:
    begin = at + _BROKER_ENTRY.size
    stop = begin + _BROKER_ENTRY.unpack_from(view, at)[1]
    if stop > end:
        raise ProtocolError("what the broker noted of it reaches beyond its frame")
    return stop, BrokerEntry.from_bytes(bytes(view[begin:stop]))


def _not_a_frame(head: bytes, total: int, longest: int) -> ProtocolError:
    if head.startswith(b"HTTP"):
        return ProtocolError("this is an HTTP server: service_url needs the broker's binary port (by default 6650)")
    if head[0] in {0x15, 0x16} and head[1:2] == b"\x03":
        return ProtocolError("this port speaks TLS: use pulsar+ssl:// in service_url")
    return ProtocolError(f"a frame of {total} bytes; the broker allows {_SHORTEST} to {longest}")
