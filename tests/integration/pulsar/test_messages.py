"""Messages of a subscription as events, through Airflow's own shared streams."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, closing

import pytest
from airflow.triggers.shared_stream import AdvanceItem, AdvanceOutcome, SharedStreamManager

from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.hooks.pulsar_messages import Bounds, next_messages
from airflow_provider_streams.systems.pulsar.admin import changes
from airflow_provider_streams.systems.pulsar.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.questions import ask, topics_of
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger, PulsarProducer

pytestmark = pytest.mark.pulsar

STORED, DROPPED = AdvanceOutcome(acked=1, failed=0), AdvanceOutcome(acked=0, failed=1)


@pytest.fixture
def topic(bench, monkeypatch):
    """Two partitions with a subscription `s`, behind the connection `pulsar_default`."""
    extra = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    name = bench.topic(partitions=2)
    with AdminClient(bench.endpoint) as admin:
        for number in range(2):
            admin(changes.create_subscription(f"{name}-partition-{number}", "s", "earliest"))
    return name


def trigger(topic, **arguments):
    return PulsarMessagesTrigger(**{"topics": topic, "subscription": "s", "poll_interval": 0.05, **arguments})


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


def test_a_full_partition_does_not_starve_the_other(bench, topic):
    for number, count in enumerate((50, 2)):
        bench.write(f"{topic}-partition-{number}", [b"%d" % n for n in range(count)])
    from airflow_provider_streams.model.source import PulsarSource

    with AdminClient(bench.endpoint) as admin:
        found = ask(admin, next_messages(ask(admin, topics_of(PulsarSource(topic))), "s", Bounds(entries=10)))
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
