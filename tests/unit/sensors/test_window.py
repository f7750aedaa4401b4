"""A sensor whose trigger the scheduler creates: what Airflow stores of it, and what the triggerer makes of that."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.trigger import Trigger
from airflow.sdk import DAG, Asset, BaseOperator

from airflow_provider_streams import Cuts, PublishTime, PulsarSource, Window
from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.timetables import window_timetable
from airflow_provider_streams.triggers.window import RunWindowReadyTrigger
from tests.airflow_versions import deserialized, needs, serialized, trigger_argument

HOUR = timedelta(hours=1)
WINDOW = Window(EPOCH, EPOCH + HOUR)
INTERVAL = {"data_interval_start": EPOCH, "data_interval_end": EPOCH + HOUR}
PARTITION = {"partition_date": EPOCH}
STARTS_THERE = needs(Feature.START_FROM_TRIGGER)


def sensor(**arguments: Any) -> WindowReadySensor:
    given = {"task_id": "ready", "source": FakeSource("numbers"), "poke_interval": 0.01, **arguments}
    return WindowReadySensor(start_from_trigger=True, **{"basis": PublishTime(timedelta(0)), **given})


def as_the_triggerer_makes_it(task: WindowReadySensor) -> RunWindowReadyTrigger:
    """By way of the serialized DAG and the trigger's encrypted row."""
    dag = task.dag if task.has_dag() else DAG("one", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC))
    if not task.has_dag():
        dag.add_task(task)
    stored = deserialized(json.loads(json.dumps(serialized(dag)))).get_task("ready")
    assert stored.start_from_trigger is True
    asked = stored.start_trigger_args
    assert (asked.next_method, asked.timeout) == ("execute_complete", timedelta(seconds=task.timeout))
    assert asked.trigger_cls == f"{RunWindowReadyTrigger.__module__}.{RunWindowReadyTrigger.__qualname__}"
    row = Trigger._decrypt_kwargs(Trigger.encrypt_kwargs(asked.trigger_kwargs))
    trigger = RunWindowReadyTrigger(**{name: trigger_argument(value) for name, value in row.items()})
    trigger.task_instance = SimpleNamespace(task_id="ready", task=stored)
    return trigger


async def event_of(trigger: RunWindowReadyTrigger) -> dict[str, Any]:
    try:
        (event,) = [event.payload async for event in trigger.run()]
    finally:
        await trigger.cleanup()
    return event


@pytest.fixture
def numbers(monkeypatch):
    """Ten days of numbers, complete."""
    extra = {"events": "240", "interval_ms": "3600000"}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))


@STARTS_THERE
@pytest.mark.parametrize(
    ("arguments", "context"),
    [
        ({"window": WINDOW}, {}),
        ({"window": str(WINDOW)}, PARTITION),
        ({"window": "{{ dag_run.conf['window'] }}"}, {"dag_run": SimpleNamespace(conf={"window": str(WINDOW)})}),
        ({"window": "{{ params.day }}T10:00Z/{{ params.day }}T11:00Z"}, {"params": {"day": "2026-11-20"}, **PARTITION}),
        ({"window_length": HOUR}, PARTITION | INTERVAL),
        ({}, INTERVAL),
    ],
)
async def test_the_triggerer_resolves_the_window_that_a_worker_would(numbers, arguments, context):
    task = sensor(**arguments)
    trigger = as_the_triggerer_makes_it(task)
    trigger.render_template_fields(context)
    event = await event_of(trigger)
    assert event == {"status": "success", "window": WINDOW.to_json()}
    assert task.execute_complete({}, event) == {"window": WINDOW.to_json()}, "a value, as without start_from_trigger"

    task.render_template_fields(context)
    assert task.trigger(context).question == {"window": str(WINDOW), "basis": trigger.basis}


def hours_of(zone: str) -> Any:
    """Partitions that a mapper makes."""
    from airflow.sdk import PartitionedAssetTimetable, StartOfHourMapper

    return PartitionedAssetTimetable(assets=Asset("hours"), default_partition_mapper=StartOfHourMapper(timezone=zone))


