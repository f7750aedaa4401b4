"""Holds around a read on a broker that keeps nothing by itself; and a transaction that is really open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import PublishTime, PulsarSource, Window
from airflow_provider_streams.errors import EventsLost
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.operators.holds import HoldRetentionOperator, ReleaseHoldOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.pulsar import PulsarTransactionsSensor
from airflow_provider_streams.systems.pulsar.client.admin import changes
from stream_servers.java import start_java
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar

OPEN_TRANSACTION = Path(__file__).parents[1] / "integration" / "pulsar" / "OpenTransaction.java"
EVENTS = 120  # two ledgers and a part of a third


@pytest.fixture
def hook(pulsar_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[PulsarHook]:
    """The connection `pulsar_default` is the broker; the journal is empty."""
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    made = PulsarHook()
    yield made
    made.close()


@pytest.fixture
def write(pulsar_server: Any) -> Iterator[Callable[[str, int], None]]:
    """`write(topic, count)` sends numbered messages, one entry each."""
    pulsar = pytest.importorskip("pulsar")
    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def write(topic: str, count: int) -> None:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(count):
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
        producer.close()

    yield write
    client.close()


class Reading:
    """What happens between planning and reading: everything that retention may remove is removed."""

    def __init__(self, hook: PulsarHook, topic: str, launch: Callable[..., Any], *, fails: bool) -> None:
        self.hook, self.topic, self._launch, self._fails = hook, topic, launch, fails
        self.holds: list[tuple[str, ...]] = []

    def __call__(self, spec: Any, *spark: Any) -> Any:
        self.holds.append(self.hook.subscriptions(self.topic))
        self.hook.admin(changes.trim(self.topic))
        if self._fails:
            raise EventsLost("shard", 0, 1, "1 entry", "a test wants it")
        return self._launch(spec, *spark)

    def ledgers(self) -> int:
        return len(self.hook.internal_stats(self.topic)[self.topic].ledgers)


@pytest.mark.dagtest
@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure"])
def test_a_hold_lives_as_long_as_the_run_that_reads(  # noqa: PLR0917 - fixtures
    dag_test, spark_stand_in, hook, write, pulsar_server, pulsar_namespace, monkeypatch, fails
):
    from airflow_provider_streams.airflow_runtime import spark_launch

    topic = pulsar_server.create_topic(f"{pulsar_namespace}/orders")
    source = PulsarSource(topic)
    start = datetime.now(UTC) - timedelta(seconds=1)
    write(topic, EVENTS)
    window = Window(start, datetime.now(UTC) + timedelta(milliseconds=20))
    reading = Reading(hook, topic, spark_launch.launch, fails=fails)
    monkeypatch.setattr(spark_launch, "launch", reading)
    slack = timedelta(milliseconds=100)
    common = {"basis": PublishTime(slack), "window": window}
    wait_until(lambda: datetime.now(UTC) > window.end + slack, "the window to be complete")
    dag_id = f"held_{'failure' if fails else 'success'}"
    named = {"source": source, "reader": f"{dag_id}.read", "name": "orders-{{ run_id }}"}
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        hold = HoldRetentionOperator(task_id="hold", **named, **common)
        forget = Forgetting(task_id="forget", source=source, reader="-", change_with=pulsar_server.set_retention)
        read = ReadWindowOperator(task_id="read", source=source, sink=None, **common)
        let_go = ReleaseHoldOperator(task_id="let_go", **named)
        hold.as_setup() >> forget >> read >> let_go.as_teardown(setups=hold)
    run = dag_test(dag)
    ((found,),) = reading.holds
    assert found.startswith("streams-hold-orders-manual"), "the hold is there while the window is read"
    assert hook.subscriptions(topic) == (), "and not afterwards"
    assert run.get_task_instance("let_go").state == TaskInstanceState.SUCCESS
    wait_until(lambda: hook.admin(changes.trim(topic)) or reading.ledgers() == 1, "the broker to remove what was held")
    if fails:
        assert run.state == DagRunState.FAILED
        return
    assert run.state == DagRunState.SUCCESS
    assert sorted(int(row["value"]) for row in spark_stand_in.tables[0]) == list(range(EVENTS))


class Forgetting(ReleaseHoldOperator):
    """A task that ends the namespace's retention."""

    def __init__(self, *, change_with: Callable[..., None], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change_with = change_with

    def execute(self, context: Any) -> Any:  # noqa: ARG002 - all operators' shape
        namespace = "/".join(self.source.topics[0].split("/")[2:4])
        self.change_with(namespace, minutes=0, megabytes=0)


@pytest.mark.slow
async def test_an_open_transaction_is_waited_for(hook, pulsar_server, pulsar_namespace):
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/transacted")
    other = pulsar_server.create_topic(f"{pulsar_namespace}/other")

    def sensor(name: str, older_than: timedelta = timedelta(0)) -> PulsarTransactionsSensor:
        return PulsarTransactionsSensor(task_id="w", topic=name, older_than=older_than, poke_interval=0.1)

    with start_java(OPEN_TRANSACTION, [pulsar_server.service_url, topic], pulsar_server.classpath) as peer:
        assert any("READY" in line for line in peer.stdout), "two messages are written in a transaction"
        answer = sensor(topic).poke({})
        assert not answer.is_done
        assert sensor(other).poke({}).is_done, "it touched only one of the topics"
        assert sensor(topic, timedelta(hours=1)).poke({}).is_done, "it is not that old"
        trigger = sensor(topic).trigger({})
        assert not (await trigger.ask()).ready
        peer.communicate("\n", timeout=600)
    (payload,) = [event.payload async for event in trigger.run()]
    await trigger.cleanup()
    assert payload == {"status": "success", "open": []}
    assert sensor(topic).execute({}) == {"open": []}
