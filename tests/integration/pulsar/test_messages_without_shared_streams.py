"""Messages of a subscription as events, where a triggerer never says that it stored one, as before Airflow 3.3."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, closing, suppress

import pytest

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.systems.pulsar.client.admin import changes
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.triggers import pulsar_messages
from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger, PulsarProducer

pytestmark = pytest.mark.pulsar


@pytest.fixture
def topic(bench, monkeypatch):
    """Six messages and a subscription `s`, on the connection `pulsar_default`."""
    extra = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    monkeypatch.setattr(pulsar_messages, "_HANDED_OVER", {})
    monkeypatch.setattr(pulsar_messages, "QUIET_SECONDS", 0.01)
    name = bench.topic()
    with AdminClient(bench.endpoint) as admin:
        admin(changes.create_subscription(name, "s", "earliest"))
    bench.write(name, [b"%d" % n for n in range(6)], send=lambda n: {"partition_key": f"k{n}"})
    return name


def started(topic, number=7, **arguments):
    """A watcher as a triggerer starts it: its row's id is the same at each start."""
    trigger = PulsarMessagesTrigger(topic=topic, subscription="s", max_entries=2, poll_interval=0.05, **arguments)
    trigger.trigger_id = number
    return trigger


async def until_its_end(trigger):
    """The numbers in each of its events."""
    return [[int(message["text"]) for message in event.payload["messages"]] async for event in trigger.run()]


def backlog(topic):
    with closing(PulsarHook()) as hook:
        return hook.backlog(topic, "s").entries


async def test_what_is_started_again_acknowledges_what_the_one_before_handed_over(bench, topic):
    assert await until_its_end(started(topic)) == [[0, 1]]
    assert backlog(topic) == 6, "nothing says yet that the event was stored"
    assert await until_its_end(started(topic)) == [[2, 3]]
    assert backlog(topic) == 4
    assert await until_its_end(started(topic)) == [[4, 5]]
    bench.write(topic, [b"6"])
    assert await until_its_end(started(topic)) == [[6]]
    assert backlog(topic) == 1


async def test_a_triggerer_that_died_hands_the_same_over_again(topic):
    assert await until_its_end(started(topic)) == [[0, 1]]
    pulsar_messages._HANDED_OVER.clear()
    assert await until_its_end(started(topic)) == [[0, 1]]
    assert await until_its_end(started(topic)) == [[2, 3]]


async def test_a_watcher_that_is_removed_before_it_ends_has_handed_nothing_over(topic, monkeypatch):
    monkeypatch.setattr(pulsar_messages, "QUIET_SECONDS", 3600)
    async with aclosing(started(topic).run()) as events:
        await anext(events)
        ending = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        ending.cancel()
        with suppress(asyncio.CancelledError):
            await ending
    assert pulsar_messages._HANDED_OVER == {}


@pytest.mark.parametrize("other", [{"number": 8}, {"max_messages": 3}], ids=["another row", "a reused id"])
async def test_another_watcher_acknowledges_nothing(topic, other):
    assert await until_its_end(started(topic)) == [[0, 1]]
    assert await until_its_end(started(topic, **other)) == [[0, 1]]
    assert backlog(topic) == 6


async def test_a_refused_acknowledgement_is_tried_again(topic, monkeypatch):
    assert await until_its_end(started(topic)) == [[0, 1]]
    failures, acknowledge = [StreamsError("the broker restarts")] * 2, PulsarProducer.acknowledge

    async def failing(producer, ends):
        if failures:
            raise failures.pop()
        await acknowledge(producer, ends)

    monkeypatch.setattr(PulsarProducer, "acknowledge", failing)
    assert await until_its_end(started(topic)) == [[2, 3]]
    assert (failures, backlog(topic)) == ([], 4)