@STARTS_THERE
@pytest.mark.parametrize(
    ("schedule", "start", "end"),
    [
        (lambda: window_timetable("@hourly"), EPOCH, EPOCH + HOUR),
        (
            lambda: window_timetable("@daily", "Europe/Berlin"),
            datetime(2026, 11, 20, 23, tzinfo=UTC),
            datetime(2026, 11, 21, 23, tzinfo=UTC),
        ),
        (lambda: hours_of("Asia/Kolkata"), EPOCH + HOUR / 2, EPOCH + 3 * HOUR / 2),
    ],
    ids=["hours", "days of a zone", "hours of a zone of half hours"],
)
async def test_a_window_reaches_to_the_next_partition_of_the_dag(numbers, schedule, start, end):
    """Its length is not given, and the triggerer does not know the timetable."""
    with DAG("partitions", schedule=schedule(), start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        task = sensor()
    trigger = as_the_triggerer_makes_it(task)
    trigger.render_template_fields({"partition_date": start})
    assert await event_of(trigger) == {"status": "success", "window": Window(start, end).to_json()}
    assert task.trigger({"partition_date": start, "dag": dag}).question["window"] == str(Window(start, end))


@STARTS_THERE
@pytest.mark.parametrize(
    ("arguments", "context", "says"),
    [
        ({}, {}, "neither its partition's date nor a data interval"),
        ({}, {"data_interval_start": EPOCH, "data_interval_end": EPOCH}, "data interval is empty"),
        ({}, PARTITION, "add window_length"),
        ({"window": "yesterday"}, INTERVAL, "yesterday"),
        ({"window": "{{ data_interval_start }}/{{ data_interval_end }}"}, PARTITION, "'/'"),
        ({"window": "{{ dag_run.conf['window'] }}"}, {}, "cannot be rendered in the triggerer (UndefinedError)"),
    ],
)
async def test_a_run_without_a_window_fails_typed_and_without_retries(numbers, arguments, context, says):
    task = sensor(**arguments)
    trigger = as_the_triggerer_makes_it(task)
    trigger.render_template_fields(context)
    event = await event_of(trigger)
    assert (event["status"], event["error_type"]) == ("error", "InvalidWindow")
    assert says in event["message"]
    with pytest.raises(InvalidWindow) as raised:
        task.execute_complete({}, event)
    assert not raised.value.retryable


@STARTS_THERE
@pytest.mark.parametrize(
    "basis", ["publish", RecordedCuts(timedelta(seconds=90)), "chained", Cuts("earliest", {"a": "1:2"})]
)
def test_what_airflow_stores_rebuilds_the_trigger(basis):
    source = PulsarSource(["shop/orders/a", "shop/orders/b"])
    task = sensor(source=source, basis=basis, window_length=HOUR, timeout=77)
    trigger = as_the_triggerer_makes_it(task)
    path, arguments = trigger.serialize()
    assert (path, arguments) == (task.start_trigger_args.trigger_cls, task.start_trigger_args.trigger_kwargs)
    assert RunWindowReadyTrigger(**arguments).serialize() == (path, arguments)


@STARTS_THERE
def test_each_sensor_has_its_own_trigger():
    first, second = sensor(window=WINDOW), sensor(window_length=HOUR)
    assert first.start_trigger_args.trigger_kwargs["window"] == str(WINDOW)
    assert second.start_trigger_args.trigger_kwargs["window"] is None
    assert first.deferrable
    plain = WindowReadySensor(task_id="plain", source=FakeSource("numbers"), window=WINDOW)
    assert (plain.start_from_trigger, plain.start_trigger_args) == (False, None)


def test_a_mapped_sensor_starts_in_a_worker():
    with DAG("mapped", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        WindowReadySensor.partial(task_id="ready", source=FakeSource("numbers"), start_from_trigger=True).expand(
            window=[str(WINDOW)]
        )
    stored = deserialized(serialized(dag)).get_task("ready")
    assert stored.start_trigger_args is None, "Airflow could not tell it which of the windows is its own"


@pytest.mark.skipif(has(Feature.START_FROM_TRIGGER), reason="the scheduler of this Airflow starts triggers")
def test_a_scheduler_that_starts_no_triggers_is_asked_for_none():
    task = sensor(window=WINDOW, deferrable=None)
    assert (task.deferrable, task.start_from_trigger, task.start_trigger_args) == (True, False, None)


def test_what_the_scheduler_cannot_start_is_refused_when_the_dag_is_parsed():
    with pytest.raises(InvalidRequest, match="deferrable cannot be False"):
        sensor(window=WINDOW, deferrable=False)
    with (
        DAG("output", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)),
        pytest.raises(InvalidRequest, match="does not know another task's output"),
    ):
        sensor(window=BaseOperator(task_id="other").output)
