"""The operators that change a broker, and the sensors that wait for it, each twice: a retry finds its work done."""

from __future__ import annotations

import itertools
import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_streams import PublishTime, PulsarSource, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, ProcessFailed, RetentionAtRisk, SourceNotFound
from airflow_provider_streams.hooks.pulsar import PulsarHook
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.operators.holds import HoldRetentionOperator, MoveHoldOperator, ReleaseHoldOperator
from airflow_provider_streams.operators.pulsar import (
    PulsarCompactTopicOperator,
    PulsarCreateSubscriptionOperator,
    PulsarCreateTopicOperator,
    PulsarDeleteTopicOperator,
    PulsarDropSubscriptionOperator,
    PulsarOffloadTopicOperator,
    PulsarSetRetentionOperator,
    PulsarTerminateTopicOperator,
    PulsarTrimTopicOperator,
    PulsarUpdatePartitionsOperator,
)
from airflow_provider_streams.operators.retention import CheckRetentionOperator
from airflow_provider_streams.sensors.pulsar import (
    PulsarCaughtUpSensor,
    PulsarCompactionSensor,
    PulsarOffloadSensor,
    PulsarTerminatedSensor,
    PulsarTransactionsSensor,
)
from airflow_provider_streams.sensors.retention import RetentionRiskSensor
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.pulsar.operations.conditions import BacklogReached, Terminated
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.testing.landing import cover_without_spark
from airflow_provider_streams.triggers.condition import ConditionTrigger

pytestmark = pytest.mark.pulsar

HOUR = timedelta(hours=1)


@pytest.fixture
def connection(pulsar_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """`pulsar_default` is the broker, and the journal is empty."""
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))


@pytest.fixture
def topic(connection: None, pulsar_namespace: str) -> str:
    """The name of a topic that does not exist."""
    return f"persistent://{pulsar_namespace}/t-{secrets.token_hex(4)}"


@pytest.fixture
def hook(connection: None) -> Any:
    made = PulsarHook()
    yield made
    made.close()


@pytest.fixture
def written(pulsar_server: Any) -> Any:
    """`written(topic, count)` sends numbered messages, one entry each."""
    pulsar = pytest.importorskip("pulsar")
    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def write(topic: str, count: int, key: str = "k") -> None:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(count):
            producer.send(b"%d" % number, partition_key=f"{key}{number % 3}")
        producer.close()

    yield write
    client.close()


def run(operator: type, **arguments: Any) -> dict[str, Any]:
    return operator(task_id="t", **arguments).execute({})


def test_a_topic_is_made_grown_and_deleted_once(topic, hook):
    assert run(PulsarCreateTopicOperator, topic=topic, partitions=2)["created"]
    assert not run(PulsarCreateTopicOperator, topic=topic, partitions=2)["created"]
    assert run(PulsarUpdatePartitionsOperator, topic=topic, partitions=3)["added"] == 1
    assert run(PulsarUpdatePartitionsOperator, topic=topic, partitions=3)["added"] == 0
    assert hook.partitions(topic) == 3
    assert run(PulsarDeleteTopicOperator, topic=topic)["deleted"]
    assert not run(PulsarDeleteTopicOperator, topic=topic)["deleted"]
    with pytest.raises(SourceNotFound):
        hook.partitions(topic)


def test_what_a_topic_cannot_become_is_refused_without_retries(topic):
    run(PulsarCreateTopicOperator, topic=topic, partitions=2)
    for partitions in (0, 1):
        with pytest.raises(InvalidRequest) as caught:
            run(PulsarCreateTopicOperator, topic=topic, partitions=partitions)
        assert isinstance(caught.value, AirflowFailException)


def test_a_terminated_topic_takes_no_more_and_is_seen(topic, written):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 3)
    waiting = PulsarTerminatedSensor(task_id="w", topic=topic, poke_interval=0.1)
    assert not waiting.poke({}).is_done
    first = run(PulsarTerminateTopicOperator, topic=topic)
    assert run(PulsarTerminateTopicOperator, topic=topic) == first
    assert waiting.poke({}).is_done
    assert waiting.poke({}).xcom_value == {"last": first["last"]}
    with pytest.raises(Exception, match=r"(?i)terminated"):
        written(topic, 1)


