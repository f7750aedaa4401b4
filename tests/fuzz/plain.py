"""A second decoder of Pulsar's entries, by another hand: written to be obviously right, and for nothing else.

It knows nothing of the package. Bytes are cut out before they are read, so that nothing can be read from around them.
Varints may have ten bytes, tags must fit 32 bits; otherwise it takes what the protobuf library takes
(`test_plain_decoder.py` holds the two against each other).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import pyarrow as pa

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
NONE, LZ4, ZLIB, ZSTD, SNAPPY = range(5)
LATEST_MS = (2**63 - 1) // 1000 - 1

Value = int | bytes
Fields = list[tuple[int, int, Value]]
Row = dict[str, Any]
Columns = dict[str, list[Any]]


class RefusedError(Exception):
    """These bytes are no entry."""


@dataclass(frozen=True)
class Stored:
    """An entry as a reader gets it."""

    ledger: int
    entry: int
    broker: tuple[int | None, int | None] | None
    metadata: bytes
    payload: bytes


# Protocol buffers


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    number = 0
    for index, byte in enumerate(data[at : at + 10]):
        number += (byte % 128) * 128**index
        if byte < 128:
            return number % 2**64, at + index + 1
    raise RefusedError("no varint")


def fields(data: bytes) -> Fields:
    """Number, wire type and value of each field; groups and fixed-width numbers have the value 0."""
    found, at = message(data, 0, None, 100)
    if at != len(data):
        raise RefusedError("something is left")
    return found


def message(data: bytes, at: int, group: int | None, depth: int) -> tuple[Fields, int]:
    """The fields from a place on, up to the end of the data, or of the group of that number."""
    if depth < 0:
        raise RefusedError("nested too deeply")
    found: Fields = []
    while group is not None or at < len(data):
        tag, at = varint(data, at)
        number, wire = tag // 8, tag % 8
        if not 0 < number < 2**29:
            raise RefusedError("no field has this number")
        if wire == END_GROUP and number == group:
            return found, at
        value: Value = 0
        if wire == GROUP:
            _, at = message(data, at, number, depth - 1)
        else:
            value, at = simple(data, at, wire)
        if at > len(data):
            raise RefusedError("a field is cut off")
        found.append((number, wire, value))
    return found, at


def simple(data: bytes, at: int, wire: int) -> tuple[Value, int]:
    """The value at a place, and the place after it."""
    if wire == VARINT:
        return varint(data, at)
    if wire == BYTES:
        length, at = varint(data, at)
        return data[at : at + length], at + length
    if wire in {FIXED32, FIXED64}:
        return 0, at + (4 if wire == FIXED32 else 8)
    raise RefusedError("no such wire type here")


def last(found: Fields, number: int, wire: int) -> Any:
    """The last value of a field; None: there is none."""
    values = [value for a_number, a_wire, value in found if (a_number, a_wire) == (number, wire)]
    return values[-1] if values else None


def signed(number: int | None, bits: int) -> int | None:
    """The low bits as a signed number."""
    if number is None:
        return None
    number %= 2**bits
    return number - 2**bits if number >= 2 ** (bits - 1) else number


def text(data: bytes | None) -> str | None:
    """What is no UTF-8 is replaced."""
    return None if data is None else data.decode("utf-8", "replace")


def of_base64(key: bytes | None) -> bytes | None:
    """The bytes that a text means; what is no base64 means itself."""
    try:
        return None if key is None else base64.b64decode(key, validate=True)
    except binascii.Error:
        return key


@lru_cache(maxsize=1 << 16)
def properties(raw: tuple[bytes, ...]) -> list[tuple[str | None, str | None]]:
    """Names and values of KeyValues; what is missing is empty."""
    pairs = map(fields, raw)
    return [(text(last(pair, 1, BYTES) or b""), text(last(pair, 2, BYTES) or b"")) for pair in pairs]


def raw_properties(found: Fields, number: int) -> tuple[bytes, ...]:
    """The KeyValues of a field."""
    return tuple(value for a_number, wire, value in found if (a_number, wire) == (number, BYTES))


# Headers


class Header(NamedTuple):
    """What a message says of itself."""

    size: int | None
    compacted_out: bool
    null_value: bool
    key: bytes | None
    key_base64: bool
    event_ms: int | None
    ordering_key: bytes | None
    sequence_id: int | None
    raw_properties: tuple[bytes, ...]


@lru_cache(maxsize=1 << 16)
def single_header(data: bytes) -> Header:
    """SingleMessageMetadata."""
    found = fields(data)
    return Header(
        size=signed(last(found, 3, VARINT), 32),
        compacted_out=bool(last(found, 4, VARINT)),
        null_value=bool(last(found, 9, VARINT)),
        key=last(found, 2, BYTES),
        key_base64=bool(last(found, 6, VARINT)),
        event_ms=signed(last(found, 5, VARINT), 64) or None,
        ordering_key=last(found, 7, BYTES),
        sequence_id=signed(last(found, 8, VARINT), 64),
        raw_properties=raw_properties(found, 1),
    )


@lru_cache(maxsize=1 << 12)
def metadata(data: bytes) -> Row:
    """MessageMetadata."""
    found = fields(data)
    if last(found, 3, VARINT) is None:
        raise RefusedError("no publish time")
    return {
        "producer": text(last(found, 1, BYTES) or b""),
        "publish_ms": signed(last(found, 3, VARINT), 64),
        "replicated_from": text(last(found, 5, BYTES)),
        "compression": signed(last(found, 8, VARINT) or 0, 32),
        "uncompressed_size": (last(found, 9, VARINT) or 0) % 2**32,
        "num_messages": signed(last(found, 11, VARINT), 32),
        "schema_version": last(found, 16, BYTES),
        "kept": kept_indexes(found),
        "marker": last(found, 20, VARINT) is not None,
        "encrypted": last(found, 13, BYTES) is not None,
        "chunks": signed(last(found, 27, VARINT), 32) or 0,
        "header": Header(
            size=None,
            compacted_out=False,
            null_value=bool(last(found, 25, VARINT)),
            key=last(found, 6, BYTES),
            key_base64=bool(last(found, 17, VARINT)),
            event_ms=signed(last(found, 12, VARINT), 64) or None,
            ordering_key=last(found, 18, BYTES),
            sequence_id=signed(last(found, 2, VARINT), 64),
            raw_properties=raw_properties(found, 4),
        ),
    }


def kept_indexes(found: Fields) -> list[int]:
    """The batch indexes that compaction kept: a repeated number, packed or not."""
    kept: list[int] = []
    for number, wire, value in found:
        if (number, wire) == (31, VARINT):
            kept.append(signed(value, 32))
        elif (number, wire) == (31, BYTES):
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                kept.append(signed(one, 32))
    return kept


# Entries

Messages = list[tuple[Header, bytes, int]]
"""Header, value and batch index of each; -1: not in a batch."""


def decompressed(payload: bytes, compression: int, size: int) -> bytes:
    """The payload; the producer states how large it is."""
    if compression == NONE:
        return payload
    if size > 2**28:
        raise RefusedError("larger than a reader takes")
    if not payload and not size:
        return b""
    try:
        if compression == ZLIB:
            data = zlib.decompressobj().decompress(payload, size + 1)
        elif compression in {LZ4, ZSTD, SNAPPY}:
            codec = pa.Codec({LZ4: "lz4_raw", ZSTD: "zstd", SNAPPY: "snappy"}[compression])
            data = codec.decompress(payload, size, asbytes=True)
            if compression == LZ4 and size and unpacked(payload) != data:
                raise RefusedError("it is shorter")
            if compression == SNAPPY and varint(payload, 0)[0] != size:
                raise RefusedError("it is shorter or longer")
        else:
            raise RefusedError("unknown compression")
    except (zlib.error, OSError, ValueError) as error:
        raise RefusedError(str(error)) from error
    if len(data) != size:
        raise RefusedError("another size")
    return data


def unpacked(block: bytes) -> bytes:
    """An LZ4 block that its library takes, decompressed: sequences of literals and a match, the last without one."""
    out, at = bytearray(), 0
    while at < len(block):
        token = block[at]
        length, at = lz4_length(block, at + 1, token >> 4)
        out += block[at : at + length]
        at += length
        if at < len(block):
            back = block[at] + 256 * block[at + 1]
            length, at = lz4_length(block, at + 2, token & 15)
            for _ in range(length + 4):
                out.append(out[-back])
    return bytes(out)


def lz4_length(block: bytes, at: int, length: int) -> tuple[int, int]:
    """The length, which goes on in more bytes if it is 15, and the place after it."""
    if length == 15:
        while block[at] == 255:
            length, at = length + 255, at + 1
        length, at = length + block[at], at + 1
    return length, at


def columns_of(stored: Stored, asked: frozenset[str], first: int = 0, end: int = 2**31) -> Columns:
    """The messages with `first <= batch index < end` of an entry, by column.

    What is there for no column is not looked into: properties, and times that no timestamp can hold. Markers of the
    broker, encrypted entries and chunks have no rows of their own.
    """
    head = metadata(stored.metadata)
    if head["marker"] or head["encrypted"] or head["chunks"] > 1:
        return {name: [] for name in asked}
    payload = decompressed(stored.payload, head["compression"], head["uncompressed_size"])
    if head["num_messages"] is None:
        messages = [(head["header"], payload, -1)]
    else:
        messages = batch(payload, batch_indexes(head, payload))
        if "properties" in asked:
            for header, _, _ in messages:
                properties(header.raw_properties)
    messages = [each for each in messages if not each[0].compacted_out and (first <= each[2] < end or each[2] < 0)]
    columns = of_entry(stored, head, len(messages), asked) | of_messages(messages, asked)
    if "broker_index" in asked:
        columns["broker_index"] = [broker_index(stored, head, index) for *_, index in messages]
    return columns


def broker_index(stored: Stored, head: Row, index: int) -> int | None:
    """The broker notes the one of a batch's last message."""
    noted = stored.broker[1] if stored.broker else None
    return noted if noted is None or index < 0 else noted - (head["num_messages"] - 1 - index)


