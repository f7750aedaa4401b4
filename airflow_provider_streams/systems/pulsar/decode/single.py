"""A message without a batch, dressed as a batch of one: what its entry's metadata say becomes a header of its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.decode.walk import LENGTH
from airflow_provider_streams.systems.pulsar.protobuf import write_varint


def header(metadata: EntryMetadata, size: int, columns: Collection[str]) -> bytes:
    """Length and SingleMessageMetadata to put before a payload of `size` bytes; only what feeds `columns`."""
    out = b"\x18" + _varint(size)
    if metadata.key is not None and "key" in columns:
        out = b"\x12" + _varint(len(metadata.key)) + metadata.key + out
    if metadata.properties and "properties" in columns:
        out = metadata.properties + out
    if metadata.event_ms and "event_time" in columns:
        out += b"\x28" + write_varint(metadata.event_ms)
    if metadata.key_b64 and "key_bytes" in columns:
        out += b"\x30\x01"
    if metadata.ordering_key is not None and "ordering_key" in columns:
        out += b"\x3a" + _varint(len(metadata.ordering_key)) + metadata.ordering_key
    if metadata.sequence_id is not None and "sequence_id" in columns:
        out += b"\x40" + write_varint(metadata.sequence_id)
    if metadata.null_value:
        out += b"\x48\x01"
    return LENGTH.pack(len(out)) + out


def _varint(number: int) -> bytes:
    return _SMALL[number] if number < len(_SMALL) else write_varint(number)


_SMALL: Final = [write_varint(number) for number in range(1 << 10)]
