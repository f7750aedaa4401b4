"""A broker of our own: what it notes of entries, and reads under which it dies, or stops without dying."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from airflow_provider_streams.errors import ReadStalled
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.reading import entry_fetcher as feed_module
from airflow_provider_streams.systems.pulsar.reading import reader as reader_module
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader
from stream_servers import QUICK_START, PulsarServer
from stream_servers.java import run_java
from tests.integration.pulsar.conftest import milliseconds
from tests.integration.pulsar.raw_producer import RawProducer, metadata

pytestmark = pytest.mark.pulsar


@pytest.fixture(scope="module")
def mortal():
    """A broker of our own, for we do to it what other tests would not survive."""
    with PulsarServer(ledger_entries=50, interceptors=True, jvm=QUICK_START) as server:
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


JAVA = """
import org.apache.pulsar.client.api.*;
public class Noted {
    public static void main(String[] a) throws Exception {
        try (PulsarClient c = PulsarClient.builder().serviceUrl(a[0]).build();
             Reader<byte[]> r = c.newReader().topic(a[1]).startMessageId(MessageId.earliest).create()) {
            while (r.hasMessageAvailable()) {
                Message<byte[]> m = r.readNext();
                String from = m.isReplicated() ? m.getReplicatedFrom() : "-";
                System.out.println("row " + new String(m.getData()) + " " + m.getBrokerPublishTime().get() + " "
                    + m.getIndex().get() + " " + from);
            }
        }
    }
}
"""


@pytest.mark.slow
def test_what_the_broker_and_a_replicator_noted_is_what_java_sees(mortal, bench_of, tmp_path):
    bench = bench_of(mortal)
    topic = bench.topic()
    bench.write(topic, [b"0", b"1"])
    bench.write(topic, [b"2", b"3", b"4"], batch=3)
    with RawProducer(bench.endpoint, topic) as producer:
        producer.send(metadata(replicated_from=b"east"), b"5")
    reader = bench.reader(bench.split(topic), ("value", "broker_time", "broker_index", "replicated_from"))
    rows = [row for batch in reader for row in batch.to_pylist()]
    times = [milliseconds(row["broker_time"]) for row in rows]
    noted = [(row["value"].decode(), time, row["broker_index"]) for row, time in zip(rows, times, strict=True)]
    found = [" ".join(map(str, (*one, row["replicated_from"] or "-"))) for one, row in zip(noted, rows, strict=True)]
    (tmp_path / "Noted.java").write_text(JAVA)
    told = run_java(tmp_path / "Noted.java", [mortal.service_url, topic], mortal.classpath)
    assert found == [line.removeprefix("row ") for line in told.splitlines() if line.startswith("row ")]
    assert [line.split()[3] for line in found] == ["-"] * 5 + ["east"]


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
