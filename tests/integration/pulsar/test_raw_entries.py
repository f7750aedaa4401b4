"""Entries that no client writes, on a real broker: brokers store and send what producers send them."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import EntryTooLarge, MalformedEntry, ReadStalled
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.protobuf import write_varint
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.client.wire.probe_consumers import probe_all
from airflow_provider_streams.systems.pulsar.column_names import DEFAULT_COLUMN_NAMES
from airflow_provider_streams.systems.pulsar.planning.entry_probe import ProbePoint
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from tests.fuzz.shapes import keyed, rich, written
from tests.fuzz.writer import METADATA, Writer
from tests.integration.pulsar.raw_producer import RawProducer, batch, metadata
from tests.integration.pulsar.test_codecs import COLUMNS, by_java, by_us

pytestmark = pytest.mark.pulsar

PUBLISHED = 1_763_700_000_000
SEQUENCE = COLUMNS.index("sequence_id")
"""Java gives a message without one the key of its batch."""


def rows_of(bench, topic, columns=("value",), row_filter=None, **endpoint):
    split = bench.split(topic)
    plan = replace(bench.plan(split), filter=row_filter)
    reader = PulsarSplitReader(replace(bench.endpoint, **endpoint), plan, split, columns)
    rows = [row for batch in reader for row in batch.to_pylist()]
    compare(plan, [reader.receipt], seconds=1)
    return rows, reader


class JavasWriter(Writer):
    """Liberties that the Java client takes as well: it refuses groups, and only 1 is true for it."""

    def unknown(self, schema, depth=0):
        while True:
            field = super().unknown(schema, depth)
            tag, shift = 0, 0
            for byte in field:
                tag |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            if tag & 7 != 3:
                return field

    def _same(self, value, kind):
        return value if kind == "flag" else super()._same(value, kind)


@pytest.mark.slow_except("0.5")
@pytest.mark.parametrize("wildness", [0.05, 0.5])
def test_unusual_encodings_are_read_as_the_java_client_reads_them(bench, wildness):
    dice = random.Random(11)  # noqa: S311 - a seed
    writer = JavasWriter(dice, wildness)
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        for number in range(60):
            shape = partial(rich, dice) if number % 2 else partial(keyed, dice)
            messages = [legible(shape()) for _ in range(dice.choice((1, 3, 90)))]
            payload = b"".join(written(message, writer) for message in messages)
            head = [(1, b"raw"), (2, number), (3, PUBLISHED + number), (11, len(messages))]
            producer.send(writer.write(head, METADATA), payload, messages=len(messages))
    (rows,) = by_java(bench, [topic]).values()
    assert len(rows) > 500
    ours = by_us(bench, topic)
    theirs = [
        tuple(
            None if one is None and number == SEQUENCE else other
            for number, (one, other) in enumerate(zip(*pair, strict=True))
        )
        for pair in zip(ours, rows, strict=True)
    ]
    assert [difference for difference in map(differences, ours, theirs) if difference] == []


def differences(ours, theirs):
    """By column."""
    return {name: (a, b) for name, a, b in zip(COLUMNS, ours, theirs, strict=True) if a != b}


def legible(message):
    """Without what Java's API shows otherwise: texts that are no UTF-8, and properties without a name or a value."""
    texts = [(number, value) for number, value in message.fields if not isinstance(value, bytes) or utf8(value)]
    fields = [
        (number, value)
        for number, value in texts
        if not isinstance(value, list) or (len(value) == 2 and utf8(value[0][1]) and utf8(value[1][1]))
    ]
    return replace(message, fields=fields)


def utf8(data):
    return data == data.decode("utf-8", "replace").encode()


def test_texts_that_are_no_utf8_are_as_javas_and_keys_keep_their_bytes(bench):
    topic = bench.topic()
    keys = [b"plain", b"\xff", b"a\x80b", b"\xc3\xa9t\xc3\xa9", b"\xe9t\xe9"]
    with RawProducer(bench.endpoint, topic) as producer:
        for key in keys:
            pair = b"\x0a" + write_varint(len(key)) + key + b"\x12" + write_varint(len(key)) + key
            producer.send(metadata(PUBLISHED, properties=pair, key=key), b"single")
        for key in keys:
            header = b"\x12" + write_varint(len(key)) + key + b"\x18\x01"
            payload = (struct.pack(">I", len(header)) + header + b"v") * 2
            producer.send(metadata(PUBLISHED, num_messages=2), payload, messages=2)
    sent = [*keys, *(key for key in keys for _ in range(2))]
    rows, _ = rows_of(bench, topic, ["key", "key_bytes", "properties"])
    assert [row["key_bytes"] for row in rows] == sent
    assert rows_of(bench, topic, ["key_bytes"])[0] == [{"key_bytes": key} for key in sent]
    (javas,) = by_java(bench, [topic]).values()
    assert [row["key"] for row in rows] == [java[COLUMNS.index("key")] for java in javas]
    assert rows[1]["key"] == "\ufffd"
    assert [dict(row["properties"]) for row in rows] == [java[COLUMNS.index("properties")] for java in javas]


