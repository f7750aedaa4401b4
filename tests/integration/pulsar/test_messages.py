"""Messages of a subscription as events, through Airflow's own shared streams."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome, SharedStreamManager

from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.systems.pulsar.client.admin import changes
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.queries import ask, topics_of
from airflow_provider_streams.systems.pulsar.operations.peeked_messages import MessageLimits, NextMessages
from airflow_provider_streams.systems.pulsar.operations.subscription_messages import read_next, unread
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger, PulsarProducer
from stream_servers.java import run_java, start_java
from tests.integration.pulsar.raw_producer import RawProducer, batch, metadata
from tests.seeds import random_bytes

pytestmark = pytest.mark.pulsar

STORED, DROPPED = AdvanceOutcome(acked=1, failed=0), AdvanceOutcome(acked=0, failed=1)


@pytest.fixture
def topic(bench, monkeypatch):
    """Two partitions with a subscription `s`, on the connection `pulsar_default`."""
    extra = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    name = bench.topic(partitions=2)
    with AdminClient(bench.endpoint) as admin:
        for number in range(2):
            admin(changes.create_subscription(f"{name}-partition-{number}", "s", "earliest"))
    return name


def trigger(topic, **arguments):
    return PulsarMessagesTrigger(**{"topic": topic, "subscription": "s", "poll_interval": 0.05, **arguments})


@asynccontextmanager
async def stream(topic, **arguments):
    producer = PulsarProducer(trigger(topic, **arguments), quiet_seconds=0)
    events = producer.open_stream()
    try:
        yield producer, events
    finally:
        await events.aclose()
        await producer.aclose()


def values(payload):
    return sorted(int(message["text"]) for message in payload["messages"])


def backlog(bench, topic):
    with closing(PulsarHook()) as hook:
        return hook.backlog(topic, "s").entries


@pytest.mark.parametrize("millis", [-5, -(1 << 62), 1 << 62, (1 << 63) - 1])
def test_a_backlog_whose_oldest_entry_was_published_at_no_time_has_no_age(bench, topic, millis):
    for number in range(2):
        with RawProducer(bench.endpoint, f"{topic}-partition-{number}") as producer:
            producer.send(metadata(millis), b"x")
    with closing(PulsarHook()) as hook:
        found = hook.backlog(topic, "s")
        assert (found.entries, found.oldest, found.age(datetime.now(UTC))) == (2, None, timedelta(0))


async def test_messages_come_once_each_and_are_acknowledged_after_they_were_stored(bench, topic):
    bench.write(topic, [b"%d" % n for n in range(30)], send=lambda n: {"partition_key": f"k{n}"})
    seen = []
    async with stream(topic, max_entries=8) as (producer, events):
        while len(seen) < 30:
            payload, ends = await anext(events)
            assert len(payload["messages"]) <= 8
            assert backlog(bench, topic) == 30 - len(seen), "nothing is acknowledged before it was stored"
            seen += values(payload)
            await producer.advance([AdvanceItem(ends, STORED)])
    assert sorted(seen) == list(range(30))
    assert backlog(bench, topic) == 0


async def test_what_was_not_stored_comes_again(bench, topic):
    bench.write(topic, [b"1", b"2"])
    async with stream(topic) as (producer, events):
        first, ends = await anext(events)
        await producer.advance([AdvanceItem(ends, DROPPED)])
        again, _ = await anext(events)
    assert values(first) == values(again) == [1, 2]


async def test_no_second_event_is_read_while_one_is_under_way(bench, topic):
    bench.write(topic, [b"%d" % n for n in range(4)])
    async with stream(topic, max_entries=1) as (producer, events):
        _, ends = await anext(events)
        second = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait({second}, timeout=0.5)
        await producer.advance([AdvanceItem(ends, STORED)])
        await asyncio.wait_for(second, 10)
        assert not done


@pytest.mark.parametrize("settings", [{}, {"compression_type": "ZLib"}, {"batch": 5}], ids=["single", "zlib", "batch"])
async def test_every_layout_of_entries_is_shown(bench, topic, settings):
    import pulsar

    if "compression_type" in settings:
        settings = {"compression_type": pulsar.CompressionType.ZLib, "batch": 5}
    bench.write(topic, [b"%d" % n for n in range(10)], send=lambda _: {"partition_key": "k"}, **settings)
    async with stream(topic) as (_, events):
        payload, _ = await anext(events)
    assert values(payload) == list(range(10))
    assert {message["key"] for message in payload["messages"]} == {"k"}


async def test_values_that_are_no_text_or_too_long_are_shown_otherwise(bench, topic):
    bench.write(topic, [b"\xff\x00", b"x" * 100], send=lambda _: {"partition_key": "k"})
    async with stream(topic, max_value_bytes=99) as (_, events):
        payload, _ = await anext(events)
    binary, long = payload["messages"]
    assert binary["base64"] == "/wA="
    assert (long["bytes"], "text" in long) == (100, False)
    json.dumps(payload)


def kinds(messages):
    """What is shown of each, in order."""
    return [message.get("hidden") or message.get("text", message.get("bytes")) for message in messages]


async def everything(bench, topic, **arguments):
    """What is shown in all events, each stored, until nothing is left."""
    shown = []
    async with stream(topic, **arguments) as (producer, events):
        while await asyncio.to_thread(backlog, bench, topic):
            payload, ends = await asyncio.wait_for(anext(events), 60)
            shown.append(payload["messages"])
            await producer.advance([AdvanceItem(ends, STORED)])
    return shown


async def test_an_entry_that_cannot_be_read_is_told_of_and_passed(bench, topic):
    part = f"{topic}-partition-0"
    zstd = pa.Codec("zstd")
    bomb = zstd.compress(bytes(64 << 20), asbytes=True)
    with RawProducer(bench.endpoint, part) as producer:
        producer.send(metadata(), b"first")
        places = [
            producer.send(metadata(num_messages=1), b"\0\0\0\0v"),
            producer.send(metadata(num_messages=1), b"\0\0\0\2\x18\x7fshort"),
            producer.send(metadata(num_messages=2), batch(b"only one")),
            producer.send(metadata(compression=3, uncompressed_size=64 << 20), bomb),
        ]
        producer.send(metadata(1 << 62), b"long ago")
        producer.send(metadata(), b"last")
    (messages,) = await everything(bench, topic)
    assert kinds(messages) == ["first", *["unreadable"] * 4, "long ago", "last"]
    notices = messages[1:5]
    assert [(notice["shard"], notice["ledger"], notice["entry"]) for notice in notices] == [(part, *p) for p in places]
    for notice, place in zip(notices, places, strict=True):
        assert "entry {}:{} ".format(*place) in notice["cause"]
    assert "max_entry_bytes" in notices[-1]["cause"]
    json.dumps(messages)


async def test_an_entry_of_a_million_messages_is_shown_in_part(bench, topic):
    count = 800_000
    with RawProducer(bench.endpoint, f"{topic}-partition-0") as producer:
        producer.send(metadata(num_messages=count), b"\0\0\0\2\x18\0" * count)
        producer.send(metadata(), b"last")
    first, second = await everything(bench, topic, max_messages=50)
    assert kinds(second) == ["last"]
    assert len(first) == 50
    assert (first[-1]["hidden"], first[-1]["batch_index"], first[-1]["messages"]) == ("more", 49, count - 49)


async def test_what_the_admin_api_cannot_show_is_shown(bench, topic):
    """It puts keys and properties into headers, and never answers for a chunk of a compressed message."""
    import pulsar

    part = f"{topic}-partition-0"
    bench.write(part, [b"1"], send=lambda _: {"partition_key": "k" * 20_000, "properties": {"n": "v" * 20_000}})
    large = {"chunking_enabled": True, "batching_enabled": False, "compression_type": pulsar.CompressionType.ZSTD}
    producer = bench.client.create_producer(part, **large)
    producer.send(random_bytes(6 << 20))
    producer.close()
    bench.write(part, [b"2"])
    (messages,) = await everything(bench, topic)
    assert kinds(messages) == ["1", "part", "part", "2"]
    assert messages[0]["key"] == "k" * 20_000


@pytest.mark.slow
async def test_markers_behind_the_last_message_are_acknowledged_too(bench, topic):
    part = f"{topic}-partition-0"
    run_java(Path(__file__).with_name("Txn.java"), [bench.server.service_url, part, "false"], bench.server.classpath)
    shown = await everything(bench, topic)
    expected = ["plain0", "plain1", "plain2", "committed0", "committed1", "between0"]
    assert kinds(itertools.chain(*shown)) == expected


async def test_messages_are_read_beside_the_loop(bench, topic, monkeypatch):
    threads = []
    read = NextMessages.read
    monkeypatch.setattr(
        NextMessages, "read", lambda self, *a: threads.append(threading.current_thread()) or read(self, *a)
    )
    bench.write(topic, [b"1"])
    async with stream(topic) as (_, events):
        await anext(events)
    assert threads
    assert threading.main_thread() not in threads


@contextmanager
def open_transaction(bench, topic):
    """Three messages, and two of a transaction that is open meanwhile, with one after them."""
    source = Path(__file__).with_name("OpenTransaction.java")
    with start_java(source, [bench.server.service_url, topic], bench.server.classpath) as process:
        try:
            assert any("READY" in line for line in process.stdout)
            yield
            process.communicate("\n", timeout=600)
        finally:
            process.kill()


@pytest.mark.slow
async def test_an_open_transaction_holds_back_what_is_behind_it(bench, topic, monkeypatch):
    """Nor is a broker connected to for the same rest again and again."""
    part = f"{topic}-partition-0"
    reads = []
    read = NextMessages.read
    monkeypatch.setattr(NextMessages, "read", lambda self, *a: reads.append(a[0]) or read(self, *a))
    async with stream(topic) as (producer, events):
        with open_transaction(bench, part):
            payload, ends = await anext(events)
            assert kinds(payload["messages"]) == ["plain0", "plain1", "plain2"]
            await producer.advance([AdvanceItem(ends, STORED)])
            coming = asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait({coming}, timeout=3)
            assert not done
            assert len(reads) == 2
        payload, ends = await coming
        assert kinds(payload["messages"]) == ["open0", "open1", "after"]
        await producer.advance([AdvanceItem(ends, STORED)])
    assert backlog(bench, topic) == 0


def test_a_full_partition_does_not_starve_the_other(bench, topic):
    for number, count in enumerate((50, 2)):
        bench.write(f"{topic}-partition-{number}", [b"%d" % n for n in range(count)])
    from airflow_provider_streams.systems.pulsar.source import PulsarSource

    with AdminClient(bench.endpoint) as admin:
        stored = ask(admin, unread(ask(admin, topics_of(PulsarSource(topic))), "s"))
    found = read_next(NextMessages(bench.endpoint), stored, MessageLimits(entries=10))
    shards = [message["shard"].rpartition("-")[2] for message in found.messages]
    assert (shards.count("0"), shards.count("1")) == (5, 2)


async def test_airflows_shared_stream_acknowledges_what_every_watcher_has_stored(bench, topic, monkeypatch):
    """Two watchers, one stream: acknowledged once both events are in the metadata database."""
    from airflow_provider_streams.triggers import pulsar_messages

    monkeypatch.setattr(pulsar_messages.PulsarProducer.__init__, "__kwdefaults__", {"hook": None, "quiet_seconds": 0})
    bench.write(topic, [b"%d" % n for n in range(6)])
    manager = SharedStreamManager(log=None, max_subscriber_queue=10, ack_timeout=60.0, cohort_grace_period=0.2)
    watchers = {number: trigger(topic, max_entries=3) for number in (1, 2)}
    key = watchers[1].shared_stream_key()
    assert key == watchers[2].shared_stream_key() != trigger(topic).shared_stream_key()
    streams = {
        number: watcher.filter_shared_stream(manager.subscribe(trigger_id=number, trigger=watcher, key=key))
        for number, watcher in watchers.items()
    }
    got = {number: [] for number in watchers}

    async def watch(number):
        async for event in streams[number]:
            got[number] += values(event.payload)
            # the event is stored: the triggerer tells the manager so, and the watcher goes on
            manager.confirm_persisted([manager.bind_pending_event(trigger_id=number, key=key)])

    watching = [asyncio.ensure_future(watch(number)) for number in watchers]
    while await asyncio.to_thread(backlog, bench, topic):
        assert not any(task.done() for task in watching)
        await asyncio.sleep(0)
    for number, task in zip(watchers, watching, strict=True):
        task.cancel()
        await manager.unsubscribe(number, key)
    await asyncio.gather(*watching, return_exceptions=True)
    await manager.stop_all()
    assert sorted(got[1]) == sorted(got[2]) == list(range(6))
