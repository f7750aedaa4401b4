"""What a few stored bytes may become: bounded before it is paid, by options that the error names."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from array import array

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import CorruptFrame, EntryTooLarge, InvalidRequest
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.protobuf import write_varint
from airflow_provider_streams.systems.pulsar.column_names import DEFAULT_COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.reading.decode.columns import COLUMNS
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.entry_limits import FREE_BYTES, GREATEST, Limits

TOPIC = "persistent://shop/orders/events"
PUBLISHED = 1_763_700_000_123
MIB = 1 << 20
EMPTY = b"\0\0\0\2\x18\0"
"""A message of a batch, as short as it can be."""


def compressed(data, kind):
    if kind == 2:
        return zlib.compress(data)
    return pa.Codec({1: "lz4_raw", 3: "zstd", 4: "snappy"}[kind]).compress(data, asbytes=True)


def rows_of(payload, columns=None, limits=None, **metadata):
    decoder = Decoder(columns, TOPIC, 3, limits)
    decoder.add(4, 2, None, EntryMetadata(PUBLISHED, **metadata), payload)
    return sum(batch.num_rows for batch in decoder.flush())


def refused(option, payload, columns=None, limits=None, **metadata):
    with pytest.raises(EntryTooLarge, match=rf"{TOPIC} \(partition 3\): entry 4:2 is too large: .*Cuts") as caught:
        rows_of(payload, columns, limits, **metadata)
    error = caught.value
    assert (error.option, error.place, error.retryable) == (option, (4, 2), False)
    assert f"{option} is {error.limit}. To read it, raise {option}" in str(error)
    assert isinstance(error, CorruptFrame)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_an_entry_may_decompress_to_so_many_bytes(kind):
    data = bytes(range(256)) * 8
    stored = compressed(data, kind)
    about = {"compression": kind, "uncompressed_size": len(data)}
    assert rows_of(stored, limits=Limits(max_entry_bytes=2048), **about) == 1
    refused("max_entry_bytes", stored, limits=Limits(max_entry_bytes=2047), **about)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("data", [b"x", b"ab" * 30, bytes(range(256)) * 3])
def test_an_entry_decompresses_to_the_stated_size_or_is_refused(kind, data):
    stored = compressed(data, kind)
    assert rows_of(stored, compression=kind, uncompressed_size=len(data)) == 1
    for other in {1, 2, len(data) - 1, *range(len(data) + 1, len(data) + 40)} - {0, len(data)}:
        with pytest.raises(CorruptFrame):
            rows_of(stored, compression=kind, uncompressed_size=other)


def ended(last):
    """An LZ4 block of 20 literals, a match of four, and a last sequence."""
    return b"\xf0\x05" + bytes(range(20)) + b"\x01\x00" + last


@pytest.mark.parametrize(
    "block",
    [
        *(b"\x0a", b"\x00", b"\x0f", b"\xce" + bytes(12), ended(b"\x00")),
        # which fit only where there is room for more
        *(ended(bytes([literals << 4 | match]) + bytes(literals)) for literals in (5, 6, 7) for match in (0, 3, 15)),
    ],
)
def test_an_lz4_block_that_ends_early_gives_no_memory_that_nobody_wrote_to(block):
    length = {0xCE: 12, 0xF0: 24 + len(block) - 25}.get(block[0], 0)
    for size in {*range(1, 60)} - {length}:
        with pytest.raises(CorruptFrame):
            rows_of(block, compression=1, uncompressed_size=size)


@pytest.mark.parametrize("nibble", range(16))
def test_an_lz4_block_may_say_anything_where_its_last_match_would_be(nibble):
    about = {"compression": 1, "uncompressed_size": 5}
    assert rows_of(bytes([0x50 + nibble]) + b"abcde", **about) == 1


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_a_stated_size_is_looked_at_before_memory_is_taken(kind):
    tracemalloc.start()
    refused("max_entry_bytes", b"x", compression=kind, uncompressed_size=(1 << 32) - 1)
    assert tracemalloc.get_traced_memory()[1] < MIB
    tracemalloc.stop()


def test_a_few_bytes_that_become_many_are_refused_by_their_ratio():
    data = bytes(FREE_BYTES + 1)
    stored = compressed(data, 3)
    about = {"compression": 3, "uncompressed_size": len(data)}
    refused("max_entry_ratio", stored, **about)
    assert rows_of(stored, limits=Limits(max_entry_ratio=100_000), **about) == 1
    about["uncompressed_size"] = FREE_BYTES
    assert rows_of(compressed(bytes(FREE_BYTES), 3), **about) == 1


def test_an_entry_may_have_so_many_messages():
    assert rows_of(EMPTY * 50, limits=Limits(max_entry_rows=50), num_messages=50) == 50
    refused("max_entry_rows", EMPTY * 51, limits=Limits(max_entry_rows=50), num_messages=51)


def test_millions_of_messages_in_a_kilobyte_are_refused_before_they_are_cut():
    stored = compressed(EMPTY * 2_000_000, 3)
    assert len(stored) < 2000
    tracemalloc.start()
    refused("max_entry_rows", stored, compression=3, uncompressed_size=12_000_000, num_messages=2_000_000)
    assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    tracemalloc.stop()


def with_properties(count):
    header = b"\x0a\x04\x0a\0\x12\0" * count + b"\x18\0"
    return struct.pack(">I", len(header)) + header


@pytest.mark.parametrize(("each", "messages"), [(10, 30), (300, 1)])
def test_the_messages_of_an_entry_may_have_so_many_properties(each, messages):
    payload = with_properties(each) * messages
    about = {"columns": ["properties"], "num_messages": messages}
    assert rows_of(payload, limits=Limits(max_entry_rows=300), **about) == messages
    refused("max_entry_rows", payload, limits=Limits(max_entry_rows=299), **about)
    assert rows_of(payload, ["value"], Limits(max_entry_rows=299), num_messages=messages) == messages


def test_properties_of_many_entries_together_are_no_entry_with_too_many():
    decoder = Decoder(["properties"], TOPIC, 3, Limits(max_entry_rows=100))
    for entry in range(40):
        decoder.add(4, entry, None, EntryMetadata(PUBLISHED, num_messages=10), with_properties(10) * 10)
    assert sum(batch.num_rows for batch in decoder.flush()) == 400


def test_what_looks_like_properties_inside_a_value_is_not_counted():
    """Of a size that is stated twice the last one counts; with the first one, the value would hold another message."""
    second = b"\0\0\0\2\x18\5value"
    fields = b"\x0a\x04\x0a\0\x12\0" * 200 + b"\x18" + write_varint(len(second))
    value = b"begin" + struct.pack(">I", len(fields)) + fields
    header = b"\x18\x05\x18" + write_varint(len(value))
    payload = struct.pack(">I", len(header)) + header + value + second
    assert rows_of(payload, ["properties"], Limits(max_entry_rows=70), num_messages=2) == 2


@pytest.mark.parametrize("name", ["producer", "schema_version", "replicated_from"])
def test_a_text_of_the_metadata_in_every_row_counts_as_often(name):
    payload, about = EMPTY * 1000, {"num_messages": 1000, name: b"x" * 1000}
    assert rows_of(payload, [name], Limits(max_entry_bytes=1_006_000), **about) == 1000
    refused("max_entry_bytes", payload, [name], Limits(max_entry_bytes=1_005_999), **about)
    assert rows_of(payload, ["value"], Limits(max_entry_bytes=1_005_999), **about) == 1000


def test_a_message_id_costs_no_more_for_a_large_batch_index():
    payload = b"\0\0\0\2\x18\0"
    tracemalloc.start()
    metadata = EntryMetadata(PUBLISHED, num_messages=(1 << 31) - 1, compacted_batch_indexes=array("i", [(1 << 31) - 2]))
    decoder = Decoder(["message_id", "batch_index"], TOPIC, 3)
    decoder.add(4, 2, None, metadata, payload)
    (found,) = decoder.flush()[0].to_pylist()
    assert found["message_id"].endswith(b"\x20\xfe\xff\xff\xff\x07\x30\xff\xff\xff\xff\x07")
    assert tracemalloc.get_traced_memory()[1] < MIB
    tracemalloc.stop()


def peak_of(act):
    """Bytes that an act takes at most, beyond what is taken now; Arrow's own are not among them."""
    tracemalloc.start()
    act()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


