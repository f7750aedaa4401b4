from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from openlineage.client.serde import Serde

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink, PravegaSource, PulsarSource
from airflow_provider_streams.airflow_runtime.openlineage import dataset_of_asset, datasets, run_facets, table_name
from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range, SourceRef, Split
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.operators.read import ReadWindowOperator

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
ORDERS, CLICKS = "persistent://shop/web/orders", "persistent://shop/web/clicks"
SOURCE = PulsarSource([ORDERS, CLICKS])
SINK = ParquetSink("/lake/orders")


def position(entry):
    return Position.of(7, entry, -1)


def read_into(sink):
    """What a read with such a table says of itself."""
    return SimpleNamespace(source_key="key", landing=Landing(sink), target="" if sink is None else sink.asset_uri)


def make(sink=SINK) -> list[tuple[Any, Plan, Landed]]:
    shards = [f"{ORDERS}-partition-0", f"{ORDERS}-partition-1", CLICKS]
    ranges = tuple(Range(shard, position(0), position(10), 100, 10) for shard in shards)
    splits = tuple(Split(i, shard, position(0), position(10), 100) for i, shard in enumerate(shards))
    cut = Cut.from_json(dict.fromkeys(shards, "7:0:-1"))
    window = Window(START, START + timedelta(hours=1))
    source = SourceRef("pulsar", "standalone", (ORDERS, CLICKS))
    plan = Plan("d.read", source, window, "publish", None, cut, cut, ranges, splits, Estimate(300), START, cut)
    reports = tuple(SplitReceipt(i, rows=i + 1, bytes=10, entries=10) for i in range(3))
    columns = (("value", "binary"), ("event_time", "timestamp"))
    return [(read_into(sink), plan, Landed(Receipt(plan.fingerprint, reports, 1.0, "complete"), 6, columns))]


def test_each_topic_is_an_input_with_the_exact_ranges_read():
    inputs, _ = datasets(SOURCE, make())
    facets = {one.name: json.loads(Serde.to_json(one.facets["streamsRanges"]))["facts"] for one in inputs}
    assert {one.namespace for one in inputs} == {"pulsar://pulsar_default"}
    assert list(facets) == ["shop/web/orders", "shop/web/clicks"]
    assert [(one["shard"], one["start"], one["end"], one["rows"]) for one in facets["shop/web/orders"]] == [
        (f"{ORDERS}-partition-0", "7:0:-1", "7:10:-1", 1),
        (f"{ORDERS}-partition-1", "7:0:-1", "7:10:-1", 2),
    ]


def test_the_table_is_the_output_with_its_rows():
    _, (table,) = datasets(SOURCE, make())
    assert (table.namespace, table.name) == ("file", "/lake/orders")
    assert json.loads(Serde.to_json(table.outputFacets["outputStatistics"]))["rowCount"] == 6
    assert datasets(SOURCE, make(None))[1] == []


@pytest.mark.parametrize(("written", "told"), [(2, {"rowCount": 2}), (None, None)])
def test_rows_that_a_transform_left_out_are_not_told(written, told):
    """Unknown rows are not told either."""
    ((read, plan, landed),) = make()
    _, (table,) = datasets(SOURCE, [(read, plan, replace(landed, written=written))])
    facet = table.outputFacets.get("outputStatistics")
    assert (facet and {"rowCount": facet.rowCount}) == told


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        (DeltaSink("s3a://lake/shop/orders"), ("s3://lake", "shop/orders")),
        (DeltaSink("/lake/shop orders"), ("file", "/lake/shop orders")),
        (SINK, ("file", "/lake/orders")),
    ],
)
def test_a_table_is_named_as_others_name_it(sink, name):
    from openlineage.client.naming import dataset

    assert table_name(sink) == name
    if name[0] != "file":
        known = dataset.S3("lake", "shop/orders")
        assert (known.get_namespace(), known.get_name()) == name


def test_the_table_tells_its_columns_and_the_rows_that_it_got():
    ((read, plan, landed),) = make()
    _, (table,) = datasets(SOURCE, [(read, plan, landed), (read, plan, replace(landed, written=2))])
    assert json.loads(Serde.to_json(table.outputFacets["outputStatistics"]))["rowCount"] == 6 + 2
    told = json.loads(Serde.to_json(table.facets["schema"]))["fields"]
    assert [(one["name"], one["type"]) for one in told] == [("value", "binary"), ("event_time", "timestamp")]


@pytest.mark.parametrize(
    "sink",
    [DeltaSink("/lake/orders"), IcebergSink("shop.orders"), TableSink("prod.shop.orders")],
    ids=lambda one: one.kind,
)
def test_a_table_that_keeps_the_edges_of_windows_tells_them_too(sink):
    _, (table,) = datasets(SOURCE, make(sink))
    told = json.loads(Serde.to_json(table.facets["schema"]))["fields"]
    edges = [("window_start", "timestamp"), ("window_end", "timestamp")]
    assert [(one["name"], one["type"]) for one in told][-2:] == edges


def test_a_dry_run_tells_what_it_would_read():
    ((read, plan, _),) = make()
    (orders, _), (table,) = datasets(SOURCE, [(read, plan, None)])
    assert "rows" not in json.loads(Serde.to_json(orders.facets["streamsRanges"]))["facts"][0]
    assert (table.facets, table.outputFacets) == ({}, {})


def test_the_run_tells_its_window_and_plan():
    ((read, plan, receipt),) = make()
    facts = json.loads(Serde.to_json(run_facets([(read, plan, receipt)])["streamsWindow"]))["facts"]
    assert (facts["window"], facts["fingerprint"], facts["verdict"]) == (
        plan.window.to_json(),
        plan.fingerprint,
        "complete",
    )


def test_an_asset_and_a_read_name_the_same_dataset():
    (orders, _), _ = datasets(SOURCE, make(None))
    found = dataset_of_asset(Asset(uri=SOURCE.only(ORDERS).asset_uri), None)
    assert (found.namespace, found.name) == (orders.namespace, orders.name)


@pytest.mark.parametrize("source", [SOURCE, PravegaSource(["shop/a", "shop/b"])], ids=lambda one: one.system)
def test_an_asset_of_several_names_no_dataset_that_no_read_has(source):
    assert dataset_of_asset(Asset(uri=source.asset_uri), None) is None


def test_an_asset_of_a_catalogs_table_is_named_as_the_catalog_does():
    found = dataset_of_asset(Asset(uri="iceberg://lake_default/shop/orders"), None)
    assert (found.namespace, found.name) == ("iceberg://lake_default", "shop.orders")


def test_the_operator_hands_its_last_read_to_the_listener(monkeypatch):
    # stands in for the provider of OpenLineage, which would make every test a lineage job
    extractors = SimpleNamespace(OperatorLineage=lambda **given: given)
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", SimpleNamespace(extractors=extractors))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    operator = ReadWindowOperator(task_id="read", source=SOURCE, sink=SINK)
    assert operator.get_openlineage_facets_on_complete(None) is None
    operator._reads = make()
    lineage = operator.get_openlineage_facets_on_complete(None)
    assert len(lineage["inputs"]) == 2
    assert lineage["run_facets"].keys() == {"streamsWindow"}


@pytest.mark.parametrize("names", [("scope/stream",)])
def test_segments_of_a_stream_are_ranges_of_one_input(names):
    ((read, plan, receipt),) = make(None)
    plan = replace(plan, source=SourceRef("pravega", "c", names))
    (stream,), _ = datasets(PravegaSource("scope/stream"), [(read, plan, receipt)])
    assert (stream.namespace, stream.name) == ("pravega://pravega_default", "scope/stream")
