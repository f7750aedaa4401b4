from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import Cuts, PulsarSource, Window
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.pulsar.operations.conditions import BacklogReached
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.triggers.base import backoff_seconds, pause_seconds
from airflow_provider_streams.triggers.condition import ConditionTrigger
from airflow_provider_streams.triggers.window import WindowReadyTrigger
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

T = "persistent/public/default"
SOURCE = PulsarSource("plain")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAST = Window(NOW - timedelta(hours=2), NOW - timedelta(hours=1))


def window_trigger(basis="publish") -> WindowReadyTrigger:
    question = WindowQuestion(SOURCE, PAST, declaration_of("pulsar").basis(basis))
    return WindowReadyTrigger(source_to_json(SOURCE), question.to_json(), 0.01)


def backlog_trigger(source=SOURCE, **limit) -> ConditionTrigger:
    return ConditionTrigger(source_to_json(source), condition_to_json(BacklogReached("s", **limit)), 0.01)


@pytest.fixture
def broker(pulsar_connection):
    pulsar_connection.answers |= {
        f"{T}/plain/partitions": {"partitions": 0},
        f"{T}/plain/stats": {"subscriptions": {"s": {"msgBacklog": 4, "backlogSize": 400}}},
    }
    return pulsar_connection


async def events(trigger) -> list[dict]:
    try:
        return [event.payload async for event in trigger.run()]
    finally:
        await trigger.cleanup()


@pytest.mark.parametrize(
    "trigger",
    [
        window_trigger(),
        window_trigger("chained"),
        window_trigger(Cuts("earliest", {"a": "1:2"})),
        backlog_trigger(entries=1),
    ],
)
def test_a_trigger_is_rebuilt_from_what_airflow_stores(trigger):
    path, arguments = trigger.serialize()
    assert path == f"{type(trigger).__module__}.{type(trigger).__qualname__}"
    again = type(trigger)(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
    assert "token" not in json.dumps(arguments)


async def test_a_complete_window_fires_once(broker):
    assert await events(window_trigger()) == [{"status": "success", "window": PAST.to_json()}]


async def test_a_backlog_fires_with_what_was_found(broker):
    (event,) = await events(backlog_trigger(entries=4))
    assert (event["status"], event["entries"], event["bytes"]) == ("success", 4, 400)


async def test_a_broker_that_restarts_is_waited_out(broker):
    broker.outage = 3
    (event,) = await events(backlog_trigger(entries=4))
    assert event["status"] == "success"
    assert broker.outage == 0


async def test_each_poll_is_one_request(broker):
    trigger = backlog_trigger(entries=5)
    polled = 0
    ask = trigger.ask

    async def counted() -> Readiness:
        nonlocal polled
        polled += 1
        if polled == 4:
            broker.answers[f"{T}/plain/stats"]["subscriptions"]["s"]["msgBacklog"] = 5
        return await ask()

    trigger.ask = counted
    (event,) = await events(trigger)
    assert event["entries"] == 5
    assert broker.seen == [f"{T}/plain/partitions", *[f"{T}/plain/stats"] * 4]


@pytest.mark.parametrize(
    ("path", "answer", "kind"),
    [
        ("plain/partitions", (404, {"reason": "Topic not found"}), "SourceNotFound"),
        ("plain/partitions", (401, "<html>Authentication required</html>"), "AuthenticationFailed"),
        ("plain/stats", (401, {"reason": "Unauthorized to validateTopicOperation"}), "NotAuthorized"),
        ("plain/stats", {"subscriptions": {}}, "SourceNotFound"),
    ],
)
async def test_a_lasting_refusal_is_an_event_with_its_type(broker, path, answer, kind):
    broker.answers[f"{T}/{path}"] = answer
    (event,) = await events(backlog_trigger(entries=1))
    assert (event["status"], event["error_type"]) == ("error", kind)
    assert "token-5d2c" not in event["message"]


async def test_a_missing_connection_is_an_event_too():
    (event,) = await events(backlog_trigger(PulsarSource("plain", conn_id="nowhere"), entries=1))
    assert event["error_type"] == "InvalidRequest"


def test_no_poll_before_it_can_help():
    answer = Readiness(ready=False, not_before=NOW + timedelta(minutes=10))
    assert pause_seconds(answer, 60, NOW) == 600
    assert pause_seconds(answer, 60, NOW + timedelta(minutes=11)) == 60
    assert pause_seconds(Readiness(ready=False), 60, NOW) == 60


@given(failures=st.integers(1, 1000), interval=st.floats(0.01, 3600))
def test_pauses_after_failures_are_bounded_and_jittered(failures, interval):
    seconds = backoff_seconds(failures, interval)
    assert interval / 2 <= seconds <= max(120, interval)


def test_a_triggerer_loads_neither_arrow_nor_spark():
    code = (
        "import sys, airflow_provider_streams.triggers.condition, airflow_provider_streams.triggers.window; "
        "import airflow_provider_streams.hooks.pulsar, airflow_provider_streams.systems.pulsar.operations.conditions; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pyarrow', 'numpy', 'pyspark', 'pulsar'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"
