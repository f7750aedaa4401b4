"""What Pravega's sensors and operators refuse when a DAG is parsed, and what their triggers carry."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_provider_streams import PravegaSource
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.operators import pravega as operators
from airflow_provider_streams.sensors import pravega as sensors
from airflow_provider_streams.sensors.pravega import aware
from airflow_provider_streams.triggers.pravega import (
    BacklogReached,
    PravegaCutTrigger,
    PravegaStateTrigger,
    SegmentsSealed,
    StreamSealed,
    WatermarkReached,
    condition_from_json,
    condition_to_json,
)

SOURCE = PravegaSource("shop/orders", conn_id="other")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "condition",
    [
        SegmentsSealed(("0.#epoch.0", "shop/orders/1.#epoch.1")),
        StreamSealed(),
        BacklogReached({"shop/orders/0.#epoch.0": "12"}, 100, "at_most"),
        BacklogReached(None, 0),
        WatermarkReached(1_795_000_000_000),
    ],
)
def test_a_condition_survives_a_triggers_serialization(condition):
    data = json.loads(json.dumps(condition_to_json(condition)))
    assert condition_from_json(data) == condition
    trigger = PravegaStateTrigger("c", "shop/orders", data, 5)
    path, arguments = trigger.serialize()
    assert path == f"{PravegaStateTrigger.__module__}.{PravegaStateTrigger.__qualname__}"
    assert PravegaStateTrigger(**json.loads(json.dumps(arguments))).serialize() == (path, arguments)


def test_the_trigger_of_recorded_cuts_carries_an_aware_time():
    sensor = sensors.PravegaCutAvailableSensor(task_id="c", source=SOURCE, moment=NOON, poke_interval=3)
    path, arguments = sensor.trigger({}).serialize()
    assert path == f"{PravegaCutTrigger.__module__}.{PravegaCutTrigger.__qualname__}"
    assert arguments == {"conn_id": "other", "stream": "shop/orders", "moment": NOON.isoformat(), "poll_interval": 3}


@pytest.mark.parametrize(("unit", "noted"), [("s", 1_795_176_000), ("ms", 1_795_176_000_000)])
def test_a_watermark_is_waited_for_in_the_writers_unit(unit, noted):
    source = PravegaSource("shop/orders", event_time_unit=unit)
    sensor = sensors.PravegaWatermarkSensor(task_id="w", source=source, moment=NOON)
    assert sensor.condition(None) == WatermarkReached(noted)
    later = sensors.PravegaWatermarkSensor(task_id="w", source=source, moment=NOON + timedelta(microseconds=1))
    assert later.condition(None) == WatermarkReached(noted + 1), "not before it"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (sensors.PravegaStreamSealedSensor, {}),
        (sensors.PravegaStreamSealedSensor, {"stream": "a/b", "source": SOURCE}),
        (sensors.PravegaBacklogSensor, {"stream": "a/b", "bytes": -1}),
        (sensors.PravegaBacklogSensor, {"stream": "a/b", "bytes": 1, "direction": "above"}),
        (operators.PravegaSealStreamOperator, {}),
        (operators.PravegaScaleOperator, {"stream": "a/b"}),
        (operators.PravegaScaleOperator, {"stream": "a/b", "segments": 2, "split": "0.#epoch.0"}),
        (operators.PravegaCreateStreamOperator, {"stream": "a/b", "if_exists": "replace"}),
        (operators.PravegaCreateStreamOperator, {"stream": "a/b", "segments": 0}),
    ],
)
def test_what_cannot_work_is_refused_when_the_dag_is_parsed(kind, arguments):
    with pytest.raises(InvalidRequest):
        kind(task_id="t", **arguments)


def test_a_time_is_aware():
    assert aware("2026-11-20T12:00Z") == aware(NOON) == aware("2026-11-20 13:00:00+01:00")
    assert aware(NOON.astimezone(timezone(timedelta(hours=1)))) == NOON
    for wrong in ("noon", "2026-11-20T12:00", datetime(2026, 11, 20)):  # noqa: DTZ001 - what is refused
        with pytest.raises(InvalidWindow):
            aware(wrong)


def test_parsing_a_dag_loads_no_client():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import airflow.sdk; airflow.sdk.BaseOperator, airflow.sdk.BaseSensorOperator\n"
        "before |= set(sys.modules)\n"
        "from airflow_provider_streams.sensors.pravega import PravegaBacklogSensor as S\n"
        "from airflow_provider_streams.operators.pravega import PravegaScaleOperator, PravegaCreateStreamOperator\n"
        "S(task_id='a', stream='a/b', bytes=1); PravegaScaleOperator(task_id='b', stream='a/b', segments=2)\n"
        "PravegaCreateStreamOperator(task_id='c', stream='a/b', segments=2)\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new & {'grpc', 'google', 'pyarrow', 'numpy', 'pyspark'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"
