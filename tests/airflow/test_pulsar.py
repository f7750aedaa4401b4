"""A real broker through Airflow's classes: hook, sensors, trigger, and windows read with Spark and landed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.sdk import DAG, task
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.pulsar import PulsarBacklogSensor
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.pulsar.operations.conditions import BacklogReached
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.triggers.condition import ConditionTrigger

pytestmark = [pytest.mark.pulsar, pytest.mark.dagtest]

SLACK = timedelta(milliseconds=200)
EVENTS = 600


@dataclass
class Published:
    """What a test's producers sent, half of it before `middle`."""

    topic: str
    start: datetime
    middle: datetime
    end: datetime


@pytest.fixture
def connection(pulsar_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection `pulsar_default` is the broker."""
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))


@pytest.fixture
def published(pulsar_server: Any, pulsar_namespace: str, connection: None) -> Iterator[Published]:
    """Numbered, keyed, batched events in three partitions; a subscription `unread` that has read nothing."""
    pulsar = pytest.importorskip("pulsar")
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/orders", 3)
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(pulsar_server.service_url, logger=quiet)
    client.subscribe(topic, "unread").close()
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=20)
    start = datetime.now(UTC)
    for number in range(EVENTS // 2):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key=f"k{number % 17}")
    producer.flush()
    # the second half is later by the clock, wherever the broker rounds to
    middle = datetime.now(UTC) + timedelta(milliseconds=20)
    while datetime.now(UTC) < middle + timedelta(milliseconds=20):
        pass
    for number in range(EVENTS // 2, EVENTS):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key=f"k{number % 17}")
    producer.flush()
    end = datetime.now(UTC) + timedelta(milliseconds=20)
    yield Published(topic, start - timedelta(seconds=1), middle, end)
    client.close()


@pytest.fixture
def hook(connection: None) -> Iterator[PulsarHook]:
    with closing(PulsarHook()) as made:
        yield made


def test_the_hook_tells_what_the_broker_holds(hook, published, pulsar_namespace, pulsar_unchanged):
    assert hook.topics(pulsar_namespace) == (published.topic,)
    assert hook.partitions(published.topic) == 3
    assert hook.stats(published.topic).messages_in == EVENTS
    assert hook.subscriptions(published.topic) == ("unread",)
    shards = [f"{published.topic}-partition-{number}" for number in range(3)]
    ledgers = hook.internal_stats(published.topic)
    assert list(ledgers) == shards
    last = hook.last_message_id(published.topic)
    for shard, cut in hook.position_at(published.topic, published.end + timedelta(hours=1)).items():
        assert cut.parts[:2] == (last[shard].ledger, last[shard].entry + 1)
    first = hook.position_at(published.topic, published.start)
    assert [first[shard].parts[0] for shard in shards] == [ledgers[shard].ledgers[0].ledger for shard in shards]


def test_a_backlog_is_counted_in_entries_bytes_and_age(hook, published, pulsar_unchanged):
    backlog = hook.backlog(published.topic, "unread")
    stored = sum(ledger.entries for stats in hook.internal_stats(published.topic).values() for ledger in stats.ledgers)
    assert backlog.entries == stored
    assert backlog.entries < EVENTS, "entries are not messages"
    assert backlog.bytes > 0
    assert published.start <= backlog.oldest <= published.middle


def test_names_of_sources_sinks_and_topics_are_rendered_in_each_run(published, dag_test, tmp_path):
    window = str(Window(published.start, published.end))
    common = {"window": window, "basis": PublishTime(SLACK), "columns": ["value"]}
    named = PulsarSource("{{ ti.xcom_pull(task_ids='pick')['topic'] }}")
    with DAG("rendered", schedule=None, params={"lake": str(tmp_path)}) as dag:

        @task(multiple_outputs=True)
        def pick() -> dict[str, str]:
            return {"topic": published.topic.removeprefix("persistent://")}

        picked = pick()
        waits = [
            PulsarBacklogSensor(task_id="backlog", topic=picked["topic"], subscription="unread", entries=1),
            WindowReadySensor(task_id="ready", source=named, window=window, basis=PublishTime(SLACK)),
        ]
        whole = ReadWindowOperator(
            task_id="whole", source=named, sink=ParquetSink("{{ params.lake }}/{{ task.task_id }}"), **common
        )
        apart = [PulsarSource(published.topic, partitions=one) for one in ([0], [1, 2])]
        parts = ReadWindowOperator.partial(
            task_id="parts",
            sink=ParquetSink("{{ params.lake }}/{{ task.task_id }}-{{ ti.map_index }}"),
            reader="parts-{{ ti.map_index }}",
            **common,
        ).expand(source=apart)
        picked >> waits >> whole
        waits >> parts
    assert (named.key, whole.sink.path) == (PulsarSource(named.topics[0]).key, whole.sink.path), (
        "values stay as they are"
    )
    run = dag_test(dag)
    assert run.state == DagRunState.SUCCESS
    found = {name: ds.dataset(tmp_path / name).to_table() for name in ("whole", "parts-0", "parts-1")}
    sent = sorted(b"%d" % number for number in range(EVENTS))
    assert sorted(found["whole"]["value"].to_pylist()) == sent
    assert sorted([*found["parts-0"]["value"].to_pylist(), *found["parts-1"]["value"].to_pylist()]) == sent
    told = run.get_task_instance("whole").xcom_pull(task_ids="whole")
    assert (told["rows"], told["target"]) == (EVENTS, f"file://{tmp_path}/whole")


def test_the_connection_test_succeeds(hook):
    ok, message = hook.test_connection()
    assert ok, message
    assert "accepts us" in message


async def test_the_backlog_trigger_fires(published, pulsar_unchanged):
    source = PulsarSource(published.topic)
    trigger = ConditionTrigger(source_to_json(source), condition_to_json(BacklogReached("unread", entries=1)), 0.1)
    payloads = [event.payload async for event in trigger.run()]
    await trigger.cleanup()
    assert [payload["status"] for payload in payloads] == ["success"]


@pytest.mark.spark
def test_adjacent_windows_of_a_real_topic_land_every_event_once(
    dag_test, published, pulsar_unchanged, tmp_path, monkeypatch
):
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    source = PulsarSource(published.topic)
    common = {"source": source, "window": "{{ dag_run.conf['window'] }}", "basis": PublishTime(SLACK)}
    with DAG("real_windows", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        formed = PulsarBacklogSensor(
            task_id="formed", source=source, subscription="unread", entries=1, poke_interval=0.1, deferrable=True
        )
        ready = WindowReadySensor(task_id="ready", poke_interval=0.1, deferrable=True, timeout=600, **common)
        read = ReadWindowOperator(task_id="read", sink=ParquetSink(str(tmp_path / "lake")), **common)
        formed >> ready >> read

    def rows(window: Window) -> dict[str, Any]:
        run = dag_test(dag, run_conf={"window": str(window)})
        assert run.state == DagRunState.SUCCESS
        return run.get_task_instance("read").xcom_pull(task_ids="read")

    windows = [Window(published.start, published.middle), Window(published.middle, published.end)]
    receipts = [rows(window) for window in windows]
    again = rows(windows[0])
    assert [receipt["rows"] for receipt in receipts] == [EVENTS // 2, EVENTS // 2]
    assert (again["fingerprint"], again["rows"]) == (receipts[0]["fingerprint"], receipts[0]["rows"])
    table = ds.dataset(tmp_path / "lake", partitioning="hive").to_table()
    assert sorted(int(value) for value in table["value"].to_pylist()) == list(range(EVENTS))