WORST = {
    "messages without anything": (EMPTY, 100_000),
    "headers that only the walk reads": (b"\0\0\0\4\x5b\x5c\x18\0", 75_000),
    "sizes that come last": (b"\0\0\0\4\x40\1\x18\0", 75_000),
    "long headers": (struct.pack(">I", 602) + b"\x40\1" * 300 + b"\x18\0", 1000),
}


@pytest.mark.slow_except("all-headers that only the walk reads")
@pytest.mark.parametrize(("message", "count"), WORST.values(), ids=WORST)
@pytest.mark.parametrize("columns", [DEFAULT_COLUMN_NAMES, tuple(COLUMNS)], ids=["default", "all"])
def test_memory_is_bounded_by_the_bytes_and_the_rows(message, count, columns):
    payload = message * count
    peak = peak_of(lambda: rows_of(payload, columns, num_messages=count))
    assert peak < 8 * len(payload) + 700 * count


@pytest.mark.parametrize(
    ("option", "text"),
    [(name, text) for name in GREATEST for text in ("0", "-1", "many", str(GREATEST[name] + 1))],
)
def test_impossible_limits_are_refused(option, text):
    with pytest.raises(InvalidRequest, match=option):
        Endpoint.from_options({"service_url": "pulsar://b", option: text})


def test_limits_are_options_of_a_connection():
    options = {"service_url": "pulsar://b", "max_entry_bytes": "7", "max_entry_rows": "8", "max_entry_ratio": "9"}
    endpoint = Endpoint.from_options(options)
    assert endpoint.limits == Limits(7, 8, 9)
    assert endpoint.to_options() == options
    assert Endpoint("pulsar://b").limits == Limits()