def test_counts_that_lie_do_not_stop_the_broker(bench):
    """A broker counts the messages it sends with 32 bits, as their metadata state them."""
    most = (1 << 31) - 1
    counts = [most] * 20 + [-(1 << 31)] * 3 + [0, -5, most, 2]
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        for count in counts:
            producer.send(metadata(PUBLISHED, num_messages=count), batch(b"a", b"b"))
        for number in range(200):
            producer.send(metadata(PUBLISHED + 5000), b"%d" % number)
    rows, reader = rows_of(bench, topic, row_filter=RowFilter("publish_time", PUBLISHED + 1, PUBLISHED + 6000))
    assert [row["value"] for row in rows] == [b"%d" % number for number in range(200)]
    assert reader.reconnects == 0
    with pytest.raises(MalformedEntry, match=r"entry \d+:0 "):
        rows_of(bench, topic)


@pytest.mark.parametrize("millis", [-5, -(1 << 62), (1 << 63) - 1])
def test_an_impossible_publish_time_fails_no_window_that_passes_it(bench, millis):
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        for published in (PUBLISHED, millis, PUBLISHED + 1):
            producer.send(metadata(published), b"%d" % published)
    rows, _ = rows_of(bench, topic, ["value", "publish_time"], RowFilter("publish_time", PUBLISHED, PUBLISHED + 2))
    assert [row["value"] for row in rows] == [b"%d" % PUBLISHED, b"%d" % (PUBLISHED + 1)]
    rows, _ = rows_of(bench, topic, ["value"])
    assert [row["value"] for row in rows] == [b"%d" % each for each in (PUBLISHED, millis, PUBLISHED + 1)]


def test_a_topic_of_entries_that_no_client_wrote_says_so(bench):
    """Their broker does not say where the topic ends, or that it cannot, and sends nothing: for good."""
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        ledger, _ = producer.send(b"", b"no metadata")
    client = BrokerClient(bench.endpoint)
    connection = client._connection(client._owners([topic])[topic])
    (consumer,) = client._subscribe(connection, [(topic, (ledger, 0))])
    with pytest.raises(ReadStalled, match=rf"at {ledger}:0 on the way to .*cannot read what is stored") as caught:
        probe_all(connection, {consumer.id: ProbePoint(topic, ledger, 0)}, 2)
    assert "may be restarting" not in str(caught.value)
    client.close()


@pytest.mark.parametrize("millis", [(1 << 63) - 1, -(1 << 63), 9_223_372_036_854_776])
@pytest.mark.parametrize("count", [1, 2])
def test_an_impossible_event_time_is_refused_by_name_and_read_without_its_column(bench, millis, count):
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        producer.send(metadata(PUBLISHED, event_ms=1), b"before")
        if count == 1:
            place = producer.send(metadata(PUBLISHED + 10, event_ms=millis), b"bad")
        else:
            header = b"\x18\x03\x28" + write_varint(millis)
            payload = batch(b"good") + struct.pack(">I", len(header)) + header + b"bad"
            place = producer.send(metadata(PUBLISHED + 10, num_messages=2), payload, messages=2)
        producer.send(metadata(PUBLISHED + 20, event_ms=2), b"after")
    named = "message 1 of its batch" if count == 2 else "its message"
    told = rf"entry {place[0]}:{place[1]} .*{named} has the event_time {millis} ms, which no timestamp can hold"
    with pytest.raises(MalformedEntry, match=told):
        rows_of(bench, topic, DEFAULT_COLUMN_NAMES)
    for window in ((PUBLISHED, PUBLISHED + 10), (PUBLISHED + 11, PUBLISHED + 30)):
        rows, _ = rows_of(bench, topic, DEFAULT_COLUMN_NAMES, RowFilter("publish_time", *window))
        assert len(rows) == 1, "windows without that message are read"
    rows, _ = rows_of(bench, topic, [name for name in DEFAULT_COLUMN_NAMES if name != "event_time"])
    assert rows[count]["value"] == b"bad"


