"""The example DAGs, run as they are, on real servers; what they land, as other engines read it.

Those that need Airflow's own processes run in `stack`: `backfill_approved`, `daily_from_hours`, `pulsar_new_windows`.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.utils.state import DagRunState

from airflow_provider_streams import Window
from airflow_provider_streams.operators.cuts import RecordCutsOperator
from tests.airflow import shop
from tests.airflow.shop import HOURS, PLACE, TO_BE_PUBLISHED, TORN, Topic, in_folder, places, succeeded
from tests.airflow_versions import RUN_RULE, serialized

pytestmark = [pytest.mark.dagtest, pytest.mark.usefixtures("clock_ahead")]

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
README = EXAMPLES.parent / "README.md"


def example(name: str, dag: str = "dag") -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, dag)


@pytest.mark.pulsar
def test_the_hourly_example_reads_its_partition_and_the_mapped_one_fills_the_others(dag_test, pulsar, shop_orders):
    got = succeeded(dag_test(example("pulsar_hourly"), partition=HOURS[0].start))
    assert (got["rows"], got["window_rule"], got["verdict"]) == (12, RUN_RULE, "complete")
    assert got["window"] == HOURS[0].to_json()
    assert sorted(in_folder(pulsar / "orders", *PLACE)) == places(shop_orders.published(HOURS[0]))

    span = {"start": HOURS[0].start.isoformat(), "end": HOURS[-1].end.isoformat()}
    filled = dag_test(example("backfill_mapped"), run_conf=span)
    assert succeeded(filled, "preview")["windows"] == [str(hour) for hour in HOURS[1:]]
    assert sorted(in_folder(pulsar / "orders", *PLACE)) == places(shop_orders.published(*HOURS)), "each message once"


def test_the_readme_shows_the_example_that_runs():
    shown = README.read_text().split("```python\n")[1].split("```")[0]
    assert shown == (EXAMPLES / "pulsar_hourly.py").read_text()


@pytest.mark.pulsar
def test_the_explicit_example_shows_and_then_reads_the_same_plan(dag_test, pulsar, shop_orders):
    run = dag_test(example("pulsar_explicit_window"), run_conf={"window": str(HOURS[1])})
    shown, read = (succeeded(run, name) for name in ("show", "read"))
    assert (shown["verdict"], read["verdict"]) == ("planned", "complete")
    assert shown["fingerprint"] == read["fingerprint"]
    assert sorted(in_folder(pulsar / "orders-by-hand", *PLACE)) == places(shop_orders.published(HOURS[1]))


@pytest.mark.pulsar
def test_the_typed_example_lands_fields_and_keeps_what_is_none_aside(dag_test, pulsar, shop_orders):
    got = succeeded(dag_test(example("pulsar_typed"), partition=HOURS[-1].start))
    wanted = [one.number for one in shop_orders.published(HOURS[-1]) if one.number != TORN]
    assert got["rows"] == len(wanted)
    assert sorted(in_folder(pulsar / "orders_typed", "number")) == [(number,) for number in wanted]


@pytest.mark.pulsar
def test_the_hours_of_a_day_are_landed_by_the_example_of_a_daily_report(dag_test, pulsar, shop_orders):
    """That the day then starts: in `stack`, and by the scheduler's rule in `test_daily_from_hours`."""
    got = succeeded(dag_test(example("daily_from_hours", "hourly"), partition=HOURS[2].start))
    assert (got["rows"], got["window"]) == (12, HOURS[2].to_json())


@pytest.mark.parametrize(
    "path",
    sorted(path for path in EXAMPLES.glob("*.py") if path.stem != "run_demo"),
    ids=lambda path: path.stem,
)
def test_every_example_is_a_dag_that_airflow_can_store(path):
    assert serialized(example(path.stem))["dag"]["dag_id"] == path.stem


