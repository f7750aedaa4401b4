"""Metadata written field by field, by an encoder of our own, comes back as it was written."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import (
    EntryMetadata,
    parse_metadata,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT31 = st.integers(0, 2**31 - 1)
BYTES = st.binary(max_size=200)

FIELDS = {
    "producer": (1, BYTES),
    "sequence_id": (2, INT64),
    "publish_ms": (3, INT64),
    "replicated_from": (5, BYTES),
    "key": (6, BYTES),
    "compression": (8, st.integers(0, 4)),
    "uncompressed_size": (9, UINT31),
    "num_messages": (11, UINT31),
    "event_ms": (12, INT64.filter(bool)),
    "schema_version": (16, BYTES),
    "key_b64": (17, st.just(value=True)),
    "ordering_key": (18, BYTES),
    "marker_type": (20, UINT31),
    "null_value": (25, st.just(value=True)),
    "uuid": (26, BYTES),
    "num_chunks": (27, UINT31),
    "total_size": (28, UINT31),
    "chunk_id": (29, UINT31),
    "compacted_batch_indexes": (31, st.lists(UINT31, min_size=1, max_size=4).map(lambda found: array("i", found))),
}


def varint(number):
    number %= 1 << 64
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def encoded(number, value):
    if isinstance(value, array):
        return b"".join(encoded(number, each) for each in value)
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(int(value))


def pair(name, value):
    return encoded(1, name) + encoded(2, value)


def written(values):
    return b"".join(encoded(FIELDS[name][0], value) for name, value in values.items())


COMMON = ("producer", "sequence_id", "num_messages", "compression", "uncompressed_size", "event_ms", "key")


def any_values(names):
    required = {"publish_ms": st.one_of(st.integers(1_600_000_000_000, 1_900_000_000_000), INT64)}
    return st.fixed_dictionaries(required, optional={name: FIELDS[name][1] for name in names})


@given(st.one_of(any_values(COMMON), any_values(name for name in FIELDS if name != "publish_ms")), st.data())
def test_every_field_in_any_order_comes_back(values, data):
    shuffled = dict(data.draw(st.permutations(list(values.items()))))
    assert parse_metadata(memoryview(written(shuffled))) == EntryMetadata(**values)


@given(any_values(COMMON))
def test_unknown_fields_are_skipped(values):
    unknown = (
        encoded(32, b"schema id") + encoded(19, 5) + varint(40 << 3 | 5) + b"1234" + varint(41 << 3 | 1) + bytes(8)
    )
    assert parse_metadata(unknown + written(values)) == EntryMetadata(**values)


@given(any_values(COMMON), st.data())
def test_damaged_metadata_raise_nothing_but_corrupt_frame(values, data):
    raw = bytearray(written(values))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    try:
        found = parse_metadata(raw[:cut])
    except CorruptFrame:
        return
    assert isinstance(found.publish_ms, int)


@given(st.binary(max_size=60))
def test_any_bytes_are_metadata_or_a_corrupt_frame(raw):
    try:
        found = parse_metadata(raw)
    except CorruptFrame:
        return
    assert isinstance(found.publish_ms, int)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        encoded(1, b"producer"),
        encoded(3, b"a text"),
        encoded(3, 5)[:-1],
        encoded(3, 5) + encoded(1, b"producer")[:-1],
        encoded(3, 5) + varint(9 << 3) + b"\xff" * 10 + b"\1",
        encoded(3, 5) + b"\x00\x00",
        encoded(3, 5) + b"\x01" + bytes(8),
        encoded(3, 5) + varint(7 << 3 | 3),
        encoded(3, 5) + varint(7 << 3 | 3) + varint(8 << 3 | 4),
        encoded(3, 5) + varint(7 << 3 | 3) * 200 + varint(7 << 3 | 4) * 200,
        encoded(3, 5) + encoded(31, b"\x01\x80"),
        encoded(3, 5) + encoded(31, b"\x80" * 11 + b"\x01"),
    ],
)
def test_what_is_no_metadata_is_a_corrupt_frame(raw):
    with pytest.raises(CorruptFrame, match="its metadata"):
        parse_metadata(raw)


def test_an_event_time_of_0_is_none():
    assert parse_metadata(encoded(3, 5) + encoded(12, 0)).event_ms is None


def test_numbers_of_32_bits_are_the_low_bits_of_longer_ones():
    found = parse_metadata(encoded(3, 5) + encoded(11, 2**32 + 7) + encoded(9, 2**40 + 3) + encoded(20, -1))
    assert (found.num_messages, found.uncompressed_size, found.marker_type) == (7, 3, -1)


def test_properties_stand_as_in_a_batch_however_their_lengths_are_padded():
    padded = b"\x22" + b"\x86\x80\x80\0" + pair(b"n", b"v")
    assert (
        parse_metadata(encoded(3, 5) + padded + encoded(4, b"")).properties == encoded(1, pair(b"n", b"v")) + b"\x0a\0"
    )


def test_what_half_a_million_properties_cost_grows_with_their_number_not_with_its_square():
    found = parse_metadata(encoded(3, 5) + encoded(4, b"") * 500_000)
    assert len(found.properties) == 1_000_000


def test_a_key_is_there_where_it_stands_as_the_java_client_has_it():
    assert parse_metadata(encoded(3, 5) + encoded(6, b"k") + encoded(30, 1)).key == b"k"
    assert parse_metadata(encoded(3, 5) + encoded(30, 1)).key is None


def test_compacted_indexes_may_be_packed():
    packed = encoded(31, varint(1) + varint(300))
    assert list(parse_metadata(encoded(3, 5) + packed + encoded(31, 400)).compacted_batch_indexes) == [1, 300, 400]


def test_encryption_keys_mark_an_entry_as_encrypted():
    assert parse_metadata(encoded(3, 5) + encoded(13, encoded(1, b"name"))).encrypted


def test_the_result_does_not_hold_the_frame():
    frame = bytearray(written({"publish_ms": 5, "producer": b"p", "key": b"k"}))
    found = parse_metadata(memoryview(frame))
    frame[:] = bytes(len(frame))
    assert (found.producer, found.key) == (b"p", b"k")
