import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.parquet.writer import _CODECS
from airflow_provider_streams.model.sinks.sink import DeltaSink, FormatSink, IcebergSink, ParquetSink, Sink
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.windows.claim.overrides import Overrides


@pytest.mark.parametrize("path", ["relative", "s3://bucket/x", "hdfs://x/y", ""])
def test_a_parquet_sink_needs_a_mounted_absolute_path(path):
    with pytest.raises(InvalidRequest, match="absolute path"):
        ParquetSink(path)


def test_a_refused_address_of_a_sink_shows_no_key():
    with pytest.raises(InvalidRequest, match=r"got 's3://\.\.'") as caught:
        ParquetSink("s3://key:canary-6a@bucket/x?secret=canary-6a")
    assert "canary-6a" not in str(caught.value)


def test_a_parquet_sink_survives_json():
    sink = ParquetSink("file:///lake/orders/", compression="snappy")
    assert sink.path == "/lake/orders"
    assert sink.asset_uri == "file:///lake/orders"
    assert ParquetSink.from_json(sink.to_json()) == sink
    assert isinstance(sink, Sink)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("s3://lake/shop/orders", "s3://lake/shop/orders"),
        ("s3a://lake/shop/orders/", "s3://lake/shop/orders"),
        (
            "abfss://lake@shop.dfs.core.windows.net/eu/orders/",
            "abfss://lake@shop.dfs.core.windows.net/eu/orders",
        ),
        ("abfs://lake@shop.dfs.core.windows.net/orders", "abfss://lake@shop.dfs.core.windows.net/orders"),
        ("/lake//shop/./orders/", "file:///lake/shop/orders"),
        ("file:///lake/shop%20orders", "file:///lake/shop%20orders"),
    ],
)
def test_two_spellings_of_a_delta_table_are_one(path, uri):
    sink = DeltaSink(path, "aws_default", widen=True)
    assert sink.asset_uri == uri
    assert DeltaSink.from_json(sink.to_json()) == sink
    assert DeltaSink(uri, "aws_default", widen=True) == sink
    assert isinstance(sink, Sink)


@pytest.mark.parametrize(
    "path",
    [
        *("relative", "", "hdfs://x/y", "file://host/x", "/lake/a%20b", "/lake/a\\b", "/lake/a\tb"),
        *(
            "s3://lake",
            "s3://lake/",
            "s3:/lake/x",
            "s3://lake/a//b",
            "s3://lake/../x",
            "s3://lake/a b",
            "s3://lake/a%20b",
        ),
        *("s3://key:canary-6a@lake/x", "s3://lake/x?secret=canary-6a"),
        *("abfss://lake/x", "abfss://lake@shop/x", "abfss://lake@shop.dfs.core.windows.net", "gs://lake/x"),
        *(
            "abfss://lake:canary-6a@shop.dfs.core.windows.net/x",
            "abfss://lake@shop.dfs.core.windows.net/x?sig=canary-6a",
            "abfss://lake@shop.dfs.core.windows.net/a/../b",
        ),
    ],
)
def test_a_delta_table_is_a_folder_of_a_bucket_or_of_a_mounted_file_system(path):
    with pytest.raises(InvalidRequest, match="folder in a bucket") as caught:
        DeltaSink(path)
    assert "canary-6a" not in str(caught.value)


@pytest.mark.parametrize(
    ("sink", "uri"),
    [
        (IcebergSink("shop.orders", conn_id="iceberg_default"), "iceberg://iceberg_default/shop/orders"),
        (IcebergSink("eu.shop.orders", catalog="prod", widen=True), "iceberg://prod/eu/shop/orders"),
        (IcebergSink("shop.orders", conn_id="lake", catalog="prod", partition_by=None), "iceberg://prod/shop/orders"),
        (IcebergSink("shop.orders"), "iceberg://default/shop/orders"),
    ],
)
def test_an_iceberg_sink_survives_json_and_names_its_table(sink, uri):
    assert sink.asset_uri == uri
    assert IcebergSink.from_json(sink.to_json()) == sink
    assert isinstance(sink, Sink)


@pytest.mark.parametrize("table", ["orders", "", "a..b", ".a", "lake.{topic", "a.b/c", "a b.c", "s3://a.b"])
def test_an_iceberg_table_is_named_with_its_namespace(table):
    with pytest.raises(InvalidRequest, match="named with its namespace"):
        IcebergSink(table)


def test_an_iceberg_sink_refuses_what_it_does_not_know():
    with pytest.raises(InvalidRequest, match="partition_by is"):
        IcebergSink("a.b", partition_by="week")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="no name of a catalog"):
        IcebergSink("a.b", catalog="a/b")


@pytest.mark.parametrize("sink", [ParquetSink, DeltaSink, IcebergSink, TableSink])
@pytest.mark.parametrize("value", ["no", "True", 1, None])
def test_a_boolean_option_of_a_sink_is_a_boolean(sink, value):
    name = "/lake/orders" if sink in (ParquetSink, DeltaSink) else "prod.shop.orders"
    with pytest.raises(InvalidRequest, match="widen is True or False, not"):
        sink(name, widen=value)


def test_an_unknown_codec_is_refused():
    with pytest.raises(InvalidRequest, match="no Parquet codec 'snapy'; did you mean 'snappy'"):
        ParquetSink("/lake/orders", compression="snapy")


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "none", "uncompressed", "lzo"])
def test_known_codecs_are_those_that_arrow_writes(codec, tmp_path):
    known = ParquetSink("/lake/orders", codec).compression
    pq.write_table(pa.table({"n": [1]}), tmp_path / "one.parquet", compression=_CODECS.get(known, known))


@pytest.mark.parametrize("name", ["replan", "full_refresh", "allow_fewer_rows"])
@pytest.mark.parametrize("value", ["yes", "no", 1, None])
def test_an_override_is_a_boolean(name, value):
    with pytest.raises(InvalidRequest, match=f"{name} is True or False, not"):
        Overrides(**{name: value})


def test_an_unknown_overlap_is_refused():
    with pytest.raises(InvalidRequest, match="overlap is 'refuse' or 'replace', not 'yes'"):
        Overrides(overlap="yes")


def test_a_sink_of_a_format_says_where_its_table_is():
    class Unplaced(FormatSink):
        kind = "unplaced"

    with pytest.raises(TypeError, match="location"):
        Unplaced()
