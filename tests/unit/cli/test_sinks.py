from argparse import Namespace

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams import DeltaSink, IcebergSink, OwnSink, ParquetSink, TableSink
from airflow_provider_streams.cli.sinks import sink_of

WINDOW = "2026-11-20T10:00Z/2026-11-20T10:00:10Z"


@pytest.mark.parametrize(
    ("written", "options", "sink"),
    [
        ("parquet:/lake/orders", ["compression=snappy"], ParquetSink("/lake/orders", "snappy")),
        ("delta:s3://lake/orders", ["conn_id=aws_default"], DeltaSink("s3://lake/orders", "aws_default")),
        ("delta:/lake/orders", ["widen=true"], DeltaSink("/lake/orders", widen=True)),
        (
            "iceberg:shop.orders",
            ["conn_id=lake", "partition_by=none", "widen=false"],
            IcebergSink("shop.orders", "lake", partition_by=None),
        ),
        ("table:prod.shop.orders", ["using=iceberg"], TableSink("prod.shop.orders", using="iceberg")),
        (
            "airflow_provider_streams.lake.parquet.writer:ParquetWriter:/lake/orders",
            [],
            ParquetSink("/lake/orders"),
        ),
        (
            "tests.spark.own_frame_writer:JsonLines:s3://lake/orders",
            ["level=9"],
            OwnSink("tests.spark.own_frame_writer:JsonLines", "s3://lake/orders", {"level": "9"}),
        ),
    ],
)
def test_any_sink_is_named_on_the_command_line(written, options, sink):
    assert sink_of(Namespace(path=None, sink=written, sink_option=options)) == sink


def test_a_window_is_read_into_any_table_and_again_without_naming_it(streams, no_spark, tmp_path, capsys):
    read = ("read", "fake", "numbers", "--window", WINDOW, "--slack", "0")
    folder = tmp_path / "orders"
    for more in (("--sink", f"delta:{folder}", "--sink-option", "widen=true"), ()):
        streams(*read, *more)
        assert "20 rows, complete" in capsys.readouterr().out
    files = [file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert ds.dataset(max(files, key=lambda file: file.stat().st_mtime)).count_rows() == 20
