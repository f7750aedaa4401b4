"""Frames: found in a large receive buffer by their length, checked, and passed on as views without a copy.

    command  [u32 total][u32 command size][BaseCommand]
    message  command, [0x0e02][u32 size][BrokerEntryMetadata] if asked for, [0x0e01][u32 crc32c],
             [u32 metadata size][MessageMetadata][payload]

`total` and the checksum cover everything after themselves; integers are big-endian.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple

from airflow_provider_streams.errors import CorruptFrame, FrameTooLong, ProtocolError
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed, read_varint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.commands import (
    MESSAGE,
    Command,
    decode_command,
    encode_command,
    parse,
)
from airflow_provider_streams.systems.pulsar.client.wire.receive_buffers import BLOCK_BYTES, new_block
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits

FRAME_SLACK = 10 * 1024
"""How much longer than the broker's largest message a frame may be."""
DEFAULT_MAX_MESSAGE = 5 * 1024 * 1024
DEFAULT_LIMIT = Limits.max_entry_bytes
LIMIT_OPTION = "max_entry_bytes"
"""The option of a connection that also bounds frames."""

_ROOM = 64 * 1024
_SHORTEST = 6
_HEAD = 200
"""Bytes that always contain the command of a message."""
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


class BrokerEntry(NamedTuple):
    """What the broker noted with an entry: its own clock, and the index of the last message; None: not noted."""

    timestamp_ms: int | None
    message_index: int | None


class RawEntry(NamedTuple):
    """One MESSAGE: an entry of a ledger. The views keep their memory valid."""

    consumer_id: int
    ledger: int
    entry: int
    broker: BrokerEntry | None
    metadata: memoryview
    payload: memoryview


def encode_frame(command: Command) -> bytes:
    """A command as bytes to send."""
    body = encode_command(command)
    return _U32.pack(len(body) + 4) + _U32.pack(len(body)) + body


class FrameBuffer:
    """Sans-IO receive side: ask for `space`, fill it, report how much was `received`, get the frames.

    A view keeps its memory from being written again. When a block is full, the incomplete frame at its end moves to a
    new block.
    """

    def __init__(self, block_bytes: int = BLOCK_BYTES, *, limit: int = DEFAULT_LIMIT) -> None:
        self.legal = DEFAULT_MAX_MESSAGE
        """Bytes of the largest message that the broker allows."""
        self.limit = limit
        """Bytes of the largest message that we accept."""
        self._block_bytes = block_bytes
        self._refusal: ProtocolError | None = None
        self._begin = self._end = 0
        self._renew(block_bytes)

    def space(self) -> memoryview:
        """The memory to receive into, never empty; raises the error that `received` deferred."""
        if self._refusal:
            raise self._refusal
        if self._begin + self._needed() > len(self.view) or len(self.view) - self._end < min(_ROOM, len(self.view)):
            rest = self.bytes[self._begin : self._end]
            self._renew(max(self._block_bytes, self._needed() + _ROOM))
            self.bytes[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        return self.view[self._end :]

    def received(self, count: int) -> list[Frame]:
        """The frames that are complete now, in the current block. The next call raises what is wrong after them.

        Raises:
            FrameTooLong: a message beyond our limit.
            ProtocolError: the bytes are not Pulsar's protocol, or a frame is longer than the broker allows.
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
        """The command's type; 0: only decoding can tell."""
        view, at = self.view, frame[0]
        return view[at + _TYPE] if view[at + _COMMAND] == 1 << 3 else 0

    def command(self, frame: Frame) -> Command | None:
        """The command of a frame; see `decode_command`."""
        return decode_command(bytes(self.view[frame[0] + _COMMAND : _command_end(self.view, frame)]))

    def entry(self, frame: Frame) -> RawEntry:
        """The message of a MESSAGE frame with a correct checksum.

        Raises:
            CorruptFrame: the checksum is wrong, or a part ends outside the frame.
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
        elif len(head) == _HEAD:  # else wait for the bytes that name the entry
            self._refusal = FrameTooLong(total, self.limit, LIMIT_OPTION, _place(head))

    def _needed(self) -> int:
        """Known bytes of the frame that begins at `_begin`."""
        if self._end - self._begin < _U32.size:
            return _U32.size
        total: int = _U32.unpack_from(self.view, self._begin)[0]
        return min(total, self.limit + FRAME_SLACK) + _U32.size

    def _renew(self, size: int) -> None:
        self.bytes = new_block(size)
        self.view = self.bytes.data[:size]


@cache
def checksum() -> Callable[[Any], int]:
    """crc32c of a contiguous numpy array of bytes, in native code."""
    with importing("pulsar"):
        import google_crc32c  # noqa: PLC0415 - an extra
    value: Callable[[Any], int] = google_crc32c.value
    return value


def _command_end(view: memoryview, frame: Frame) -> int:
    begin, end = frame
    stop: int = begin + _COMMAND + _U32.unpack_from(view, begin + 4)[0]
    if stop > end or stop < begin + _BODY:
        raise ProtocolError(f"a command of {stop - begin - _COMMAND} bytes in a frame of {end - begin}")
    return stop


def _message_header(view: memoryview, begin: int, end: int) -> tuple[int, int, int]:
    """Consumer, ledger and entry: read in place if the bytes are as brokers write them, else field by field."""
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
    command = decode_command(bytes(view[begin + _COMMAND : end]))
    if not isinstance(command, pb.CommandMessage) or not command.HasField("message_id"):
        raise CorruptFrame("a message without an id")
    return command.consumer_id, command.message_id.ledgerId, command.message_id.entryId


def _place(head: bytes) -> tuple[int, int] | None:
    """Ledger and entry of the MESSAGE that begins so; None: it is another command, or they have not arrived."""
    try:
        return _message_header(memoryview(head), 0, _command_end(memoryview(head), (0, len(head))))[1:]
    except (ProtocolError, struct_error):
        return None


def _broker_entry(view: memoryview, at: int, end: int) -> tuple[int, BrokerEntry]:
    begin = at + _BROKER_ENTRY.size
    stop = begin + _BROKER_ENTRY.unpack_from(view, at)[1]
    if stop > end:
        raise ProtocolError("what the broker noted of it reaches beyond its frame")
    noted = parse(pb.BrokerEntryMetadata, bytes(view[begin:stop]))
    time = noted.broker_timestamp if noted.HasField("broker_timestamp") else None
    return stop, BrokerEntry(time, noted.index if noted.HasField("index") else None)


def _not_a_frame(head: bytes, total: int, longest: int) -> ProtocolError:
    if head.startswith(b"HTTP"):
        return ProtocolError("this is an HTTP server: service_url needs the broker's binary port (by default 6650)")
    if head[0] in {0x15, 0x16} and head[1:2] == b"\x03":
        return ProtocolError("this port speaks TLS: use pulsar+ssl:// in service_url")
    return ProtocolError(f"a frame of {total} bytes; the broker allows {_SHORTEST} to {longest}")
