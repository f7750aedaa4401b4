"""Entries written by a small encoder of our own come back as the same rows, whatever way the decoder takes."""

# ruff: noqa: S311 - seeded dice: a failing example can be run again

from __future__ import annotations

import random
import struct
import subprocess
import sys
import zlib
from array import array
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pulsar
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import CorruptFrame, InvalidRequest
from airflow_provider_streams.systems.pulsar.column_names import DEFAULT_COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.reading.decode import decoder as decoder_module
from airflow_provider_streams.systems.pulsar.reading.decode import memory
from airflow_provider_streams.systems.pulsar.reading.decode.batches import message_spans
from airflow_provider_streams.systems.pulsar.reading.decode.columns import COLUMNS, arrow_schema
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING
from tests.seeds import examples

TOPIC = "persistent://shop/orders/events"
ALL = tuple(COLUMNS)
PUBLISHED = 1_763_700_000_123
COMPRESSIONS = {"none": 0, "lz4": 1, "zlib": 2, "zstd": 3, "snappy": 4}


@dataclass(frozen=True)
class Sent:
    """What a producer says about one message."""

    value: bytes = b""
    key: bytes | None = None
    key_base64: bool = False
    properties: tuple[tuple[bytes, bytes], ...] = ()
    event_ms: int | None = None
    ordering_key: bytes | None = None
    sequence_id: int | None = None
    null_value: bool = False
    null_key: bool = False
    compacted_out: bool = False
    unknown: bytes = b""


def varint(number):
    number %= 1 << 64
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def text(tag, data):
    return b"" if data is None else bytes([tag]) + varint(len(data)) + data


def number(tag, value):
    return b"" if value is None else bytes([tag]) + varint(value)


def properties(sent):
    return b"".join(text(0x0A, text(0x0A, name) + text(0x12, value)) for name, value in sent.properties)


def message(sent):
    header = b"".join(
        [
            properties(sent),
            text(0x12, sent.key),
            number(0x18, len(sent.value)),
            number(0x20, 1 if sent.compacted_out else None),
            number(0x28, sent.event_ms),
            number(0x30, 1 if sent.key_base64 else None),
            text(0x3A, sent.ordering_key),
            number(0x40, sent.sequence_id),
            number(0x48, 1 if sent.null_value else None),
            number(0x50, 1 if sent.null_key else None),
            sent.unknown,
        ]
    )
    return struct.pack(">I", len(header)) + header + sent.value


def batch(messages):
    return b"".join(map(message, messages))


def compressed(payload, compression):
    if compression == 0:
        return payload
    if compression == 2:
        return zlib.compress(payload)
    return pa.Codec({1: "lz4_raw", 3: "zstd", 4: "snappy"}[compression]).compress(payload, asbytes=True)


def add_batch(decoder, ledger, entry, messages, compression=0, *, payload=None, **options):
    payload = batch(messages) if payload is None else payload
    metadata = EntryMetadata(
        PUBLISHED + entry,
        producer=b"p-%d" % ledger,
        num_messages=len(messages),
        compression=compression,
        uncompressed_size=len(payload),
        schema_version=None if entry % 2 else b"\0\0\0\7",
        replicated_from=b"eu" if entry % 3 else None,
    )
    broker = (PUBLISHED + 7 if entry % 5 else None, entry * 10) if entry % 2 else None
    decoder.add(ledger, entry, broker, metadata, memoryview(compressed(payload, compression)), **options)
    kept = [(i, m) for i, m in enumerate(messages) if not m.compacted_out]
    return [row(metadata, broker, (ledger, entry, i), m) for i, m in kept]


def add_single(decoder, ledger, entry, sent, compression=0):
    metadata = EntryMetadata(
        PUBLISHED + entry,
        producer=b"alone",
        sequence_id=sent.sequence_id,
        compression=compression,
        uncompressed_size=len(sent.value),
        event_ms=sent.event_ms,
        key=sent.key,
        key_b64=sent.key_base64,
        ordering_key=sent.ordering_key,
        properties=properties(sent),
        null_value=sent.null_value,
    )
    decoder.add(ledger, entry, None, metadata, compressed(sent.value, compression))
    return [row(metadata, None, (ledger, entry, -1), sent)]