def test_subscriptions_come_and_go_on_every_partition(topic, written):
    run(PulsarCreateTopicOperator, topic=topic, partitions=2)
    on_both = [f"{topic}-partition-0", f"{topic}-partition-1"]
    assert run(PulsarCreateSubscriptionOperator, topic=topic, subscription="s")["created"] == on_both
    assert run(PulsarCreateSubscriptionOperator, topic=topic, subscription="s")["created"] == []
    caught_up = PulsarCaughtUpSensor(task_id="w", topic=topic, subscription="s", poke_interval=0.1)
    assert caught_up.poke({}).is_done
    written(topic, 4)
    assert not caught_up.poke({}).is_done
    assert PulsarCaughtUpSensor(task_id="w2", topic=topic, subscription="s", entries=4).poke({}).is_done
    assert run(PulsarDropSubscriptionOperator, topic=topic, subscription="s")["dropped"] == on_both
    assert run(PulsarDropSubscriptionOperator, topic=topic, subscription="s")["dropped"] == []


def test_a_compaction_is_started_and_waited_for(topic, written):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 20)
    assert run(PulsarCompactTopicOperator, topic=topic)["started"] == [topic]
    PulsarCompactionSensor(task_id="w", topic=topic, poke_interval=0.1, timeout=600).execute({})


def test_an_offload_that_the_broker_cannot_do_fails(topic, written):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 60)
    assert run(PulsarOffloadTopicOperator, topic=topic)["started"] == [topic]
    with pytest.raises(ProcessFailed, match="offload"):
        PulsarOffloadSensor(task_id="w", topic=topic, poke_interval=0.1, timeout=600).execute({})


def test_without_transactions_none_is_old(topic, written):
    run(PulsarCreateTopicOperator, topic=topic)
    assert PulsarTransactionsSensor(task_id="w", topic=topic).poke({}).xcom_value == {"open": []}


def test_retention_is_set_trimmed_by_and_inherited_again(topic, written, hook):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 120)
    assert len(hook.internal_stats(topic)[topic].ledgers) == 3
    run(PulsarSetRetentionOperator, topic=topic, retention=timedelta(0), retention_bytes=0)
    _until(lambda: hook.answer(_retention(topic)).seconds == 0)
    _until(lambda: run(PulsarTrimTopicOperator, topic=topic) and len(hook.internal_stats(topic)[topic].ledgers) == 1)
    run(PulsarSetRetentionOperator, topic=topic, inherit=True)
    _until(lambda: hook.answer(_retention(topic)).unlimited)


def _retention(topic):
    from airflow_provider_streams.systems.pulsar.client.admin import requests

    (found,) = yield [requests.retention(topic)]
    return found


def _until(condition: Any, seconds: float = 120.0) -> None:
    """A topic's policies reach its broker a moment after they were accepted."""
    deadline = datetime.now(UTC) + timedelta(seconds=seconds)
    while not condition():
        assert datetime.now(UTC) < deadline, "it never became true"


async def test_triggers_ask_once_per_partition_and_poll(topic, written):
    run(PulsarCreateTopicOperator, topic=topic, partitions=2)
    run(PulsarTerminateTopicOperator, topic=topic)
    run(PulsarCreateSubscriptionOperator, topic=topic, subscription="s")
    for condition in (Terminated(), BacklogReached("s", entries=0, direction="at_most")):
        trigger = ConditionTrigger(source_to_json(PulsarSource(topic)), condition_to_json(condition), 0.1)
        payloads = [event.payload async for event in trigger.run()]
        await trigger.cleanup()
        assert [payload["status"] for payload in payloads] == ["success"]


def test_a_hold_follows_the_covered_windows_and_stops_at_the_first_other(topic, hook, written):
    run(PulsarCreateTopicOperator, topic=topic)
    edges = [datetime.now(UTC) - timedelta(seconds=1)]
    for _ in range(3):
        written(topic, 50)
        edges.append(datetime.now(UTC))
        _until(lambda: datetime.now(UTC) > edges[-1] + timedelta(milliseconds=5))
    windows = [Window(*pair) for pair in itertools.pairwise(edges)]
    hold = {"source": PulsarSource(topic), "reader": "d.read", "name": "nightly"}
    run(HoldRetentionOperator, **hold, at=edges[0].isoformat(), basis=PublishTime(timedelta(0)))

    def cover(window: Window) -> None:
        with open_journal() as journal:
            cover_without_spark(journal, PulsarSource(topic), window, "d.read", hook.options())

    def place() -> Any:
        run(MoveHoldOperator, **hold, basis=PublishTime(timedelta(0)))
        (found,) = hook.holds(hold["source"])
        return found.since

    assert place() == edges[0], "nothing is covered"
    cover(windows[1])
    assert place() == edges[0], "the first window still needs its data"
    cover(windows[0])
    assert place() == edges[2], "now both are covered"
    assert place() == edges[2]
    # the window that is left can be planned with nothing but the hold
    hook.admin(_no_retention(topic))
    cover(windows[2])
    assert run(ReleaseHoldOperator, **hold)["released"] == [topic]
    assert run(ReleaseHoldOperator, **hold)["released"] == []
    assert hook.subscriptions(topic) == ()


