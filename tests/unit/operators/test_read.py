from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk import Asset

from airflow_provider_streams import Cuts, ParquetSink, PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.pulsar import PulsarBacklogSensor
from airflow_provider_streams.sensors.window import WindowReadySensor

ORDERS = PulsarSource("shop/orders/events")

HEAVY = ("pyspark", "pyarrow", "numpy", "pulsar", "grpc", "pandas", "deltalake")


@pytest.mark.parametrize("wrong", [{"source": "orders"}, {"basis": "event"}, {"on_loss": "ignore"}])
def test_what_cannot_work_is_refused_when_the_dag_is_parsed(wrong):
    with pytest.raises(InvalidRequest):
        ReadWindowOperator(task_id="read", **{"source": ORDERS, **wrong})


@pytest.mark.parametrize("basis", ["publish", "chained", Cuts("earliest", "latest")])
def test_every_basis_is_taken_by_operator_and_sensor_alike(basis):
    ReadWindowOperator(task_id="read", source=ORDERS, basis=basis)
    WindowReadySensor(task_id="ready", source=ORDERS, basis=basis)


def test_source_and_sink_join_the_users_assets_once():
    mine, sink = Asset("mine"), ParquetSink("/lake/orders")
    operator = ReadWindowOperator(
        task_id="read", source=ORDERS, sink=sink, inlets=[mine], outlets=[mine, Asset(uri=sink.asset_uri)]
    )
    assert operator.inlets == [mine, Asset(uri="pulsar://pulsar_default/shop/orders/events")]
    assert operator.outlets == [mine, Asset(uri="file:///lake/orders")]


def test_a_mapped_read_takes_a_window_for_each_instance():
    mapped = ReadWindowOperator.partial(task_id="read", source=ORDERS, slack=timedelta(0)).expand(
        window=["2026-11-20T10:00Z/2026-11-20T11:00Z", "2026-11-20T11:00Z/2026-11-20T12:00Z"]
    )
    assert mapped.partial_kwargs["slack"] == timedelta(0)


@pytest.mark.parametrize("arguments", [{}, {"topic": "a", "source": ORDERS}])
def test_a_backlog_sensor_takes_a_topic_or_a_source(arguments):
    with pytest.raises(InvalidRequest):
        PulsarBacklogSensor(task_id="b", subscription="s", entries=1, **arguments)


def test_importing_operators_and_sensors_costs_the_dag_processor_nothing_heavy():
    code = f"""
import sys
import airflow.sdk, airflow.triggers.base
before = set(sys.modules)
import airflow_provider_streams.operators.read, airflow_provider_streams.retry
import airflow_provider_streams.sensors.window, airflow_provider_streams.sensors.pulsar
from airflow_provider_streams import ParquetSink, PulsarSource, Window
PulsarSource("orders"), ParquetSink("/lake")
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(sorted(loaded & set({(*HEAVY, "httpx", "sqlalchemy", "alembic")!r})), sorted(
    name for name in {HEAVY!r} if name in sys.modules))
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.splitlines()[-1] == "[] []"
