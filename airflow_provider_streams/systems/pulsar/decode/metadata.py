"""MessageMetadata, the header of one entry: bytes to a value. Text stays raw UTF-8 bytes, as columns want it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.decode import protobuf
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed, collect, read_varint

Pairs = tuple[tuple[bytes, bytes], ...]


class EntryMetadata(NamedTuple):
    """What one entry says about all its messages; None, empty or 0: the producer did not set it."""

    publish_ms: int
    producer: bytes = b""
    sequence_id: int | None = None
    num_messages: int | None = None
    """Messages of the batch, before any compaction; None: one message that is not a batch."""
    compression: int = 0
    """0 none, 1 LZ4, 2 ZLIB, 3 ZSTD, 4 SNAPPY."""
    uncompressed_size: int = 0
    """Bytes of the payload when decompressed (of all chunks together)."""
    event_ms: int | None = None
    """None also for 0, which clients send when no event time is set, and for what no timestamp can hold."""
    key: bytes | None = None
    """None also where the producer marked the key as null."""
    key_b64: bool = False
    """The key is base64 text of binary bytes."""
    ordering_key: bytes | None = None
    properties: Pairs = ()
    schema_version: bytes | None = None
    null_value: bool = False
    """The message is a tombstone."""
    marker_type: int | None = None
    """Not None: written by the broker for itself; it holds no message."""
    uuid: bytes | None = None
    """Not None: a chunk of a large message, `chunk_id` of `num_chunks`, `total_size` bytes together."""
    chunk_id: int = 0
    num_chunks: int = 0
    total_size: int = 0
    encrypted: bool = False
    replicated_from: bytes | None = None
    txn_least: int | None = None
    txn_most: int | None = None
    """Not None: written in a transaction."""
    highest_sequence_id: int | None = None
    compacted_batch_indexes: tuple[int, ...] = ()
    """Not empty: compaction kept these messages of the batch, and only they are in the payload."""


def parse_metadata(view: bytes | bytearray | memoryview) -> EntryMetadata:
    """The fields of one MessageMetadata; unknown ones are skipped. The result keeps no reference to `view`.

    Raises:
        CorruptFrame: the bytes are no protobuf message, a field has the wrong type, or the publish time is missing.
    """
    data = bytes(view)
    common = _parse_common(data)
    if common is not None:
        return common
    try:
        values = collect(data, 0, len(data), _FIELDS)
        if values.pop("null_partition_key", False):
            values["key"] = None
        return EntryMetadata(**values)
    except (Malformed, TypeError) as error:  # TypeError: no publish_ms
        raise CorruptFrame(f"the metadata of an entry ({len(data)} bytes) cannot be parsed: {error}") from error


def _parse_common(data: bytes) -> EntryMetadata | None:
    """The same, twice as fast, for what most entries are; None: a field is not among the common ones."""
    found: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    at, end = 0, len(data)
    try:
        while at < end:
            tag, number = data[at], data[at + 1]
            at += 2
            if number > _LAST:
                if tag == _PUBLISH_TIME:
                    number, at = _six_byte_varint(data[at - 1 : at + 5]), at + 5
                else:
                    number, at = read_varint(data, at - 1)
            if tag in _COMMON_NUMBERS and number <= protobuf.LATEST_MS:
                found[tag] = number
            elif tag in _COMMON_TEXTS:
                texts[tag] = data[at : at + number]
                at += number
            else:
                return None
        if at != end:
            return None
        return EntryMetadata(
            found[_PUBLISH_TIME],
            texts.get(0x0A, b""),
            found.get(0x10),
            found.get(0x58),
            found.get(0x40, 0),
            found.get(0x48, 0),
            found.get(0x60) or None,
            texts.get(0x32),
        )
    except (IndexError, KeyError, Malformed):
        return None


@lru_cache(maxsize=4096)
def _six_byte_varint(data: bytes) -> int:
    """The times from 2004 to 2109 have six bytes, and many entries share a millisecond."""
    number, end = read_varint(data, 0)
    if end != len(data):
        raise Malformed("a time of another width")
    return number


_LAST: Final = 0x7F
_PUBLISH_TIME: Final = 0x18
_COMMON_NUMBERS: Final = frozenset({0x10, _PUBLISH_TIME, 0x40, 0x48, 0x58, 0x60})
_COMMON_TEXTS: Final = frozenset({0x0A, 0x32})

_FIELDS: protobuf.Table = {
    1: ("producer", protobuf.as_bytes),
    2: ("sequence_id", protobuf.as_int64),
    3: ("publish_ms", protobuf.as_certain_time),
    4: ("properties", protobuf.as_pairs),
    5: ("replicated_from", protobuf.as_bytes),
    6: ("key", protobuf.as_bytes),
    8: ("compression", protobuf.as_uint),
    9: ("uncompressed_size", protobuf.as_uint),
    11: ("num_messages", protobuf.as_uint),
    12: ("event_ms", protobuf.as_time),
    13: ("encrypted", protobuf.as_presence),
    16: ("schema_version", protobuf.as_bytes),
    17: ("key_b64", protobuf.as_flag),
    18: ("ordering_key", protobuf.as_bytes),
    20: ("marker_type", protobuf.as_uint),
    22: ("txn_least", protobuf.as_uint),
    23: ("txn_most", protobuf.as_uint),
    24: ("highest_sequence_id", protobuf.as_int64),
    25: ("null_value", protobuf.as_flag),
    26: ("uuid", protobuf.as_bytes),
    27: ("num_chunks", protobuf.as_uint),
    28: ("total_size", protobuf.as_uint),
    29: ("chunk_id", protobuf.as_uint),
    30: ("null_partition_key", protobuf.as_flag),
    31: ("compacted_batch_indexes", protobuf.as_uints),
}