def test_a_hold_that_new_partitions_got_later_still_waits_for_its_first_window(topic, hook, written):
    run(PulsarCreateTopicOperator, topic=topic, partitions=1)
    edges = [datetime.now(UTC) - timedelta(seconds=1)]
    for partitions in (1, 2):
        run(PulsarUpdatePartitionsOperator, topic=topic, partitions=partitions)
        written(topic, 10)
        edges.append(datetime.now(UTC))
        _until(lambda: datetime.now(UTC) > edges[-1] + timedelta(milliseconds=5))
    hold = {"source": PulsarSource(topic), "reader": "d.read"}
    first = hook.position_at(f"{topic}-partition-0", edges[0])
    hook.place_hold(HoldRequest(hold["source"], "d.read", "d.read", first, edges[0]))
    assert run(HoldRetentionOperator, **hold, at=edges[1].isoformat())["placed"] == [f"{topic}-partition-1"]
    with open_journal() as journal:
        cover_without_spark(journal, hold["source"], Window(edges[1], edges[2]), "d.read", hook.options())
    done = run(MoveHoldOperator, **hold, basis=PublishTime(timedelta(0)))
    assert done == {"hold": "d.read", "moved": [], "reason": "the first window it holds is not covered"}
    (found,) = hook.holds(hold["source"])
    assert (found.since, len(found.positions)) == (edges[0], 2)


def test_a_hold_that_is_not_there_is_not_moved_in_silence(topic, hook, written):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 1)
    with pytest.raises(SourceNotFound, match=r"hold d\.read on"):
        run(MoveHoldOperator, source=PulsarSource(topic), reader="d.read", at=datetime.now(UTC).isoformat())


def test_a_hold_starts_at_a_cut_of_the_users(topic, hook, written):
    run(PulsarCreateTopicOperator, topic=topic)
    written(topic, 5)
    last = hook.last_message_id(topic)[topic]
    done = run(HoldRetentionOperator, source=PulsarSource(topic), reader="d.read", at=f"{last.ledger}:{last.entry}")
    assert (done["placed"], list(done["cut"])) == ([topic], [topic])
    (found,) = hook.holds(PulsarSource(topic))
    assert found.positions == done["cut"]


def _no_retention(topic):
    from airflow_provider_streams.systems.pulsar.client.admin import changes

    return changes.set_retention(topic, (0, 0))


def test_the_guard_tells_before_data_goes(topic, written, pulsar_server, pulsar_namespace):
    run(PulsarCreateTopicOperator, topic=topic, partitions=2)
    written(topic, 10)
    source = PulsarSource(topic)
    asked = {"source": source, "window_length": HOUR, "max_delay": 2 * HOUR}
    assert run(CheckRetentionOperator, **asked)["risk"] == "safe"
    assert not RetentionRiskSensor(task_id="g", **asked).poke({}).is_done
    # a broker that was asked for the quotas in effect would refuse retention below its default quota now
    pulsar_server.set_retention(pulsar_namespace, minutes=5, megabytes=5)
    pulsar_server.set_retention(pulsar_namespace, minutes=180, megabytes=-1)
    risk = run(CheckRetentionOperator, **asked)
    assert (risk["risk"], risk["held_seconds"], risk["room_seconds"]) == ("loss", 10800, 0)
    partition = run(CheckRetentionOperator, **asked | {"source": PulsarSource(f"{topic}-partition-1")})
    assert (partition["risk"], partition["held_seconds"]) == ("loss", 10800)
    assert RetentionRiskSensor(task_id="g2", **asked).poke({}).is_done
    with pytest.raises(RetentionAtRisk, match="room 0s") as caught:
        run(CheckRetentionOperator, **asked, on_risk="fail")
    assert isinstance(caught.value, AirflowFailException)
    # a hold keeps it
    run(HoldRetentionOperator, source=source, reader="d.read", at="earliest")
    assert run(CheckRetentionOperator, **asked, reader="d.read")["risk"] == "safe"
    assert run(CheckRetentionOperator, **asked, reader="another.reader")["risk"] == "loss"
    run(ReleaseHoldOperator, source=source, reader="d.read")