def batch_indexes(head: Row, payload: bytes) -> list[int] | range:
    """Of the messages that are in the payload."""
    if not head["kept"] and head["num_messages"] > len(payload):
        raise RefusedError("more messages than bytes")
    indexes = head["kept"] or range(head["num_messages"])
    limits = [-1, *indexes, head["num_messages"]]
    if any(a >= b for a, b in pairwise(limits)):
        raise RefusedError("impossible batch indexes")
    return indexes


def batch(payload: bytes, indexes: Iterable[int]) -> Messages:
    """The messages of a batch, one after the other: length of the header, header, value."""
    found, at = [], 0
    for index in indexes:
        header_end = at + 4 + int.from_bytes(payload[at : at + 4], "big")
        if at + 4 > len(payload) or header_end > len(payload):
            raise RefusedError("a header is cut off")
        header = single_header(payload[at + 4 : header_end])
        if header.size is None or header.size < 0 or header_end + header.size > len(payload):
            raise RefusedError("no value as long as stated")
        at = header_end + header.size
        found.append((header, payload[header_end:at], index))
    if at != len(payload):
        raise RefusedError("something is left")
    return found


def of_entry(stored: Stored, head: Row, count: int, asked: frozenset[str]) -> Columns:
    """What is the same in all rows of an entry."""
    broker = stored.broker or (None, None)
    times = {"publish_time": head["publish_ms"], "broker_time": broker[0]}
    same = {
        "ledger": stored.ledger,
        "entry": stored.entry,
        "producer": head["producer"],
        "schema_version": head["schema_version"],
        "replicated_from": head["replicated_from"],
        **{name: micros(millis) for name, millis in times.items() if count and name in asked},
    }
    return {name: [same.get(name)] * count for name in asked}


def of_messages(messages: Messages, asked: frozenset[str]) -> Columns:
    """What each row has of its own."""
    made: dict[str, Callable[[Header, bytes, int], object]] = {
        "value": lambda header, value, _: None if header.null_value else value,
        "batch_index": lambda _header, _value, index: index,
        "key": lambda header, *_: text(header.key),
        "key_bytes": lambda header, *_: of_base64(header.key) if header.key_base64 else header.key,
        "event_time": lambda header, *_: micros(header.event_ms),
        "properties": lambda header, *_: properties(header.raw_properties),
        "ordering_key": lambda header, *_: header.ordering_key,
        "sequence_id": lambda header, *_: header.sequence_id,
    }
    return {name: list(starmap(made[name], messages)) for name in made.keys() & asked}


def micros(millis: int | None) -> int | None:
    """A time as timestamp columns have it."""
    if millis is None:
        return None
    if abs(millis) > LATEST_MS:
        raise RefusedError("no timestamp can hold this")
    return millis * 1000
