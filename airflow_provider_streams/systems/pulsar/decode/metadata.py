"""MessageMetadata, the header of one entry: bytes to a value. Text stays raw UTF-8 bytes, as columns want it."""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.decode import protobuf
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed, collect

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
    try:
        values = collect(data, 0, len(data), _FIELDS)
        if values.pop("null_partition_key", False):
            values["key"] = None
        return EntryMetadata(**values)
    except (Malformed, TypeError) as error:  # TypeError: no publish_ms
        raise CorruptFrame(f"the metadata of an entry ({len(data)} bytes) cannot be parsed: {error}") from error


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
