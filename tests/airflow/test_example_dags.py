"""The example DAGs, run as they are, on the fake system: only the source and the sink's folder are replaced."""

from __future__ import annotations

import importlib.util
import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.utils.state import DagRunState

from airflow_provider_streams import Json, ParquetSink, PublishTime, Window
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

pytestmark = pytest.mark.dagtest

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
EVERY = sorted([*EXAMPLES.glob("pulsar_*.py"), *EXAMPLES.glob("backfill_*.py")])
HOUR = Window(EPOCH, EPOCH + timedelta(hours=1))


@pytest.fixture(autouse=True)
def lake(tmp_path, monkeypatch) -> Path:
    """The folder of the examples' tables."""
    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    return tmp_path / "lake"


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


def test_the_hourly_example_waits_and_reads(dag_test, fake, spark_stand_in, lake):
    fake(events=100, interval_ms=60_000)
    # a partition cannot be given to dag.test(): the window is named instead
    run = dag_test(on_the_fake_system(example("pulsar_hourly"), window=HOUR))
    assert run.state == DagRunState.SUCCESS
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["rows"] == 120
    (spec,) = spark_stand_in.specs
    assert spec.sink == ParquetSink(f"{lake}/orders")
    assert ParquetTable(spec.sink.path).state().windows == {HOUR}


def test_the_explicit_example_shows_and_then_reads_the_same_plan(dag_test, fake, spark_stand_in):
    fake(events=100, interval_ms=60_000)
    dag = on_the_fake_system(example("pulsar_explicit_window"), columns=None)
    run = dag_test(dag, run_conf={"window": str(HOUR)})
    assert run.state == DagRunState.SUCCESS
    shown, read = (run.get_task_instance(name).xcom_pull(task_ids=name) for name in ("show", "read"))
    assert (shown["verdict"], read["verdict"]) == ("planned", "complete")
    assert shown["fingerprint"] == read["fingerprint"]


DAY = {"start": "2026-11-20T10:00Z", "end": "2026-11-20T14:00Z"}


def test_the_mapped_backfill_reads_each_missing_window_in_a_task_of_its_own(dag_test, fake, spark_stand_in):
    fake(events=300, interval_ms=60_000, head=60)
    dag = example("backfill_mapped")
    for task in (dag.get_task("preview"), dag.get_task("read")):
        settings = task.partial_kwargs if task.task_id == "read" else vars(task)
        settings["source"] = FakeSource("numbers")
        task.inlets = []
    run = dag_test(dag, run_conf=DAY)
    assert run.state == DagRunState.SUCCESS
    assert sorted(spec.plan.window.start.hour for spec in spark_stand_in.specs) == [11, 12, 13]  # in any order
    assert {spec.plan.reader for spec in spark_stand_in.specs} == {"pulsar_hourly.read"}


def test_the_approved_backfill_previews_before_it_asks(dag_test, fake, spark_stand_in):
    """Its question, from the preview's XCom; a person's answer needs the real stack."""
    from jinja2 import Template

    fake(events=300, interval_ms=60_000, head=30)
    dag = example("backfill_approved")
    assert [task.task_id for task in dag.topological_sort()] == ["preview", "approve", "fill"]
    body = dag.get_task("approve").body
    asking = on_the_fake_system(dag.partial_subset(task_ids=["preview"], include_upstream=False))
    asking.dag_id = "backfill_preview"
    run = dag_test(asking, run_conf=DAY)
    assert run.state == DagRunState.SUCCESS
    preview = run.get_task_instance("preview").xcom_pull(task_ids="preview")
    assert spark_stand_in.chunks == []
    question = Template(body).render(ti=SimpleNamespace(xcom_pull=lambda **_: preview))
    assert f"4 windows, {preview['bytes']} bytes in 1 Spark jobs" in question
    assert "no longer holds all of: 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z." in question


@pytest.mark.parametrize(
    "path",
    sorted(path for path in EXAMPLES.glob("*.py") if path.stem != "run_demo"),
    ids=lambda path: path.stem,
)
def test_every_example_is_a_dag_that_airflow_can_store(path):
    from airflow.serialization.serialized_objects import DagSerialization

    assert DagSerialization.to_dict(example(path.stem))["dag"]["dag_id"] == path.stem


def test_the_typed_example_lands_fields_and_keeps_what_is_none_aside(dag_test, fake, spark_stand_in, lake):
    fake(events=100, interval_ms=60_000, records=1, torn_every=100)
    dag = on_the_fake_system(example("pulsar_typed"), window=HOUR)
    for task in dag.tasks:
        task.source = FakeSource("numbers", value=Json("n long, shard string"))
    assert dag.get_task("read").undecodable == Undecodable("quarantine", 0.01)
    run = dag_test(dag)
    assert run.state == DagRunState.SUCCESS
    (spec,) = spark_stand_in.specs
    assert ParquetTable(spec.sink.path).state().windows == {HOUR}
    assert spec.plan.decoding is not None


