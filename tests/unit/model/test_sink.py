import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sink import ParquetSink, Sink


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
