import json
from argparse import Namespace

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import CustomSink, DeltaSink, IcebergSink, ParquetSink, TableSink
from airflow_provider_streams.cli.sink_arguments import sink_of
from airflow_provider_streams.errors import InvalidRequest

WINDOW = "2026-11-20T10:00Z/2026-11-20T10:00:10Z"


@pytest.mark.parametrize(
    ("written", "options", "sink"),
    [
        ("parquet:/lake/orders", ["compression=snappy"], ParquetSink("/lake/orders", "snappy")),
        ("delta:s3://lake/orders", ["conn_id=aws_default"], DeltaSink("s3://lake/orders", "aws_default")),
        ("parquet:/lake/orders", ["compression=none", "widen=False"], ParquetSink("/lake/orders", "none", widen=False)),
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
            CustomSink("tests.spark.own_frame_writer:JsonLines", "s3://lake/orders", {"level": "9"}),
        ),
    ],
)
def test_any_sink_is_named_on_the_command_line(written, options, sink):
    assert sink_of(Namespace(path=None, sink=written, sink_option=options)) == sink


@pytest.mark.parametrize("written", ["parquet:/lake/orders", "delta:/lake/orders", "iceberg:a.b", "table:a.b.c"])
@pytest.mark.parametrize("value", ["no", "yes", "0", "none", ""])
def test_a_boolean_option_is_true_or_false(written, value):
    with pytest.raises(InvalidRequest, match=f"widen is true or false, not '{value}'"):
        sink_of(Namespace(path=None, sink=written, sink_option=[f"widen={value}"]))


def test_a_window_is_read_into_any_table_and_again_without_naming_it(streams, no_spark, tmp_path, capsys):
    read = ("read", "fake", "numbers", "--window", WINDOW, "--slack", "0")
    folder = tmp_path / "orders"
    for more in (("--sink", f"delta:{folder}", "--sink-option", "widen=true"), ()):
        streams(*read, *more)
        assert "20 rows, complete" in capsys.readouterr().out
    files = [file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert ds.dataset(max(files, key=lambda file: file.stat().st_mtime)).count_rows() == 20


def test_a_known_reader_keeps_its_value_format_wherever_its_table_is_named(streams, no_spark, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", '{"conn_type": "fake", "extra": {"events": "60", "records": "1"}}')
    typed = ("--value-format", "json", "--value-schema", "n long, shard string")
    folder = tmp_path / "orders"
    ways = (
        ("--path", str(folder), *typed),
        ("--path", str(folder)),
        ("--sink", f"parquet:{folder}", "--sink-option", "widen=true"),
        ("--sink-option", "compression=snappy"),
    )
    for second, more in enumerate(ways):
        window = f"2026-11-20T10:00:{second:02}Z/2026-11-20T10:00:{second + 1:02}Z"
        streams("read", "fake", "numbers", "--window", window, "--slack", "0", *more)
    files = sorted(folder.rglob("*.parquet"), key=lambda file: file.stat().st_mtime)
    assert ds.dataset(files).to_table(columns=["n"]).num_rows == 2 * len(ways)
    last = pq.ParquetFile(files[-1]).metadata.row_group(0).column(0)
    assert last.compression == "SNAPPY"


def test_options_alone_are_of_a_reader_that_has_landed(streams, no_spark, tmp_path, capsys):
    read = ("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--sink-option", "widen=true")
    with pytest.raises(SystemExit):
        streams(*read)
    assert "--sink-option needs --sink: reader 'cli' of" in capsys.readouterr().err


@pytest.mark.parametrize("sink", ["iceberg:shop.orders", "delta:/lake/orders"])
@pytest.mark.parametrize("command", ["read", "backfill", "dry run"])
@pytest.mark.usefixtures("no_spark")
def test_a_mistyped_connection_of_a_table_is_refused_before_the_journal_hears_of_it(
    streams, capsys, monkeypatch, sink, command
):
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_SQL", '{"conn_type": "iceberg"}')
    read = ("read", "fake", "numbers", "--window", WINDOW)
    start, end = WINDOW.split("/")
    backfill = ("backfill", "fake", "numbers", "--start", start, "--end", end, "--window-length", "10s")
    ways = {"read": read, "backfill": backfill, "dry run": (*backfill, "--dry-run")}
    with pytest.raises(SystemExit):
        streams(*ways[command], "--slack", "0", "--sink", sink, "--sink-option", "conn_id=lake_sq")
    assert "connection 'lake_sq' does not exist; did you mean 'lake_sql'?" in capsys.readouterr().err
    streams("coverage", "-o", "json")
    assert "numbers" not in capsys.readouterr().out


def test_a_mistyped_connection_of_a_source_is_refused_with_the_nearest_name(streams, capsys):
    with pytest.raises(SystemExit):
        streams("plan", "fake", "numbers", "--window", WINDOW, "--conn-id", "fake_defalt")
    assert "connection 'fake_defalt' does not exist; did you mean 'fake_default'?" in capsys.readouterr().err


@pytest.fixture
def torn_records(streams, monkeypatch):
    extra = {"events": "60", "records": "1", "torn_every": "5"}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))


@pytest.mark.usefixtures("no_spark", "torn_records")
@pytest.mark.parametrize(("policy", "said"), [("quarantine", "InvalidRequest"), ("fail", "--on-decode-error drop; ")])
def test_a_table_that_keeps_no_undecodable_events_is_never_offered_a_quarantine(
    streams, tmp_path, capsys, policy, said
):
    read = ("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--value-format", "json")
    with pytest.raises(SystemExit):
        streams(
            *(*read, "--value-schema", "n long", "--sink", f"delta:{tmp_path / 'orders'}", "--on-decode-error", policy)
        )
    err = capsys.readouterr().err
    assert said in err
    assert "--on-decode-error quarantine" not in err
    streams("coverage", "-o", "json")
    assert ("numbers" in capsys.readouterr().out) == (policy == "fail"), "refused before anything is planned"


@pytest.mark.usefixtures("no_spark")
def test_a_path_to_a_file_is_said_to_be_one(streams, tmp_path, capsys):
    (tmp_path / "orders").write_text("mine")
    with pytest.raises(SystemExit):
        streams(*("read", "fake", "numbers", "--window", WINDOW, "--slack", "0", "--path", str(tmp_path / "orders")))
    assert "it is a file, or below one: a table is a folder" in capsys.readouterr().err