@pytest.fixture
def store(seaweed_server, lake_folder, monkeypatch) -> Any:
    """A store and a catalog, where the examples' connections lead."""
    catalog = {"conn_type": "iceberg", "extra": seaweed_server.catalog_properties}
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_DEFAULT", json.dumps(catalog))
    extra = {"endpoint_url": seaweed_server.url, "region_name": "us-east-1"}
    keys = {"login": seaweed_server.access_key, "password": seaweed_server.secret_key}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({"conn_type": "aws", **keys, "extra": extra}))
    monkeypatch.setenv("LAKE", lake_folder)
    return seaweed_server


@pytest.mark.lake
@pytest.mark.parametrize("name", ["pulsar_to_iceberg", "pravega_to_iceberg"])
def test_an_iceberg_example_lands_rows_that_another_reader_finds(dag_test, fake, spark_stand_in, store, name: str):
    from pyiceberg.catalog import load_catalog

    fake(events=100, interval_ms=60_000, records=1)
    dag = on_the_fake_system(example(name), window=HOUR, basis=PublishTime())
    for task in dag.tasks:
        task.source = FakeSource("numbers", value=Json("n long, shard string"))
    assert dag_test(dag).state == DagRunState.SUCCESS
    (spec,) = spark_stand_in.specs
    rows = load_catalog("another", **store.catalog_properties).load_table(spec.sink.table).scan().to_arrow()
    assert sorted(rows["n"].to_pylist()) == sorted([*range(60), *range(60)])
    assert set(rows["window_start"].to_pylist()) == {HOUR.start}


@pytest.mark.lake
def test_the_example_of_many_tables_lands_each_topic_in_its_own(dag_test, fake, spark_stand_in, store):
    from pyiceberg.catalog import load_catalog

    fake(events=100, interval_ms=60_000, records=1, streams="Some.Orders,clicks")
    dag = on_the_fake_system(example("pulsar_to_tables"), window=HOUR, basis=PublishTime())
    for task in dag.tasks:
        task.source = FakeSource("*", value=Json("n long, shard string"))
    assert dag_test(dag).state == DagRunState.SUCCESS
    catalog = load_catalog("another", **store.catalog_properties)
    for table in ("orders.some_orders", "orders.clicks"):
        rows = catalog.load_table(table).scan().to_arrow()
        assert sorted(rows["n"].to_pylist()) == sorted([*range(60), *range(60)])


@pytest.mark.lake
def test_the_delta_example_lands_rows_that_another_reader_finds(dag_test, fake, spark_stand_in, store):
    from deltalake import DeltaTable

    fake(events=100, interval_ms=60_000, records=1)
    dag = on_the_fake_system(example("pulsar_to_delta"), window=HOUR)
    for task in dag.tasks:
        task.source = FakeSource("numbers", value=Json("n long, shard string"))
    assert dag_test(dag).state == DagRunState.SUCCESS
    options = {
        "AWS_ENDPOINT_URL": store.url,
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    (spec,) = spark_stand_in.specs
    rows = DeltaTable(spec.sink.path, storage_options=options).to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == sorted([*range(60), *range(60)])


@pytest.fixture
def container(azurite, monkeypatch) -> Any:
    """A store of Azure, where the example's connection leads."""
    told = {"conn_type": "wasb", "login": "shop", "password": azurite.key, "extra": azurite.address}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(told))
    monkeypatch.setenv("LAKE", f"{azurite.folder}/by-airflow")
    return azurite


@pytest.mark.lake
def test_the_delta_example_lands_in_an_azure_container(dag_test, fake, spark_stand_in, container, caplog):
    from deltalake import DeltaTable

    fake(events=100, interval_ms=60_000, records=1)
    dag = on_the_fake_system(example("pulsar_to_delta"), window=HOUR)
    for task in dag.tasks:
        task.source = FakeSource("numbers", value=Json("n long, shard string"))
    assert dag_test(dag).state == DagRunState.SUCCESS
    assert container.key not in caplog.text
    options = {
        "AZURE_STORAGE_ACCOUNT_NAME": "shop",
        "AZURE_STORAGE_ACCOUNT_KEY": container.key,
        "AZURE_STORAGE_ENDPOINT": container.url,
        "AZURE_ALLOW_HTTP": "true",
    }
    (spec,) = spark_stand_in.specs
    rows = DeltaTable(spec.sink.path, storage_options=options).to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == sorted([*range(60), *range(60)])