def moment(millis):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


def readable(data):
    return None if data is None else data.decode(errors="replace")


def given_key(sent):
    if not sent.key_base64:
        return sent.key
    return {b"AP8=": b"\0\xff", b"eHh4": b"xxx"}.get(sent.key, sent.key)


def row(metadata, broker, place, sent):
    ledger, entry, index = place
    start = b"\x08" + varint(ledger) + b"\x10" + varint(entry) + b"\x18\x03"
    of_batch = b"\x20" + varint(index) + b"\x30" + varint(metadata.num_messages) if index >= 0 else b""
    return {
        "value": None if sent.null_value else sent.value,
        "key": readable(sent.key),
        "publish_time": moment(metadata.publish_ms),
        "event_time": moment(sent.event_ms) if sent.event_ms else None,
        "topic": TOPIC,
        "partition": 3,
        "ledger": ledger,
        "entry": entry,
        "batch_index": index,
        "properties": [(readable(name), readable(value)) for name, value in sent.properties],
        "ordering_key": sent.ordering_key,
        "key_bytes": given_key(sent),
        "producer": readable(metadata.producer),
        "sequence_id": sent.sequence_id,
        "schema_version": metadata.schema_version,
        "broker_time": moment(broker[0]) if broker and broker[0] else None,
        # the broker notes the index of the batch's last message
        "broker_index": broker[1] - (metadata.num_messages - 1 - index if index >= 0 else 0) if broker else None,
        "replicated_from": readable(metadata.replicated_from),
        "message_id": start + of_batch,
    }


def decoded(decoder):
    batches = decoder.flush()
    for each in batches:
        each.validate(full=True)
        assert each.schema == decoder.schema
    return [found for each in batches for found in each.to_pylist()]


def of(columns, rows):
    return [{name: each[name] for name in columns} for each in rows]


def random_bytes(dice, low, high):
    return dice.randbytes(dice.randint(low, high))


def maybe(dice, value):
    return value if dice.random() < 0.5 else None


def uniform(dice, count):
    size = dice.choice([1, 7, 100, 300])
    return [Sent(dice.randbytes(size), sequence_id=1000 + i) for i in range(count)]


def unkeyed(dice, count):
    return [Sent(random_bytes(dice, 0, 300), sequence_id=i) for i in range(count)]


def keyed(dice, count):
    return [Sent(random_bytes(dice, 0, 200), key=maybe(dice, b"k%d" % i), sequence_id=i) for i in range(count)]


def always_keyed(dice, count):
    return [replace(sent, key=b"k" * dice.randint(0, 130)) for sent in keyed(dice, count)]


def with_zeros(dice, count):
    """Numbers of a few bytes among others, as binary formats write them."""
    pieces = [b"\0\0", b"\0\0\0\x05", b"\0\0\0\0", b"text", b"longer text"]
    return [
        replace(sent, value=b"".join(dice.choices(pieces, k=dice.randint(0, 9)))) for sent in always_keyed(dice, count)
    ]


def mostly_zeros(dice, count):
    return [Sent(bytes(dice.randint(60, 90)), key=b"k" * dice.randint(1, 9), sequence_id=i) for i in range(count)]


def large(dice, count):
    return [Sent(random_bytes(dice, 300, 900), sequence_id=i) for i in range(count)]


def same_keys(dice, count):
    return [Sent(dice.randbytes(60), key=b"key-%04d" % i, sequence_id=5000 + i) for i in range(count)]


def strange_texts(dice, count):
    return [Sent(b"v", key=dice.choice([b"\xff", b"k"]), sequence_id=i) for i in range(count)]


def rich(dice, count):
    pairs = [(b"name", b""), (b"", b"value" * 40), ("schlüssel".encode(), b"\xff"), (b"name-2", b"name")]
    return [
        Sent(
            b"" if (dead := dice.random() < 0.1) else random_bytes(dice, 0, 90),
            key=dice.choice([None, b"", b"AP8=", b"eHh4", "ключ".encode(), b"=" * 300]),
            key_base64=dice.random() < 0.5,
            properties=tuple(dice.sample(pairs, dice.randint(0, 3))),
            event_ms=dice.choice([None, 0, 1, 1_700_000_000_000]),
            ordering_key=maybe(dice, random_bytes(dice, 0, 20)),
            sequence_id=dice.choice([None, 0, 127, 128, 1 << 48, 1 << 49, 1 << 56, (1 << 63) - 1, -1]),
            null_value=dead,
            null_key=dice.random() < 0.1,
            compacted_out=dice.random() < 0.1,
        )
        for _ in range(count)
    ]


