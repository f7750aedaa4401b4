from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.sensors.pulsar import PulsarBacklogSensor
from airflow_provider_streams.triggers.condition import ConditionTrigger

T = "persistent/public/default"


@pytest.fixture
def broker(pulsar_connection):
    pulsar_connection.answers |= {
        f"{T}/orders/partitions": {"partitions": 0},
        f"{T}/orders/stats": {"subscriptions": {"s": {"msgBacklog": 4, "backlogSize": 400}}},
    }
    return pulsar_connection


def sensor(**arguments) -> PulsarBacklogSensor:
    return PulsarBacklogSensor(task_id="b", topic="orders", subscription="s", poke_interval=0.01, **arguments)


def test_a_backlog_that_has_formed_is_returned(broker):
    found = sensor(entries=4).execute({})
    assert found == {"entries": 4, "bytes": 400, "oldest": None, "age_seconds": 0.0}


def test_a_backlog_that_has_not_drained_is_waited_for(broker):
    waiting = sensor(entries=0, direction="at_most")
    assert not waiting.poke({}).is_done
    broker.answers[f"{T}/orders/stats"]["subscriptions"]["s"]["msgBacklog"] = 0
    assert waiting.poke({}).is_done


def test_a_passing_failure_only_postpones_the_answer(broker):
    broker.outage = 100
    assert not sensor(entries=4).poke({}).is_done


def test_a_lasting_one_stops_the_task_with_its_type(broker):
    broker.answers[f"{T}/orders/stats"]["subscriptions"].clear()
    with pytest.raises(SourceNotFound) as caught:
        sensor(entries=4).execute({})
    assert isinstance(caught.value, AirflowFailException)


def test_a_deferrable_sensor_goes_on_asking_in_the_triggerer(broker):
    with pytest.raises(TaskDeferred) as deferred:
        sensor(entries=5, deferrable=True, timeout=30).execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, ConditionTrigger)
    assert trigger.condition["entries"] == 5
    assert deferred.value.timeout == timedelta(seconds=30)


def test_a_deferrable_sensor_does_not_defer_what_is_known_already(broker):
    assert sensor(entries=4, deferrable=True).execute({})["entries"] == 4


def test_airflows_setting_makes_sensors_deferrable(monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    monkeypatch.setenv("AIRFLOW__STREAMS__POLL_INTERVAL", "7")
    made = PulsarBacklogSensor(task_id="b", topic="orders", subscription="s", entries=1)
    assert (made.deferrable, made.poke_interval) == (True, 7)