@pytest.fixture
def store(pulsar, seaweed_server, lake_folder, monkeypatch) -> Any:
    """A store and a catalog, where the examples' connections lead; the catalog, as another reader opens it."""
    from pyiceberg.catalog import load_catalog

    catalog = {"conn_type": "iceberg", "extra": seaweed_server.catalog_properties}
    for name in ("ICEBERG_DEFAULT", "LAKE_DEMO"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(catalog))
    extra = {"endpoint_url": seaweed_server.url, "region_name": "us-east-1"}
    keys = {"login": seaweed_server.access_key, "password": seaweed_server.secret_key}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({"conn_type": "aws", **keys, "extra": extra}))
    monkeypatch.setenv("LAKE", lake_folder)
    return load_catalog("another", **seaweed_server.catalog_properties)


def numbers_in(catalog: Any, table: str, column: str = "number") -> list[Any]:
    return sorted(catalog.load_table(table).scan().to_arrow()[column].to_pylist())


@pytest.mark.lake
@pytest.mark.pulsar
def test_the_iceberg_example_lands_hours_and_the_upkeep_example_keeps_their_table(dag_test, store, shop_orders):
    dag = example("pulsar_to_iceberg")
    for hour in HOURS[:2]:
        assert succeeded(dag_test(dag, partition=hour.start))["rows"] == 12
    wanted = [one.number for one in shop_orders.published(*HOURS[:2])]
    assert numbers_in(store, "shop.orders") == wanted
    compacted = succeeded(dag_test(example("table_upkeep")), "compact")
    assert compacted["windows"] == 0, "each hour is one small file already"
    assert numbers_in(store, "shop.orders") == wanted


@pytest.mark.lake
@pytest.mark.pulsar
@pytest.mark.usefixtures("store", "shop_orders")
def test_the_example_of_a_check_reports_on_broker_and_catalog(dag_test):
    report = succeeded(dag_test(example("doctor")), "check")
    asked = {finding["area"] for finding in report["findings"] if finding["level"] != "skipped"}
    assert {"connection", "grants", "clock", "retention", "schema", "journal", "spark", "sink"} <= asked
    assert "error" not in {finding["level"] for finding in report["findings"]}
    assert report["exit_status"] == 0


@pytest.mark.lake
@pytest.mark.pulsar
def test_the_example_of_many_tables_lands_each_topic_in_its_own(dag_test, store, shop_orders, pulsar_server):
    other = shop.take_orders(pulsar_server, "shop/orders/Some.Returns", TO_BE_PUBLISHED[::2])
    assert dag_test(example("pulsar_to_tables"), partition=HOURS[0].start).state == DagRunState.SUCCESS
    for topic, table in ((shop_orders, "orders.events"), (other, "orders.some_returns")):
        assert numbers_in(store, table) == [one.number for one in topic.published(HOURS[0])]


@pytest.mark.lake
@pytest.mark.pulsar
def test_the_example_of_a_database_gives_each_of_its_tables_whatever_hour_runs_first(dag_test, store, pulsar_server):
    orders = [(0, "c", 1, "a"), (0, "c", 2, "a"), (1, "u", 1, "b"), (1, "d", 2, None), (1, "c", 3, "a")]
    with shop.database(pulsar_server, "shop/dbz", {"orders": orders, "customers": [(0, "c", 1, "Ann")]}):
        for hour in (HOURS[1], HOURS[0], HOURS[1]):
            run = dag_test(example("cdc_database"), partition=hour.start)
            assert run.state == DagRunState.SUCCESS
    for table, wanted in (("orders", {1: "b", 3: "a"}), ("customers", {1: "Ann"})):
        rows = store.load_table(f"database.{table}").scan().to_arrow()
        assert dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)) == wanted


@pytest.mark.lake
@pytest.mark.pulsar
def test_the_delta_example_lands_rows_that_another_reader_finds(
    dag_test, store, shop_orders, lake_folder, seaweed_server
):
    options = {
        "AWS_ENDPOINT_URL": seaweed_server.url,
        "AWS_ACCESS_KEY_ID": seaweed_server.access_key,
        "AWS_SECRET_ACCESS_KEY": seaweed_server.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    lands_in_delta(dag_test, shop_orders, f"{lake_folder}/orders", options)


@pytest.fixture
def container(pulsar, azurite, monkeypatch) -> Any:
    """A store of Azure, where the example's connection leads."""
    told = {"conn_type": "wasb", "login": "shop", "password": azurite.key, "extra": azurite.address}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(told))
    monkeypatch.setenv("LAKE", f"{azurite.folder}/by-airflow")
    return azurite


