"""What Pravega's sensors and operators refuse when a DAG is parsed, and what their triggers carry."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams import PravegaSource
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.operators import epoch
from airflow_provider_streams.operators import pravega as operators
from airflow_provider_streams.sensors import pravega as sensors
from airflow_provider_streams.systems.pravega.operations.conditions import WatermarkReached

SOURCE = PravegaSource("shop/orders", conn_id="other")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(("unit", "noted"), [("s", 1_795_176_000), ("ms", 1_795_176_000_000)])
def test_a_watermark_is_waited_for_in_the_writers_unit(unit, noted):
    source = PravegaSource("shop/orders", event_time_unit=unit)
    sensor = sensors.PravegaWatermarkSensor(task_id="w", source=source, moment=NOON)
    assert sensor.condition() == WatermarkReached(noted)
    later = sensors.PravegaWatermarkSensor(task_id="w", source=source, moment=NOON + timedelta(microseconds=1))
    assert later.condition() == WatermarkReached(noted + 1), "not before it"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (sensors.PravegaStreamSealedSensor, {}),
        (sensors.PravegaStreamSealedSensor, {"stream": "a/b", "source": SOURCE}),
        (sensors.PravegaBacklogSensor, {"stream": "a/b", "bytes": -1}),
        (sensors.PravegaBacklogSensor, {"stream": "a/b", "bytes": 1, "direction": "above"}),
        (sensors.PravegaBacklogSensor, {"stream": "a/b", "bytes": float("nan")}),
        (sensors.PravegaStreamSealedSensor, {"source": PravegaSource(scope="shop")}),
        (sensors.PravegaBacklogSensor, {"source": PravegaSource(["a/b", "a/c"]), "bytes": 1}),
        (epoch.PravegaRollEpochOperator, {"source": PravegaSource(["a/b", "a/c"])}),
        (operators.PravegaSealStreamOperator, {}),
        (operators.PravegaDeleteStreamOperator, {"source": PravegaSource(scope="shop")}),
        (operators.PravegaScaleStreamOperator, {"stream": "a/b"}),
        (operators.PravegaScaleStreamOperator, {"stream": "a/b", "segments": 2, "split": "0.#epoch.0"}),
        (operators.PravegaCreateStreamOperator, {"stream": "a/b", "if_exists": "replace"}),
        (operators.PravegaCreateStreamOperator, {"stream": "a/b", "segments": 0}),
        (operators.PravegaCreateStreamOperator, {"stream": "a/b", "segments": 1 << 40}),
    ],
)
def test_what_cannot_work_is_refused_when_the_dag_is_parsed(kind, arguments):
    with pytest.raises(InvalidRequest):
        kind(task_id="t", **arguments)


@pytest.mark.parametrize("moment", ["noon", "2026-11-20T12:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"])
def test_what_is_no_moment_is_refused_by_sensors_and_operators(moment):
    with pytest.raises(InvalidWindow):
        sensors.PravegaWatermarkSensor(task_id="w", source=SOURCE, moment=moment).trigger({})
    with pytest.raises(InvalidWindow):
        epoch._moment(moment, {})


def test_the_first_and_the_last_moments_are_waited_for():
    for moment in ("0001-01-01T00:00Z", "9999-12-31T23:59:59Z"):
        assert sensors.PravegaWatermarkSensor(task_id="w", source=SOURCE, moment=moment).condition().moment


def test_the_unit_is_said_once():
    by_name = sensors.PravegaWatermarkSensor(task_id="w", stream="a/b", moment=NOON, event_time_unit="us")
    assert by_name.condition() == WatermarkReached(1_795_176_000_000_000)
    with pytest.raises(InvalidRequest, match="only with stream"):
        sensors.PravegaWatermarkSensor(task_id="w", source=SOURCE, moment=NOON, event_time_unit="us")
    with pytest.raises(InvalidRequest, match="event_time_unit is one of"):
        sensors.PravegaWatermarkSensor(task_id="w", stream="a/b", moment=NOON, event_time_unit="ns")


def test_parsing_a_dag_loads_no_client():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import airflow.sdk; airflow.sdk.BaseOperator, airflow.sdk.BaseSensorOperator\n"
        "before |= set(sys.modules)\n"
        "from airflow_provider_streams.sensors.pravega import PravegaBacklogSensor as S\n"
        "from airflow_provider_streams.operators.pravega import PravegaScaleStreamOperator as C\n"
        "from airflow_provider_streams.operators.pravega import PravegaCreateStreamOperator\n"
        "S(task_id='a', stream='a/b', bytes=1); C(task_id='b', stream='a/b', segments=2)\n"
        "PravegaCreateStreamOperator(task_id='c', stream='a/b', segments=2)\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new & {'grpc', 'google', 'pyarrow', 'numpy', 'pyspark'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"
