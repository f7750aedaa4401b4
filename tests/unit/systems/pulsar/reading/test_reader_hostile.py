"""What a reader makes of entries that lie: an error that names the entry, and only where the window holds it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import CorruptFrame, EntryTooLarge, EventsLost, MalformedEntry, ProtocolError
from airflow_provider_streams.model.plan.plan import Split
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.reading import chunked_messages
from airflow_provider_streams.systems.pulsar.reading import chunked_messages as chunks_module
from airflow_provider_streams.systems.pulsar.reading import entry_fetcher as feed_module
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from airflow_provider_streams.testing.plans import plan_of

TOPIC = "persistent://public/default/t"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(feed_module, "IDLE_SECONDS", 0.02)


def rows_of(fake, *, end=9, start_ms=None, columns=("value", "entry"), **endpoint):
    """(entry, value) of each row of the entries 3:0 to 3:`end`; of those published before 2000 ms, if filtered."""
    split = Split(0, TOPIC, Position.of(3, 0, -1), Position.of(3, end, -1), 1, ())
    row_filter = None if start_ms is None else RowFilter("publish_time", start_ms, 2000)
    plan = replace(plan_of([split]), filter=row_filter)
    reader = PulsarSplitReader(Endpoint(fake.url, **endpoint), plan, split, columns)
    return [(row.get("entry"), row.get("value")) for batch in reader for row in batch.to_pylist()]


def stored(build, entry, header=None, payload=None):
    default = build.metadata(1000)
    return build.Stored(3, entry, default if header is None else header, b"%d" % entry if payload is None else payload)


GOOD = [(0, b"0"), (2, b"2")]


def hostile(fake, build, header, payload=b"x"):
    """Between two good entries, one with these bytes."""
    fake.entries = [stored(build, 0), stored(build, 1, header, payload), stored(build, 2)]


def test_metadata_that_are_none_are_named_and_not_asked_for_again(fake_broker, build):
    hostile(fake_broker, build, b"\x08")
    with pytest.raises(
        MalformedEntry, match=rf"{TOPIC}: entry 3:1 cannot be decoded: its metadata \(1 bytes\)"
    ) as caught:
        rows_of(fake_broker)
    assert not caught.value.retryable
    assert len(fake_broker.subscriptions()) == 1


def test_a_damaged_entry_behind_the_window_does_not_matter(fake_broker, build):
    hostile(fake_broker, build, b"\x08")
    assert rows_of(fake_broker, end=1) == GOOD[:1]


@pytest.mark.parametrize(
    "build_payload",
    [
        lambda build: (build.metadata(5000, num_messages=7), b"no batch"),
        lambda build: (build.metadata(5000, num_messages=-7), b"no batch"),
        lambda build: (build.metadata(5000, compression=3, uncompressed_size=1 << 31), b"x"),
        lambda build: (build.metadata(5000, compression=9, uncompressed_size=1), b"x"),
        lambda build: (build.metadata(5000, uuid=b"u", num_chunks=3, chunk_id=7), b"x"),
        lambda build: (build.metadata(-5, num_messages=1), b"no batch"),
        lambda build: (build.metadata(1 << 62, num_messages=1), b"no batch"),
    ],
    ids=[
        "no batch",
        "negative count",
        "too large",
        "compression",
        "chunk 7 of 3",
        "before 1970",
        "beyond every calendar",
    ],
)
def test_an_entry_that_was_published_outside_of_the_window_is_not_looked_into(fake_broker, build, build_payload):
    hostile(fake_broker, build, *build_payload(build))
    assert rows_of(fake_broker, start_ms=1000) == GOOD
    with pytest.raises(CorruptFrame, match="entry 3:1 "):
        rows_of(fake_broker)


@pytest.mark.parametrize("millis", [-5, -(1 << 40), 1 << 62, -(1 << 63)])
def test_an_impossible_publish_time_fails_no_window_that_passes_it(fake_broker, build, millis):
    hostile(fake_broker, build, build.metadata(millis))
    assert rows_of(fake_broker, start_ms=1000) == GOOD
    assert rows_of(fake_broker) == [GOOD[0], (1, b"x"), GOOD[1]]


def test_a_time_before_1970_is_a_time(fake_broker, build):
    hostile(fake_broker, build, build.metadata(-5, event_ms=-7))
    split = Split(0, TOPIC, Position.of(3, 1, -1), Position.of(3, 2, -1), 1, ())
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split, ["publish_time", "event_time"])
    (batch,) = reader
    assert [batch[name].cast(pa.int64()).to_pylist() for name in ("publish_time", "event_time")] == [[-5000], [-7000]]


def announce(fake, size):
    fake.answers[pb.CommandConnect] = lambda _: [pb.CommandConnected(max_message_size=size)]


def test_what_the_broker_allows_is_read(fake_broker, build):
    announce(fake_broker, 40 * MIB)
    hostile(fake_broker, build, build.metadata(1000), bytes(30 * MIB))
    assert [entry for entry, _ in rows_of(fake_broker)] == [0, 1, 2]


@pytest.mark.parametrize("end", [1, 9])
def test_a_frame_beyond_our_limit_is_named_where_the_window_holds_it(fake_broker, build, end):
    announce(fake_broker, (1 << 31) - 1)
    hostile(fake_broker, build, build.metadata(1000), bytes(3 * MIB))
    if end == 1:
        assert rows_of(fake_broker, end=end, max_entry_bytes=2 * MIB) == GOOD[:1]
        return
    with pytest.raises(EntryTooLarge, match=rf"{TOPIC}: entry 3:1 is too large.*max_entry_bytes is {2 * MIB}"):
        rows_of(fake_broker, max_entry_bytes=2 * MIB)
    assert len(fake_broker.subscriptions()) == 1


def test_a_frame_beyond_what_the_broker_allows_is_not_pulsars_protocol(fake_broker, build):
    announce(fake_broker, 2 * MIB)
    hostile(fake_broker, build, build.metadata(1000), bytes(3 * MIB))
    with pytest.raises(ProtocolError, match="the broker allows") as caught:
        rows_of(fake_broker)
    assert not isinstance(caught.value, CorruptFrame)


def chunks(build, payloads, *, total, first=0):
    return [
        stored(
            build,
            first + number,
            build.metadata(1000, uuid=b"u", num_chunks=len(payloads), chunk_id=number, total_size=total),
            payload,
        )
        for number, payload in enumerate(payloads)
    ]


@pytest.mark.parametrize(
    ("total", "limit", "error"),
    [(10, 9 * MIB, MalformedEntry), (4 * MIB, 2 * MIB, EntryTooLarge), (9 * MIB, 9 * MIB, MalformedEntry)],
    ids=["more than stated", "more than allowed", "less than stated"],
)
def test_chunks_that_lie_are_named_at_their_last_one(fake_broker, build, total, limit, error):
    fake_broker.entries = [*chunks(build, [bytes(MIB)] * 4, total=total), stored(build, 5)]
    assert rows_of(fake_broker, end=3, max_entry_bytes=limit) == []
    with pytest.raises(error, match="entry 3:3 "):
        rows_of(fake_broker, max_entry_bytes=limit)
    assert rows_of(fake_broker, start_ms=1500, max_entry_bytes=limit) == []


def last_chunks(build, count):
    """Last chunks of messages without others, after entries of other messages."""
    before = [stored(build, number) for number in range(200)]
    about = {"num_chunks": 2, "chunk_id": 1}
    lonely = [build.metadata(1000, uuid=b"lonely-%d" % number, **about) for number in range(count)]
    return [*before, *(stored(build, 200 + number, header) for number, header in enumerate(lonely))]


def split_of(first, end):
    return Split(0, TOPIC, Position.of(3, first, -1), Position.of(3, end, -1), 1, ())


def test_chunks_without_a_first_one_do_not_make_a_reader_read_the_topic_for_each(fake_broker, build):
    fake_broker.entries = last_chunks(build, 50)
    split = split_of(200, 250)
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split, ["value"], on_loss="record")
    assert list(reader) == []
    assert reader.receipt.explained == {"lost": 50}
    # the split's own, and those of the one search: 2, 6, 14, .. entries back
    assert len(fake_broker.subscriptions()) < 12


def test_a_first_chunk_is_found_although_others_were_looked_for_in_vain(fake_broker, build):
    fake_broker.entries = last_chunks(build, 3)
    two = chunks(build, [b"first", b"second"], total=11, first=0)
    fake_broker.entries[100] = replace(two[0], entry=100)
    fake_broker.entries.append(replace(two[1], entry=203))
    split = split_of(200, 204)
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split, ["value"], on_loss="record")
    assert [row for batch in reader for row in batch["value"].to_pylist()] == [b"firstsecond"]


def test_a_first_chunk_that_was_not_held_is_found_although_others_were_looked_for_in_vain(
    fake_broker, build, monkeypatch
):
    monkeypatch.setattr(chunks_module.ChunkCollector.__init__, "__kwdefaults__", {"memory_bytes": 1000})
    fake_broker.entries = last_chunks(build, 1)
    for uuid in (b"a", b"b"):
        about = {"uuid": uuid, "num_chunks": 2, "total_size": 2000}
        for number in range(2):
            header = build.metadata(1000, chunk_id=number, **about)
            fake_broker.entries.append(stored(build, 0, header, uuid * 1000))
    order = [0, 2, 1, 3]  # a b a b
    fake_broker.entries[201:] = [replace(fake_broker.entries[201 + at], entry=201 + n) for n, at in enumerate(order)]
    split = split_of(200, 205)
    reader = PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split, ["value"], on_loss="record")
    assert [row for batch in reader for row in batch["value"].to_pylist()] == [b"a" * 2000, b"b" * 2000]


@pytest.mark.parametrize("limit", ["FARTHEST_ENTRIES", "FARTHEST_BYTES"])
def test_a_first_chunk_is_not_looked_for_any_distance_away(fake_broker, build, monkeypatch, limit):
    monkeypatch.setattr(chunked_messages, limit, 50)
    fake_broker.entries = last_chunks(build, 1)
    first, last = chunks(build, [b"first", b"second"], total=11)
    fake_broker.entries[:1] = [first]
    fake_broker.entries[200:] = [replace(last, entry=200)]
    split = split_of(200, 201)
    with pytest.raises(EventsLost, match="not near"):
        list(PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split, ["value"]))
    monkeypatch.setattr(chunked_messages, limit, 10_000)
    assert sum(batch.num_rows for batch in PulsarSplitReader(Endpoint(fake_broker.url), plan_of([split]), split)) == 1


def test_what_chunks_decompress_to_is_bounded(fake_broker, build):
    data = pa.Codec("zstd").compress(bytes(40 * MIB), asbytes=True)
    parts = [data[:500], data[500:]]
    about = {"uuid": b"u", "num_chunks": 2, "total_size": len(data), "compression": 3, "uncompressed_size": 40 * MIB}
    fake_broker.entries = [
        stored(build, number, build.metadata(1000, chunk_id=number, **about), part) for number, part in enumerate(parts)
    ]
    with pytest.raises(EntryTooLarge, match=r"entry 3:1 .*max_entry_ratio is 1000"):
        rows_of(fake_broker)
    assert len(rows_of(fake_broker, max_entry_ratio=1_000_000)) == 1


def test_limits_of_the_connection_bound_what_is_decoded(fake_broker, build):
    hostile(fake_broker, build, build.metadata(1000, num_messages=3), build.batch(b"a", b"b", b"c"))
    assert len(rows_of(fake_broker, max_entry_rows=3)) == 5
    with pytest.raises(EntryTooLarge, match=r"entry 3:1 .*it holds 3 messages, but max_entry_rows is 2"):
        rows_of(fake_broker, max_entry_rows=2)