def strange(dice, count):
    return [replace(m, unknown=dice.choice([b"", number(0x78, 5), text(0x6A, b"new")])) for m in rich(dice, count)]


def nested(dice, count):
    return [Sent(batch(keyed(dice, dice.randint(1, 3))), sequence_id=i) for i in range(count)]


def decoys(dice, count):
    """Each value ends with what looks like the begin of a message that ends where the next one does."""
    made, following = [], 0
    for _ in range(count):
        field = number(0x18, following)
        made.append(Sent(b"v" * dice.randint(60, 90) + struct.pack(">I", len(field)) + field))
        following = len(message(made[-1]))
    return made[::-1]


SHAPES = [uniform, unkeyed, keyed, always_keyed, with_zeros, mostly_zeros, large]
SHAPES += [same_keys, strange_texts, rich, strange, nested, decoys]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3),
    entries=st.integers(1, 70),
    most=st.sampled_from([1, 3, 20, 90]),
    compression=st.sampled_from(sorted(COMPRESSIONS.values())),
    columns=st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    views=st.booleans(),
)
def test_any_mix_of_entries_comes_back_as_it_was_sent(*, seed, shapes, entries, most, compression, columns, views):
    dice, decoder, expected = random.Random(seed), Decoder(columns, TOPIC, 3), []
    if views:
        decoder.lend()
    for entry in range(entries):
        messages = dice.choice(shapes)(dice, dice.randint(0, most))
        if len(messages) == 1 and dice.random() < 0.5:
            expected += add_single(decoder, 9, entry, replace(messages[0], compacted_out=False), compression)
        else:
            expected += add_batch(decoder, 9, entry, messages, dice.choice([0, compression]))
        if dice.random() < 0.05:
            assert decoded(decoder) == of(columns, expected)
            expected = []
    assert decoded(decoder) == of(columns, expected)
    assert sum(decoder.paths.values()) == entries


def described(dice, count):
    return [replace(sent, properties=((b"region", b"%d" % dice.randrange(10**6)),)) for sent in keyed(dice, count)]


@pytest.mark.parametrize(
    ("shape", "count", "entries", "columns", "path"),
    [
        (uniform, 100, 3, DEFAULT_COLUMN_NAMES, "uniform"),
        (same_keys, 100, 3, ["value", "ledger"], "uniform"),
        (uniform, 100, 3, ALL, "stride"),
        (same_keys, 100, 3, DEFAULT_COLUMN_NAMES, "stride"),
        (keyed, 20, 40, DEFAULT_COLUMN_NAMES, "lanes"),
        (keyed, 300, 2, DEFAULT_COLUMN_NAMES, "scan"),
        (with_zeros, 150, 80, DEFAULT_COLUMN_NAMES, "scan"),
        (mostly_zeros, 300, 2, DEFAULT_COLUMN_NAMES, "pieces"),
        (always_keyed, 300, 2, DEFAULT_COLUMN_NAMES, "scan"),
        (unkeyed, 200, 33, ALL, "scan"),
        (large, 100, 9, ALL, "pieces"),
        (nested, 200, 33, ALL, "lanes"),  # cut inside values, which shows in the number of messages
        (nested, 200, 3, DEFAULT_COLUMN_NAMES, "hop"),
        (decoys, 200, 3, DEFAULT_COLUMN_NAMES, "walk"),  # as many messages as there are, but not the right ones
        (keyed, 40, 2, DEFAULT_COLUMN_NAMES, "hop"),
        (described, 60, 40, ALL, "hop"),  # side by side they step beyond their ends
        (rich, 30, 3, ALL, "hop"),
        (strange, 200, 3, ALL, "hop"),
    ],
)
def test_each_shape_of_entries_takes_the_way_made_for_it(shape, count, entries, columns, path):
    dice, decoder, expected = random.Random(1), Decoder(columns, TOPIC, 3), []
    for entry in range(entries):
        expected += add_batch(decoder, 4, entry, shape(dice, count))
    assert decoded(decoder) == of(columns, expected)
    assert decoder.paths == {path: entries}


