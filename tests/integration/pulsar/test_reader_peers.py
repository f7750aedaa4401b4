"""The same topics read by us and by the official client: ids, payloads, keys, properties and times are equal."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_streams.errors import EventsLost
from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.reading import entry_fetcher as feed_module
from airflow_provider_streams.systems.pulsar.reading import reader as reader_module
from stream_servers.java import run_java
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar


def texts(count, size=20):
    return [b"%d " % number + b"." * size for number in range(count)]


def decorated(number):
    """Arguments of a message; keys and properties come and go."""
    return {
        "properties": {"n": str(number), "ü": "ß"} if number % 3 else None,
        "event_timestamp": 1_600_000_000_000 + number if number % 2 else None,
        **({"partition_key": f"key-{number % 7}"} if number % 5 else {}),
    }


def check(bench, topic, *, rows=None):
    """One split of everything equals what the official client reads."""
    split = bench.split(topic)
    before = bench.subscriptions(topic)
    ours, reader = bench.read(split)
    theirs = bench.peer(topic)
    assert ours == theirs
    assert rows is None or len(ours) == rows
    assert compare(bench.plan(split), [reader.receipt], seconds=1).rows == len(ours)
    assert (reader.receipt.filtered, reader.receipt.duplicates, reader.reconnects) == (0, 0, 0)
    # both clients have left; a broker forgets what they had a moment later
    wait_until(lambda: bench.subscriptions(topic) == before, "neither reader leaves a subscription")
    return ours


@pytest.mark.slow_except("7")
@pytest.mark.parametrize("batch", [1, 2, 7, 1000])
def test_batches_of_any_size_over_many_ledgers(bench, batch):
    topic = bench.topic()
    bench.write(topic, texts(130 * batch if batch < 10 else 60 * batch), batch=batch)
    check(bench, topic)
    assert len(bench.spans(topic)) > 1


@pytest.mark.parametrize("batch", [1, 50])
def test_keys_properties_and_event_times(bench, batch):
    topic = bench.topic()
    bench.write(topic, texts(400), batch=batch, send=decorated)
    rows = check(bench, topic, rows=400)
    assert {row[2] for row in rows} == {"", *(f"key-{number}" for number in range(7))}


def test_values_of_mixed_sizes(bench, noise):
    topic = bench.topic()
    dice = random.Random(1)  # noqa: S311 - a seed
    sizes = [dice.choice([0, 1, 127, 128, 16_383, 16_384, 60_000]) for _ in range(600)]
    bench.write(topic, [noise[: size or 0] for size in sizes], batch=60, batching_max_allowed_size_in_bytes=4 << 20)
    check(bench, topic, rows=600)


@pytest.mark.parametrize("name", ["LZ4", "ZLib", "ZSTD", "SNAPPY"])
@pytest.mark.parametrize("batch", [1, 100])
def test_compressions(bench, name, batch):
    import pulsar

    topic = bench.topic()
    bench.write(topic, texts(300), batch=batch, send=decorated, compression_type=getattr(pulsar.CompressionType, name))
    check(bench, topic, rows=300)


@pytest.mark.slow_except("False")
@pytest.mark.parametrize("compressed", [False, True])
def test_chunked_messages_between_small_ones(bench, noise, compressed):
    import pulsar

    topic = f"{bench.topic(partitions=2)}-partition-1" if compressed else bench.topic()
    kind = pulsar.CompressionType.ZSTD if compressed else pulsar.CompressionType.NONE
    large = bench.client.create_producer(topic, chunking_enabled=True, batching_enabled=False, compression_type=kind)
    other = bench.client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    for number in range(3):
        other.send(b"small %d" % number)
        large.send_async(noise * 11, lambda *_: None)
        other.send_async((noise * 12)[number:], lambda *_: None)
        large.flush()
        other.flush()
    rows = check(bench, topic, rows=9)
    assert max(len(row[1]) for row in rows) == 12 << 20
    # cut anywhere, every message is in exactly one split
    entries = [Position.of(span.run, entry, -1) for span in bench.spans(topic) for entry in range(span.first, span.end)]
    for cut in entries[1:]:
        left, _ = bench.read(bench.split(topic, end=cut))
        right, _ = bench.read(bench.split(topic, start=cut))
        assert left + right == rows


@pytest.mark.slow_except("true")
@pytest.mark.parametrize("batching", ["false", "true"])
def test_transactions(bench, batching):
    topic = bench.topic()
    source = Path(__file__).with_name("Txn.java")
    told = run_java(source, [bench.server.service_url, topic, batching], bench.server.classpath)
    split = bench.split(topic)
    rows, reader = bench.read(split)
    assert rows == bench.peer(topic)
    # committed messages come in the order in which they were written
    assert [row[1] for row in rows] == [b"plain0", b"plain1", b"plain2", b"committed0", b"committed1", b"between0"]
    # what was never sent are the aborted entries (one or two, if batched: the client's choice) and the two markers
    receipt = reader.receipt
    gaps = {f"{gap.run}:{entry}" for gap in receipt.gaps for entry in range(gap.first, gap.end)}
    aborted = set(re.findall(r"^aborted (\S+)$", told, re.MULTILINE))
    assert aborted <= gaps
    assert len(aborted) == 2 or batching == "true"
    assert len(gaps) == len(aborted) + 2
    missing = sum(gap.entries for gap in receipt.gaps)
    assert receipt.entries + missing == split.entries


def test_random_cuts_share_nothing_and_miss_nothing(bench):
    topic = bench.topic()
    bench.write(topic, texts(300), batch=7, send=decorated)
    bench.write(topic, texts(60))
    everything = check(bench, topic, rows=360)
    places = [Position.of(*row[0]) for row in everything]
    whole = bench.split(topic)
    dice = random.Random(7)  # noqa: S311 - a seed
    for _ in range(8):
        inner = sorted(dice.sample(places[1:], 3))
        # cuts inside batches, between entries, and beyond a batch's last message
        inner[1] = Position.of(*inner[1].parts[:2], dice.choice([-1, inner[1].parts[2], 6, 99]))
        bounds = [whole.start, *sorted(set(inner)), whole.end]
        parts = []
        for start, end in itertools.pairwise(bounds):
            split = bench.split(topic, start, end)
            rows, reader = bench.read(split)
            compare(bench.plan(split), [reader.receipt], seconds=1)
            parts += rows
        assert parts == everything, bounds


def test_an_empty_topic_ends(bench):
    topic = bench.topic()
    stats = bench.server.admin("GET", f"{bench.path(topic)}/internalStats")
    ledger = int(stats["ledgers"][-1]["ledgerId"])
    split = Split(0, topic, Position.of(ledger, 0, -1), Position.of(ledger, 5, -1), 1, (Span(ledger, 0, 5),))
    rows, reader = bench.read(split)
    assert rows == []
    assert reader.receipt.gaps == split.spans


@pytest.mark.parametrize("beyond", [False, True])
def test_a_terminated_topic_ends(bench, beyond):
    topic = bench.topic()
    bench.write(topic, texts(70), batch=7)
    split = bench.split(topic)
    bench.server.admin("POST", f"{bench.path(topic)}/terminate")
    if beyond:
        last = split.spans[-1]
        end = Position.of(last.run, last.end + 3, -1)
        split = replace(split, end=end, spans=(*split.spans[:-1], replace(last, end=last.end + 3)))
    rows, reader = bench.read(split)
    assert [row[1] for row in rows] == texts(70)
    assert sum(gap.entries for gap in reader.receipt.gaps) == (3 if beyond else 0)
    assert reader.reconnects == 0


def test_unloads_in_the_middle_lose_and_repeat_nothing(bench, monkeypatch):
    topic = bench.topic()
    bench.write(topic, texts(600), batch=2)
    bench.write(topic, texts(600))
    expected = bench.peer(topic)
    # small permits: the broker cannot send everything before the first unload
    monkeypatch.setattr(feed_module, "PERMITS", 40)
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)
    split = bench.split(topic)
    reader = bench.reader(split)
    rows = []
    for number, batch in enumerate(reader):
        rows += map(bench.row, batch.to_pylist())
        if number % 5 == 0:
            bench.unload(topic)
    assert rows == expected
    assert reader.reconnects >= 3
    compare(bench.plan(split), [reader.receipt], seconds=1)


def test_a_trim_under_the_read_ends_it_and_is_a_gap(bench, monkeypatch):
    topic = bench.topic()
    bench.write(topic, texts(400))
    split = bench.split(topic)
    monkeypatch.setattr(feed_module, "PERMITS", 20)
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)
    reader = bench.reader(split)
    rows = []
    for number, batch in enumerate(reader):
        rows += map(bench.row, batch.to_pylist())
        if number == 0:
            bench.server.set_retention(bench.namespace, minutes=0, megabytes=0)
            bench.unload(topic)  # rolls the open ledger, so that it can go too
            trimmed(bench, topic)
    receipt = reader.receipt
    assert 0 < len(rows) < 400
    assert receipt.entries + sum(gap.entries for gap in receipt.gaps) == 400
    assert receipt.gaps


def trimmed(bench, topic):
    """Wait until no entry is stored any more."""

    def gone():
        bench.server.admin("POST", f"{bench.path(topic)}/trim")
        return not bench.spans(topic)

    wait_until(gone, "every ledger is trimmed")


def test_a_topic_deleted_before_the_read_is_lost_events_and_not_made_again(bench):
    topic = bench.topic()
    bench.write(topic, texts(5))
    split = bench.split(topic)
    bench.server.admin("DELETE", f"{bench.path(topic)}?force=true")
    with pytest.raises(EventsLost):
        bench.read(split)
    assert topic not in bench.server.topics(bench.namespace)


def test_closing_in_the_middle_leaves_no_subscription(bench, monkeypatch):
    topic = bench.topic()
    bench.write(topic, texts(200))
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)
    reader = bench.reader(bench.split(topic))
    iterator = iter(reader)
    next(iterator)
    assert len(bench.subscriptions(topic)) == 1
    reader.close()
    wait_until(lambda: bench.subscriptions(topic) == [], "the subscription is gone")
