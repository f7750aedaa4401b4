"""The example DAGs, run as they are, on the fake system: only the source and the sink's folder are replaced."""

from __future__ import annotations

import importlib.util
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

pytestmark = pytest.mark.dagtest

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
HOUR = Window(EPOCH, EPOCH + timedelta(hours=1))


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dag


def on_the_fake_system(dag: Any, **settings: Any) -> Any:
    for task in dag.tasks:
        task.source, task.inlets = FakeSource("numbers"), []
        for name, value in settings.items():
            setattr(task, name, value)
    return dag


def test_the_hourly_example_waits_and_reads(dag_test, fake, spark_stand_in):
    fake(events=100, interval_ms=60_000)
    # a partition cannot be given to dag.test(): the window is named instead
    run = dag_test(on_the_fake_system(example("pulsar_hourly"), window=HOUR))
    assert run.state == DagRunState.SUCCESS
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["rows"] == 120
    (spec,) = spark_stand_in.specs
    assert spec.sink == ParquetSink("/lake/orders")


def test_the_explicit_example_shows_and_then_reads_the_same_plan(dag_test, fake, spark_stand_in):
    fake(events=100, interval_ms=60_000)
    dag = on_the_fake_system(example("pulsar_explicit_window"), columns=None)
    run = dag_test(dag, run_conf={"window": str(HOUR)})
    assert run.state == DagRunState.SUCCESS
    shown, read = (run.get_task_instance(name).xcom_pull(task_ids=name) for name in ("show", "read"))
    assert (shown["verdict"], read["verdict"]) == ("planned", "complete")
    assert shown["fingerprint"] == read["fingerprint"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("pulsar_*.py")), ids=lambda path: path.stem)
def test_every_example_is_a_dag_that_airflow_can_store(path):
    from airflow.serialization.serialized_objects import DagSerialization

    assert DagSerialization.to_dict(example(path.stem))["dag"]["dag_id"] == path.stem