@pytest.mark.parametrize("room", [0, len(PADDING) - 1, len(PADDING)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("views", [False, True])
def test_payloads_are_read_where_they_were_received(views, shape, room, monkeypatch):
    monkeypatch.setattr(memory, "FEWEST_BYTES", 0)
    monkeypatch.setattr(message_spans, "_joined", never if room == len(PADDING) else message_spans._joined)
    dice, decoder = random.Random(5), Decoder(ALL, TOPIC, 3)
    if views:
        decoder.lend()
    for _ in range(3):
        batches = [shape(dice, 80) for _ in range(3)]
        received = np.frombuffer(b"".join(b"??" + batch(sent) for sent in batches) + b"?" * room, np.uint8)
        expected, end = [], 0
        for number, sent in enumerate(batches):
            begin, end = end + 2, end + 2 + len(batch(sent))
            expected += add_batch(decoder, 4, number, sent, payload=received.data[begin:end])
        assert decoded(decoder) == expected


@pytest.mark.parametrize("columns", [DEFAULT_COLUMN_NAMES, ALL], ids=["uniform", "by spans"])
@pytest.mark.parametrize(("first", "end"), [(0, 300), (7, 211)])
def test_lent_values_lie_where_they_were_received(columns, first, end):
    dice, decoder = random.Random(5), Decoder(columns, TOPIC, 3)
    decoder.lend()
    batches = [[Sent(dice.randbytes(200)) for _ in range(300)] for _ in range(3)]
    received = np.frombuffer(b"".join(map(batch, batches)) + PADDING, np.uint8)
    expected, at = [], 0
    for number, sent in enumerate(batches):
        payload = received.data[at : at + len(batch(sent))]
        edges = {"first_batch_index": first, "end_batch_index": end}
        expected += add_batch(decoder, 4, number, sent, payload=payload, **edges)[first:end]
        at += len(payload)

    (found,) = decoder.flush()

    found.validate(full=True)
    assert found.to_pylist() == of(columns, expected)
    value = found.column("value")
    assert value.type == pa.binary_view()
    assert [one.address for one in value.buffers()[2:]] == [received.ctypes.data]


@pytest.mark.parametrize("compression", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_payloads_of_different_memory_are_read_together(compression, monkeypatch):
    monkeypatch.setattr(memory, "FEWEST_BYTES", 0)
    dice, decoder, expected = random.Random(5), Decoder(ALL, TOPIC, 3), []
    for entry in range(0, 90, 3):
        expected += add_batch(decoder, 4, entry, keyed(dice, 20), compression)
        for number in (entry + 1, entry + 2):
            sent = keyed(dice, 20)
            received = np.frombuffer(batch(sent), np.uint8)
            expected += add_batch(decoder, 4, number, sent, payload=received.data)
    assert decoded(decoder) == expected
    assert decoder.paths == {"lanes": 90}


def never(*_):
    raise AssertionError("it was copied")


@pytest.mark.parametrize("sizes", [[5], [700] + [3] * 60, [1000, 2] * 40, [0, 0, 40]])
def test_batches_of_unlike_counts_step_side_by_side(sizes):
    dice, decoder, expected = random.Random(2), Decoder(ALL, TOPIC, 3), []
    for entry, size in enumerate(sizes):
        expected += add_batch(decoder, 4, entry, keyed(dice, size))
    assert decoded(decoder) == expected


def test_a_batch_that_cannot_be_cut_does_not_make_the_others_wait():
    dice, decoder, expected = random.Random(2), Decoder(ALL, TOPIC, 3), []
    for entry in range(8):
        expected += add_batch(decoder, 4, entry, large(dice, 400))
    long_headers = [replace(sent, properties=((b"name", b"v" * 250),)) for sent in large(dice, 4000)]
    expected += add_batch(decoder, 4, 8, long_headers)
    assert decoded(decoder) == expected
    assert decoder.paths == {"pieces": 8, "hop": 1}


@pytest.mark.parametrize("compression", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_singles_and_batches_of_every_compression_keep_their_order(compression):
    dice, decoder, expected = random.Random(3), Decoder(None, TOPIC, 3), []
    for entry in range(50):
        expected += add_single(decoder, 4, 2 * entry, rich(dice, 1)[0], compression)
        expected += add_batch(decoder, 4, 2 * entry + 1, keyed(dice, 4), compression)
    assert decoded(decoder) == of(DEFAULT_COLUMN_NAMES, expected)
    assert decoder.paths["single"] == 50


@pytest.mark.parametrize("shape", [uniform, keyed, rich])
@pytest.mark.parametrize(("first", "end"), [(0, 1), (3, 90), (99, 100), (50, 50), (0, 1000), (70, 20)])
def test_only_messages_inside_the_asked_batch_indexes_become_rows(shape, first, end):
    dice, decoder = random.Random(4), Decoder(None, TOPIC, 3)
    before = add_batch(decoder, 4, 0, shape(dice, 100))
    expected = add_batch(decoder, 4, 1, shape(dice, 100), first_batch_index=first, end_batch_index=end)
    asked = before + [each for each in expected if first <= each["batch_index"] < end]
    assert decoded(decoder) == of(DEFAULT_COLUMN_NAMES, asked)
    totals = decoder.totals
    assert totals.rows == len(asked)
    assert totals.rows + totals.compacted + totals.outside == 200
    assert totals.outside == 100 - max(min(end, 100) - first, 0)


def test_totals_add_up_over_flushes():
    dice, decoder = random.Random(5), Decoder(["key"], TOPIC, 3)
    expected = []
    for entry in range(4):
        expected += add_batch(decoder, 4, entry, rich(dice, 50))
        decoder.flush()
    totals = decoder.totals
    assert (totals.rows, totals.compacted) == (len(expected), 200 - len(expected))
    assert totals.bytes == sum(len(each["value"] or b"") for each in expected)
    assert totals.first == (4, 0, expected[0]["batch_index"])
    assert totals.last == (4, 3, expected[-1]["batch_index"])


def test_pending_counts_what_a_flush_would_hold():
    decoder = Decoder(None, TOPIC, 3)
    messages = [Sent(b"x" * 1000)] * 100
    add_batch(decoder, 1, 0, messages, COMPRESSIONS["zstd"])
    add_single(decoder, 1, 1, Sent(b"abc"))
    assert (decoder.pending_rows, decoder.pending_bytes) == (101, len(batch(messages)) + 3)
    decoder.flush()
    assert (decoder.pending_rows, decoder.pending_bytes) == (0, 0)
    assert decoder.flush() == []


def test_messages_that_compaction_left_out_of_the_payload_keep_the_indexes_of_the_others():
    decoder = Decoder(["value", "batch_index", "message_id"], TOPIC, -1)
    metadata = EntryMetadata(PUBLISHED, num_messages=9, compacted_batch_indexes=array("i", (1, 4, 8)))
    payload = batch([Sent(b"one"), Sent(b"four"), Sent(b"eight")])
    decoder.add(1, 2, None, metadata, payload, end_batch_index=8)
    rows = decoded(decoder)
    assert [(each["value"], each["batch_index"]) for each in rows] == [(b"one", 1), (b"four", 4)]
    assert rows[1]["message_id"] == b"\x08\x01\x10\x02\x20\x04\x30\x09"
    assert (decoder.totals.compacted, decoder.totals.outside) == (6, 1)


def test_edges_and_compaction_of_one_batch_do_not_cancel_out():
    decoder = Decoder(["value"], TOPIC, 3)
    metadata = EntryMetadata(PUBLISHED, num_messages=9, compacted_batch_indexes=array("i", (1, 4, 8)))
    payload = batch([Sent(b"one"), Sent(b"four"), Sent(b"eight")])
    decoder.add(1, 2, None, metadata, payload, end_batch_index=3)
    assert decoded(decoder) == [{"value": b"one"}]


def test_texts_of_single_messages_count_as_pending():
    decoder = Decoder(["value"], TOPIC, 3)
    add_single(decoder, 1, 1, Sent(b"v", key=b"key", properties=((b"name", b"value"),), ordering_key=b"o"))
    assert decoder.pending_bytes == 1 + 3 + 15 + 1


def test_batches_have_at_most_twenty_thousand_rows():
    decoder = Decoder(None, TOPIC, 3)
    for entry in range(45):
        add_batch(decoder, 1, entry, [Sent(b"v", sequence_id=1)] * 1000)
    assert [each.num_rows for each in decoder.flush()] == [20_000, 20_000, 5_000]


def test_batches_hold_four_mebibytes_unless_one_message_is_larger():
    decoder = Decoder(None, TOPIC, 3)
    for entry, size in enumerate([1, 3_000_000, 3_000_000, 9_000_000, 1_000_000, 1_000_000]):
        add_single(decoder, 1, entry, Sent(bytes(size)))
    assert [each["entry"].to_pylist() for each in decoder.flush()] == [[0, 1], [2], [3], [4, 5]]


def test_payloads_beyond_a_group_are_decoded_apart_and_in_order(monkeypatch):
    monkeypatch.setattr(decoder_module, "GROUP_BYTES", 2000)
    dice, decoder, expected = random.Random(6), Decoder(ALL, TOPIC, 3), []
    for entry in range(60):
        expected += add_batch(decoder, 4, entry, rich(dice, dice.choice([1, 2, 100])))
    assert decoded(decoder) == expected


@pytest.mark.parametrize(("partition", "index", "size"), [(-1, 1, 5), (0, 300, 1000), (7, 0, 1)])
def test_message_ids_are_those_of_the_official_client(partition, index, size):
    decoder = Decoder(["message_id"], TOPIC, partition)
    add_batch(decoder, 43, 7, [Sent(b"v")] * size)
    found = pulsar.MessageId.deserialize(decoded(decoder)[index]["message_id"])
    assert (found.ledger_id(), found.entry_id(), found.partition(), found.batch_index()) == (43, 7, partition, index)
    assert found.serialize() == decoder_ids(partition, size)[index]


def decoder_ids(partition, size):
    decoder = Decoder(["message_id"], TOPIC, partition)
    add_batch(decoder, 43, 7, [Sent(b"v")] * size)
    return [each["message_id"] for each in decoded(decoder)]


def test_message_ids_of_batches_and_chunks_are_the_observed_ones():
    decoder = Decoder(["message_id"], TOPIC, -1)
    add_batch(decoder, 43, 0, [Sent(b"v")] * 5)
    decoder.add(105, 3, None, EntryMetadata(PUBLISHED, num_chunks=3), b"joined", first_chunk=(105, 1))
    ids = [each["message_id"].hex() for each in decoded(decoder)]
    assert (ids[1], ids[5]) == ("082b100020013005", "086910033a0408691001")


def test_both_places_of_a_chunked_messages_id_name_the_partition():
    decoder = Decoder(["message_id"], TOPIC, 2)
    decoder.add(13, 2, None, EntryMetadata(PUBLISHED, num_chunks=3), b"joined", first_chunk=(13, 0))
    (row,) = decoded(decoder)
    assert row["message_id"].hex() == "080d100218023a06080d10001802", "as pulsar-client 3.13 serialized it"


def test_text_that_is_not_utf8_is_replaced_not_passed_on():
    decoder = Decoder(["key", "producer", "properties"], TOPIC, 3)
    add_single(decoder, 1, 1, Sent(b"", key=b"\xff\xfek", properties=((b"\x80", b"ok"),)))
    assert decoded(decoder) == [{"key": "��k", "producer": "alone", "properties": [("�", "ok")]}]


@pytest.mark.parametrize(
    "metadata",
    [
        EntryMetadata(PUBLISHED, marker_type=10),
        EntryMetadata(PUBLISHED, encrypted=True),
        EntryMetadata(PUBLISHED, uuid=b"u", num_chunks=2),
    ],
)
def test_entries_without_readable_rows_are_refused(metadata):
    with pytest.raises(InvalidRequest, match="4:2"):
        Decoder(None, TOPIC, 3).add(4, 2, None, metadata, b"payload")


@pytest.mark.parametrize(
    ("payload", "metadata"),
    [
        (batch([Sent(b"a")] * 3), EntryMetadata(PUBLISHED, num_messages=2)),
        (batch([Sent(b"a")] * 3), EntryMetadata(PUBLISHED, num_messages=4)),
        (batch([Sent(b"a")] * 3), EntryMetadata(PUBLISHED, num_messages=0)),
        (batch([Sent(b"a")] * 3), EntryMetadata(PUBLISHED, num_messages=1 << 40)),
        (batch([Sent(b"a" * 99)] * 99)[:-1], EntryMetadata(PUBLISHED, num_messages=99)),
        (struct.pack(">I", 3) + b"\x40\x01\x48" + b"a", EntryMetadata(PUBLISHED, num_messages=1)),
        (
            batch([Sent(b"a")] * 3),
            EntryMetadata(PUBLISHED, num_messages=3, compacted_batch_indexes=array("i", (0, 0, 1))),
        ),
        (
            batch([Sent(b"a")] * 3),
            EntryMetadata(PUBLISHED, num_messages=3, compacted_batch_indexes=array("i", (0, 1, 3))),
        ),
        (b"x", EntryMetadata(PUBLISHED, compression=9)),
        (b"x", EntryMetadata(PUBLISHED, compression=1, uncompressed_size=1 << 40)),
        *(
            (compressed(b"value" * 9, kind), EntryMetadata(PUBLISHED, compression=kind, uncompressed_size=size))
            for kind in COMPRESSIONS.values()
            if kind
            for size in (0, 44, 46)
        ),
    ],
)
def test_a_payload_that_is_not_what_its_metadata_state_is_named(payload, metadata):
    decoder = Decoder(None, TOPIC, 3)
    with pytest.raises(CorruptFrame, match=r"events \(partition 3\): entry 4:2 "):
        decoder.add(4, 2, None, metadata, payload) or decoder.flush()


def test_a_header_longer_than_its_batch_is_seen_even_if_no_value_follows():
    decoder = Decoder(["value"], TOPIC, 3)
    for entry in range(40):
        payload = bytearray(batch([Sent(b"", sequence_id=5)]))
        payload[2] = 0xFF if entry == 7 else 0
        decoder.add(1, entry, None, EntryMetadata(PUBLISHED, num_messages=1), payload)
    with pytest.raises(CorruptFrame, match="entry 1:7 "):
        decoder.flush()


@settings(max_examples=examples(200), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    compression=st.sampled_from([1, 2, 3, 4]),
    size=st.integers(0, 300),
    single=st.booleans(),
)
def test_damaged_compressed_payloads_raise_nothing_but_corrupt_frame(seed, compression, size, single):
    dice = random.Random(seed)
    payload = batch(keyed(dice, 5))
    data = bytearray(compressed(payload, compression))
    data[dice.randrange(len(data))] ^= dice.randrange(1, 256)
    stated = dice.choice([len(payload), size])
    metadata = EntryMetadata(
        PUBLISHED, num_messages=None if single else 5, compression=compression, uncompressed_size=stated
    )
    decoder = Decoder(None, TOPIC, 3)
    try:
        decoder.add(1, 1, None, metadata, data)
        rows = decoded(decoder)
    except CorruptFrame:
        return
    assert len(rows) == (1 if single else 5)


def test_unknown_columns_are_refused_by_name():
    with pytest.raises(InvalidRequest, match=r"unknown Pulsar columns \['offset'\]; known: value, key"):
        arrow_schema(["value", "offset"])
    with pytest.raises(InvalidRequest, match="twice"):
        arrow_schema(["value", "value"])


def test_decoding_does_not_import_pandas():
    code = (
        "import sys\n"
        "from airflow_provider_streams.systems.pulsar.reading.decode.columns import COLUMNS\n"
        "from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder\n"
        "from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata\n"
        "for columns in (None, list(COLUMNS)):\n"
        "    d = Decoder(columns, 'persistent://a/b/c', 1)\n"
        "    d.add(1, 1, (5, 6), EntryMetadata(1, key=b'k', properties=b'\\x0a\\6\\x0a\\1n\\x12\\1v'), b'v')\n"
        "    d.add(1, 2, None, EntryMetadata(1, num_messages=99), b'\\0\\0\\0\\2\\x18\\1v' * 99)\n"
        "    assert sum(b.num_rows for b in d.flush()) == 100\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