def test_a_few_bytes_that_become_many_are_refused_and_read_with_a_higher_limit(bench):
    topic = bench.topic()
    size = 40 << 20
    with RawProducer(bench.endpoint, topic) as producer:
        data = pa.Codec("zstd").compress(bytes(size), asbytes=True)
        place = producer.send(metadata(compression=3, uncompressed_size=size), data)
    with pytest.raises(EntryTooLarge, match=r"entry {}:{} is too large: .*max_entry_ratio".format(*place)):
        rows_of(bench, topic)
    rows, _ = rows_of(bench, topic, max_entry_ratio=1_000_000)
    assert [len(row["value"]) for row in rows] == [size]


def test_millions_of_messages_in_a_kilobyte_are_refused_and_read_with_a_higher_limit(bench):
    topic = bench.topic()
    count = 2_000_000
    payload = batch(b"") * count
    with RawProducer(bench.endpoint, topic) as producer:
        data = pa.Codec("zstd").compress(payload, asbytes=True)
        assert len(data) < 10_000
        head = metadata(compression=3, uncompressed_size=len(payload), num_messages=count)
        place = producer.send(head, data, messages=count)
    with pytest.raises(EntryTooLarge, match=r"entry {}:{} is too large: .*max_entry_rows".format(*place)):
        rows_of(bench, topic)
    split = bench.split(topic)
    endpoint = replace(bench.endpoint, max_entry_rows=count)
    reader = PulsarSplitReader(endpoint, bench.plan(split), split, ["batch_index"])
    assert sum(len(found) for found in reader) == count


def test_chunks_of_more_bytes_than_their_message_are_refused_by_name(bench):
    topic = bench.topic()
    chunks = {"uuid": b"raw-1", "num_chunks": 3, "total_size": 10}
    with RawProducer(bench.endpoint, topic) as producer:
        producer.send(metadata(), b"before")
        places = [producer.send(metadata(**chunks, chunk_id=number), bytes(1 << 20)) for number in range(3)]
        producer.send(metadata(PUBLISHED + 5000), b"after")
    with pytest.raises(MalformedEntry, match=r"entry {}:{} .* their message 10".format(*places[-1])):
        rows_of(bench, topic)
    rows, _ = rows_of(bench, topic, row_filter=RowFilter("publish_time", PUBLISHED + 1, PUBLISHED + 6000))
    assert [row["value"] for row in rows] == [b"after"]


@pytest.mark.parametrize(
    ("again", "messages"),
    [((2,), 1), ((2, 2), 1), ((1, 2), 1), ((None, 1, None, 2), 1), ((0, 1, 2), 2)],
    ids=["last", "last twice", "last two", "between others", "all"],
)
def test_splits_that_begin_among_repeated_chunks_share_no_message_and_lose_none(bench, again, messages):
    """A producer that missed a receipt sends chunks again; from the first one on, it is another message."""
    topic = bench.topic()
    chunks = {"uuid": b"raw-2", "num_chunks": 3, "total_size": 6}
    with RawProducer(bench.endpoint, topic) as producer:
        places = [
            producer.send(metadata(), b"other")
            if number is None
            else producer.send(metadata(**chunks, chunk_id=number), b"%d." % number)
            for number in (None, 0, 1, 2, *again, None)
        ]
    row = {"value": b"0.1.2."}
    whole, _ = rows_of(bench, topic)
    assert whole.count(row) == messages
    assert len(whole) == messages + 2 + again.count(None)
    for boundary in places[1:]:
        middle = Position.of(*boundary, -1)
        halves = (bench.split(topic, end=middle), bench.split(topic, start=middle))
        found = [one for half in halves for batch in bench.reader(half, ["value"]) for one in batch.to_pylist()]
        assert found == whole, f"split at {middle}"


def test_metadata_that_the_broker_cannot_read_are_never_sent(bench):
    """It takes and stores them, and passes over them for ever: to a reader they are a gap."""
    topic = bench.topic()
    with RawProducer(bench.endpoint, topic) as producer:
        producer.send(metadata(), b"first")
        ledger, entry = producer.send(b"\x08", b"x")
        producer.send(metadata(), b"last")
    split = bench.split(topic)
    reader = bench.reader(split, ["value"])
    assert [row["value"] for batch in reader for row in batch.to_pylist()] == [b"first", b"last"]
    assert [(gap.run, gap.first, gap.end) for gap in reader.receipt.gaps] == [(ledger, entry, entry + 1)]
