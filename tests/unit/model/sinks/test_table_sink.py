import pytest

from airflow_provider_streams import CustomSink, TableSink
from airflow_provider_streams.airflow_runtime.openlineage import table_name
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.registry import sink_from_json, writer_type, writes_files
from airflow_provider_streams.model.sinks.placeholders import sink_for
from airflow_provider_streams.model.sinks.sink import Sink


def test_a_table_of_sparks_survives_json_and_has_one_name():
    sink = TableSink("prod.shop.orders", partition_by="day", widen=True, using="iceberg")
    assert isinstance(sink, Sink)
    assert sink_from_json(sink.to_json()) == sink
    assert sink.asset_uri == TableSink("prod.shop.orders").asset_uri == "spark-table://prod/shop/orders"
    assert table_name(sink) == ("spark-table://prod", "shop.orders")
    assert writer_type(sink.kind).__name__ == "SparkTableWriter"
    assert not writes_files(sink)


def test_there_is_a_table_for_each_topic():
    every = TableSink("prod.shop.{topic}", widen=True)
    assert every.asset_uri == "spark-table://prod/shop/*"
    assert sink_for(every, {"topic": "Orders.V1"}) == TableSink("prod.shop.orders_v1", widen=True)


@pytest.mark.parametrize("table", ["orders", "shop.orders", "prod..orders", "prod.shop.`orders`", "a.b.c; drop d"])
def test_a_table_is_named_with_its_catalog_and_namespace(table):
    with pytest.raises(InvalidRequest, match="catalog and namespace"):
        TableSink(table)


@pytest.mark.parametrize("wrong", [{"partition_by": "month"}, {"using": "iceberg; drop"}])
def test_an_unknown_option_of_a_table_is_refused(wrong):
    with pytest.raises(InvalidRequest, match=r"table prod\.shop\.orders"):
        TableSink("prod.shop.orders", **wrong)


@pytest.mark.parametrize(
    ("target", "uri"),
    [("/lake/my orders", "file:///lake/my%20orders"), ("s3://lake/orders", "s3://lake/orders")],
)
def test_ones_own_sink_survives_json(target, uri):
    sink = CustomSink("tests.spark.own_frame_writer:JsonLines", target, {"level": "9"})
    assert isinstance(sink, Sink)
    assert sink_from_json(sink.to_json()) == sink
    assert sink.asset_uri == uri
    assert hash(sink) == hash(CustomSink(sink.kind, target, {"level": "9"}))
