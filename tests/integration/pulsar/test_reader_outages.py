"""A broker that dies, or stops without dying, under a read."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from airflow_provider_streams.errors import ReadStalled
from airflow_provider_streams.model.receipt import compare
from airflow_provider_streams.systems.pulsar import fetcher as feed_module
from airflow_provider_streams.systems.pulsar import reader as reader_module
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.reader import PulsarSplitReader
from airflow_provider_streams.testing.servers import PulsarServer

pytestmark = pytest.mark.pulsar


@pytest.fixture(scope="module")
def mortal():
    """A broker of our own, for we do to it what other tests would not survive."""
    with PulsarServer(ledger_entries=50) as server:
        yield server


@pytest.fixture
def written(mortal, bench_of, monkeypatch):
    """A topic, everything in it as one split, and permits so small that little of it is on the way at any moment."""
    monkeypatch.setattr(feed_module, "PERMITS", 40)
    monkeypatch.setattr(reader_module, "FLUSH_ENTRIES", 1)
    bench = bench_of(mortal)
    topic = bench.topic()
    bench.write(topic, [b"%d" % number for number in range(500)])
    return bench, bench.split(topic)


def test_a_killed_broker_is_waited_for_and_nothing_is_lost_or_repeated(mortal, written):
    bench, split = written
    endpoint = replace(bench.endpoint, stall_seconds=280)
    reader = PulsarSplitReader(endpoint, bench.plan(split), split)
    values, restart = [], threading.Thread(target=mortal.restart)
    for batch in reader:
        values += batch["value"].to_pylist()
        if not restart.ident:
            mortal.kill()
            restart.start()
    restart.join()
    assert values == [b"%d" % number for number in range(500)]
    assert reader.reconnects > 0
    compare(bench.plan(split), [reader.receipt], seconds=1)


def test_a_broker_that_stopped_is_a_stall(mortal, written):
    bench, split = written
    endpoint = Endpoint(mortal.service_url, stall_seconds=2, request_timeout_seconds=1)
    reader = PulsarSplitReader(endpoint, bench.plan(split), split)
    batches = iter(reader)
    next(batches)
    mortal.pause()
    try:
        with pytest.raises(ReadStalled) as caught:
            list(batches)
    finally:
        mortal.resume()
    assert caught.value.retryable
    assert caught.value.shard == split.shard
