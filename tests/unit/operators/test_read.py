from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk import DAG, Asset, task

from airflow_provider_streams import (
    CustomSink,
    Cuts,
    DeltaSink,
    IcebergSink,
    ParquetSink,
    PublishTime,
    PulsarSource,
    TableSink,
)
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.pulsar import PulsarBacklogSensor
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.systems.registry import declaration_of, known, load_system

ORDERS = PulsarSource("shop/orders/events")

HEAVY = ("pyspark", "pyarrow", "numpy", "pulsar", "grpc", "pandas", "deltalake")


@pytest.mark.parametrize("wrong", [{"source": "orders"}, {"basis": "events"}, {"on_loss": "ignore"}])
def test_what_cannot_work_is_refused_when_the_dag_is_parsed(wrong):
    with pytest.raises(InvalidRequest):
        ReadWindowOperator(task_id="read", **{"source": ORDERS, "sink": None, **wrong})


@pytest.mark.parametrize(
    "sink", [IcebergSink("shop.orders"), DeltaSink("s3://lake/orders"), TableSink("prod.shop.orders")]
)
def test_a_table_that_keeps_no_undecodable_events_is_refused_when_the_dag_is_parsed(sink):
    with pytest.raises(InvalidRequest, match="keeps no undecodable events with its rows"):
        ReadWindowOperator(task_id="read", source=ORDERS, sink=sink, on_decode_error="quarantine")
    own = CustomSink("shop.sinks:Writer", "/lake/orders")
    for fit in (ParquetSink("/lake/orders"), own, None):
        ReadWindowOperator(task_id="read", source=ORDERS, sink=fit, on_decode_error="quarantine")


@pytest.mark.parametrize("basis", ["publish", "chained", Cuts("earliest", "latest")])
def test_every_basis_is_taken_by_operator_and_sensor_alike(basis):
    ReadWindowOperator(task_id="read", source=ORDERS, basis=basis, sink=None)
    WindowReadySensor(task_id="ready", source=ORDERS, basis=basis)


def test_source_and_sink_join_the_users_assets_once():
    mine, sink = Asset("mine"), ParquetSink("/lake/orders")
    operator = ReadWindowOperator(
        task_id="read", source=ORDERS, sink=sink, inlets=[mine], outlets=[mine, Asset(uri=sink.asset_uri)]
    )
    assert operator.inlets == [mine, Asset(uri="pulsar://pulsar_default/shop/orders/events")]
    assert operator.outlets == [mine, Asset(uri="file:///lake/orders")]


def test_a_mapped_read_takes_a_window_for_each_instance():
    mapped = ReadWindowOperator.partial(
        task_id="read", source=ORDERS, sink=None, basis=PublishTime(timedelta(0))
    ).expand(window=["2026-11-20T10:00Z/2026-11-20T11:00Z", "2026-11-20T11:00Z/2026-11-20T12:00Z"])
    assert mapped.partial_kwargs["basis"] == PublishTime(timedelta(0))


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


def both_operators(**arguments):
    span = {"start": "2026-11-20T10:00Z", "end": "2026-11-20T11:00Z", "window_length": timedelta(minutes=10)}
    yield ReadWindowOperator, {"task_id": "read", "source": ORDERS, **arguments}
    yield BackfillWindowsOperator, {"task_id": "fill", "source": ORDERS, **span, **arguments}


LAKE = ParquetSink("/lake/orders")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"say where the rows go, .*; sink=None reads and proves only"),
        ({"sink": "/lake/orders"}, r"sink must be one like ParquetSink\('/lake/orders'\), got str"),
        ({"sink": ParquetSink}, "sink must be one like"),
        ({"sink": None, "transform": "lake.orders:decode"}, "sink is None"),
        ({"sink": LAKE, "transform": "lake.orders.decode"}, r"'package\.module:function'.*'lake\.orders\.decode'"),
        ({"sink": LAKE, "transform": "lake/orders.py:decode"}, "is the name of a function"),
        ({"sink": LAKE, "transform": both_operators}, "got a function"),
        (
            {"sink": LAKE, "columns": ["value", "publishtime"]},
            "pulsar has no column 'publishtime'; did you mean 'publish_time'",
        ),
        ({"sink": LAKE, "columns": "value, colour"}, "pulsar has no column 'colour'; known: value, key"),
        ({"sink": LAKE, "columns": ["value", "key", "value"]}, "asked for twice"),
        ({"sink": LAKE, "columns": [1]}, "columns are names"),
        ({"sink": LAKE, "spark": "4g"}, "spark is a mapping"),
        ({"sink": LAKE, "spark": {"driver_memmory": "4g"}}, "did you mean 'driver_memory'"),
        ({"sink": LAKE, "spark": {"conf": {"spark.master": "local"}}}, "the connection's host"),
    ],
)
def test_what_cannot_land_is_refused_when_the_dag_is_parsed(arguments, message):
    for operator, given in both_operators(**arguments):
        with pytest.raises(InvalidRequest, match=message):
            operator(**given)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sink": None},
        {"dry_run": True},
        {"dry_run": True, "transform": "lake.orders:decode"},
        {"sink": LAKE, "transform": "lake.orders:decode", "columns": ["value", "message_id"]},
        {"sink": LAKE, "transform": "{{ params.transform }}", "columns": "{{ params.columns }}"},
        {"sink": LAKE, "columns": ["value", "{{ params.column }}"], "spark": {"conf": {"spark.a": "{{ params.a }}"}}},
    ],
)
def test_what_can_land_is_taken_and_templates_are_looked_at_later(arguments):
    for operator, given in both_operators(**arguments):
        assert operator(**given).sink is arguments.get("sink")


def test_what_another_task_gives_is_looked_at_later():
    with DAG("late", schedule=None) as dag:

        @task
        def names() -> list[str]:
            return ["value"]

        ReadWindowOperator(task_id="read", source=ORDERS, sink=LAKE, columns=names())
    assert dag.task_ids == ["names", "read"]


@pytest.mark.parametrize("system", list(known()))
def test_the_known_columns_are_those_of_the_system(system):
    names = declaration_of(system).columns
    options = {"pravega": {"controller": "tcp://c:9090"}, "pulsar": {"service_url": "pulsar://b:6650"}}
    read = load_system(system).from_options(options.get(system, {}))
    assert read.schema(names).names == list(names)
    with pytest.raises(InvalidRequest, match=rf"known: {', '.join(names)}"):
        read.schema(["no such column at all"])
