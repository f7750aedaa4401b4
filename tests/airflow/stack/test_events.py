"""What starts DAGs without a clock: watchers of windows, and a message queue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.testing.fake import FakeSource, dump
from airflow_provider_streams.testing.landing import cover_without_spark
from tests.airflow.stack.acts import Dag, connect, events_of

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

LENGTH = timedelta(days=100)
DAY_MS = 86_400_000


@pytest.fixture
def journal(airflow_stack) -> Iterator[Journal]:
    """The stack's."""
    with Journal.open(f"sqlite:///{airflow_stack.home}/streams_journal.db") as opened:
        yield opened


def named(event: dict[str, Any]) -> list[str]:
    """The windows that an event announces."""
    return [f"{window['start']}/{window['end']}" for window in event["extra"]["payload"]["windows"]]


@pytest.mark.slow
@pytest.mark.spark
def test_windows_that_a_watcher_announces_are_all_read_although_airflow_strands_events(airflow_stack, journal):
    stack, source = airflow_stack, FakeSource("numbers", conn_id="fake_announced")
    consumer = Dag(stack, "announced_windows")
    notes = Dag(stack, "announced_notes", watches="announced_windows")
    truth = stack.home / "announced.json"
    connect(stack, source.conn_id, "fake", truth=str(truth))
    newest = Every(LENGTH).before(datetime.now(UTC))
    held = {"epoch": newest - 6 * LENGTH, "events": 600, "interval_ms": DAY_MS}
    windows = [Window(newest - n * LENGTH, newest - (n - 1) * LENGTH) for n in (6, 5, 4, 3, 2, 1)]
    texts = [str(window) for window in windows]
    dump(truth, now=newest - LENGTH, **held)
    table = ParquetSink(f"{stack.home}/lake-announced")
    cover_without_spark(journal, source, windows[0], "announced", {"truth": str(truth)}, sink=table)

    consumer.parsed()
    with notes.unpaused():
        # the consumer is paused: an event that lands now starts no run of it, not even later
        notes.until("nothing was announced", lambda: events_of(stack, "announced_windows"))
        stranded = events_of(stack, "announced_windows")
        assert named(stranded[0]) == texts[1:5], "one event names all that are complete and not covered"
        assert consumer.runs() == []
        with consumer.unpaused():
            (run, *_) = consumer.until("no event started it", consumer.runs)
            dump(truth, now=newest, **held)

            def covered() -> bool:
                return journal.coverage(source.key, "announced", windows[1].start, newest, LENGTH).is_complete

            consumer.until("the windows were not covered", covered)
            ids = [one["dag_run_id"] for one in consumer.runs()]
            for run_id in ids:
                consumer.succeed(run_id)
            heard = consumer.consumed(run["dag_run_id"])

    first = consumer.xcom(run["dag_run_id"], "read")
    assert first["covered"] == texts[1:5] == named(heard[-1]), "exactly what was announced, in one job"
    assert first["jobs"] == 1
    assert [text for run_id in ids for text in consumer.xcom(run_id, "read").get("covered", [])] == texts[1:]
    assert heard[-1]["id"] > stranded[-1]["id"], "it was started by a later announcement of the same"
    states = journal.coverage(source.key, "announced", windows[0].start, newest, LENGTH).windows
    assert [(one.state, one.attempts, one.rows) for one in states] == [("covered", 1, 200)] * 6

    landed = ds.dataset(stack.home / "lake-announced", partitioning="hive").to_table(["shard", "number"])
    expected = [(f"numbers-{shard}", number) for shard in (0, 1) for number in range(600)]
    assert sorted(zip(landed["shard"].to_pylist(), landed["number"].to_pylist(), strict=True)) == expected


@pytest.fixture
def queue(pulsar_server: Any) -> Iterator[Any]:
    """`queue(count)` sends numbered messages to the topic that the DAG watches, each an entry of its own."""
    pulsar = pytest.importorskip("pulsar")
    pulsar_server.create_namespace("public/queued")
    topic = pulsar_server.create_topic("public/queued/corrections")
    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    client.subscribe(topic, "airflow", initial_position=pulsar.InitialPosition.Earliest).close()
    producer = client.create_producer(topic, batching_enabled=False)

    def send(numbers: range) -> None:
        for number in numbers:
            producer.send(b"%d" % number)

    yield send
    client.close()
    pulsar_server.delete_namespace("public/queued")


@pytest.mark.slow
@pytest.mark.pulsar
def test_each_message_of_a_queue_is_in_an_event_before_it_is_acknowledged_even_after_a_kill(
    airflow_stack, pulsar_server, queue
):
    stack, dag, count = airflow_stack, Dag(airflow_stack, "queued_messages", watches="queued_messages"), 12
    addresses = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    connect(stack, "pulsar_queued", "pulsar", **addresses)
    queue(range(count))

    def stored() -> list[int]:
        events = events_of(stack, "queued_messages")
        return [int(message["text"]) for event in events for message in event["extra"]["payload"]["messages"]]

    def acknowledged() -> int:
        stats = pulsar_server.admin("GET", "persistent/public/queued/corrections/stats?getPreciseBacklog=true")
        return count - stats["subscriptions"]["airflow"]["msgBacklog"]

    def all_acknowledged() -> bool:
        # asked in this order: what is acknowledged by now was stored before
        done = acknowledged()
        assert done <= len({*stored()})
        return done == count

    with dag.unpaused():
        dag.until("the messages were not acknowledged", all_acknowledged)
        assert stored() == list(range(count)), "each once, in order"
        events = events_of(stack, "queued_messages")
        assert [len(event["extra"]["payload"]["messages"]) for event in events] == [5, 5, 2]
        count += 1
        queue(range(count - 1, count))
        dag.until("a later message was not acknowledged", all_acknowledged)
        assert stored() == list(range(count))
        run = dag.until("no run was started", dag.runs)[0]["dag_run_id"]
        dag.succeed(run)
        assert dag.consumed(run)[0]["id"] == events[0]["id"]

        fired = stack.triggerer_says("Trigger fired event")
        count += 1
        queue(range(count - 1, count))
        dag.until("no event was fired", lambda: stack.triggerer_says("Trigger fired event") != fired)
        stack.kill("triggerer")
        stack.start("triggerer")
        dag.until("the message was not acknowledged after a kill", all_acknowledged)
        assert sorted({*stored()}) == list(range(count)), "none is lost, and some may come twice"