@pytest.mark.slow
@pytest.mark.lake
@pytest.mark.pulsar
def test_the_delta_example_lands_in_an_azure_container(dag_test, shop_orders, container, caplog):
    options = {
        "AZURE_STORAGE_ACCOUNT_NAME": "shop",
        "AZURE_STORAGE_ACCOUNT_KEY": container.key,
        "AZURE_STORAGE_ENDPOINT": container.url,
        "AZURE_ALLOW_HTTP": "true",
    }
    lands_in_delta(dag_test, shop_orders, f"{container.folder}/by-airflow/orders", options)
    assert container.key not in caplog.text


def lands_in_delta(dag_test: Any, shop_orders: Topic, path: str, options: dict[str, str]) -> None:
    from deltalake import DeltaTable

    assert succeeded(dag_test(example("pulsar_to_delta"), partition=HOURS[0].start))["rows"] == 12
    rows = DeltaTable(path, storage_options=options).to_pyarrow_table()
    assert sorted(rows["number"].to_pylist()) == [one.number for one in shop_orders.published(HOURS[0])]


@pytest.mark.lake
@pytest.mark.pulsar
def test_the_demo_of_pulsar_lands_the_window_of_its_run(dag_test, store, pulsar_server):
    pulsar_server.create_namespace("public/demo")
    topic = shop.take_orders(pulsar_server, "public/demo/orders", TO_BE_PUBLISHED)
    succeeded(dag_test(example("pulsar_demo"), run_conf={"window": str(HOURS[0])}))
    assert numbers_in(store, "demo.orders") == [one.number for one in topic.published(HOURS[0])]
    store.drop_table("demo.orders")
    pulsar_server.delete_namespace("public/demo")


@pytest.mark.lake
@pytest.mark.pravega
def test_the_pravega_example_lands_what_lies_between_the_cuts_that_its_recorder_took(
    dag_test, store, pravega_server, pravega
):
    pravega_server.create_scope("factory")
    stream = pravega_server.create_stream("factory", "readings")
    recorder = example("pravega_to_iceberg", "recorder")
    shop.write_between_cuts(
        dag_test, recorder, pravega_server, stream, lambda n: b'{"sensor": "s%02d", "celsius": %d.5}' % (n, n)
    )
    for number, edge in enumerate(shop.EDGES[:2]):
        got = succeeded(dag_test(example("pravega_to_iceberg"), partition=edge))
        assert (got["rows"], got["basis"], got["window_rule"]) == (shop.EACH, "append", RUN_RULE)
        names = [f"s{n:02}" for n in range(shop.EACH * (number + 1))]
        assert numbers_in(store, "factory.readings", "sensor") == names


@pytest.mark.lake
@pytest.mark.pravega
def test_the_demo_of_pravega_lands_the_window_of_its_run(dag_test, store, pravega_server, pravega):
    from airflow.sdk import DAG

    pravega_server.create_scope("demo")
    stream = pravega_server.create_stream("demo", "orders")
    with DAG("demo_recorder", schedule=None) as recorder:  # `make demo-pravega` records from another thread
        RecordCutsOperator(task_id="record", sources=example("pravega_demo").get_task("read").source)
    order = b'{"number": %d, "customer": "c", "country": "NL", "cents": 5, "note": ""}'
    shop.write_between_cuts(dag_test, recorder, pravega_server, stream, lambda n: order % n)
    succeeded(dag_test(example("pravega_demo"), run_conf={"window": str(Window(*shop.EDGES[1:3]))}))
    assert numbers_in(store, "demo.orders") == list(range(shop.EACH, 2 * shop.EACH))
    store.drop_table("demo.orders")
