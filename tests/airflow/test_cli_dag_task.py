"""`airflow streams .. --dag-id .. --task-id ..` reads as the DAG's own task does."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import textwrap
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import ParquetSink, Window
from airflow_provider_streams.airflow_features import dag_bags
from airflow_provider_streams.cli.commands import doctor
from airflow_provider_streams.cli.parser import get_streams_cli_commands
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.doctor.finding import report_of
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.testing.landing import cover_without_spark, run_without_spark

pytestmark = pytest.mark.dagtest

DAG_FILE = """
from datetime import datetime, timedelta, UTC
from airflow.sdk import DAG
from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.airflow_features import dag_bags

PARAMS = {{"who": "orders", "numbers": "numbers", "year": 2026}}
with DAG("by_hand", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC), params=PARAMS):
    common = {{"window_length": timedelta(minutes=1), "basis": PublishTime(timedelta(0))}}
    ReadWindowOperator(
        task_id="read",
        source=FakeSource("numbers"),
        sink=ParquetSink("{lake}"),
        columns=["value", "number"],
        reader="{{{{ params.who }}}}",
        **common,
    )
    ReadWindowOperator.partial(task_id="each", **common).expand_kwargs(
        [{{"source": FakeSource(name), "sink": ParquetSink("{lake}-" + name)}} for name in ("a", "b")]
    )
    ReadWindowOperator(task_id="many", source=FakeSource("*"), sink=ParquetSink("{lake}/{{topic}}"), **common)
    ReadWindowOperator(
        task_id="named",
        source=FakeSource("{{{{ params.numbers }}}}"),
        sink=ParquetSink("{lake}-{{{{ params.who }}}}"),
        **common,
    )
    ReadWindowOperator(
        task_id="native",
        source=FakeSource("numbers"),
        sink=ParquetSink("{lake}-native"),
        reader="{{{{ params.year }}}}",
        render_template_as_native_obj=True,
        **common,
    )
    ReadWindowOperator(task_id="of_run", source=FakeSource("numbers"), sink=None, reader="{{{{ run_id }}}}", **common)
"""
SPAN = ["--start", "2026-11-20T10:00Z", "--end", "2026-11-20T10:03Z", "--window-length", "1m"]


@pytest.fixture
def streams(fake, dag_test, tmp_path, monkeypatch, airflow_home):
    """Runs `airflow streams ..` with a DAG file that Airflow knows."""
    from airflow.cli.cli_parser import _add_command
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    from airflow_provider_streams.airflow_runtime import spark_launch

    fake(events=3600)
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    file = folder / "by_hand.py"
    file.write_text(textwrap.dedent(DAG_FILE).format(lake=tmp_path / "lake"))
    with create_session() as session:
        if session.get(DagBundleModel, "dags-folder") is None:
            session.add(DagBundleModel(name="dags-folder"))
    bag = dag_bags().BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="dags-folder")
    assert bag.import_errors == {}
    dag_bags().sync_bag_to_db(bag, "dags-folder", None)
    monkeypatch.setattr(spark_launch, "launch", lambda work, _conn_id, _settings: run_without_spark(work))

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "")
    parser = argparse.ArgumentParser(prog="airflow")
    subparsers = parser.add_subparsers()
    for command in get_streams_cli_commands():
        _add_command(subparsers, command)

    def run(*words: str) -> None:
        args = parser.parse_args(["streams", *words])
        args.func(args)

    yield run
    file.unlink()
    # the next test's file may have the same size and second: Python would take it for the same code
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def covered(reader: str, source: str = "numbers") -> int:
    with open_journal() as journal:
        return journal.coverage(FakeSource(source).key, reader, EPOCH, EPOCH + timedelta(minutes=3)).counts["covered"]


def test_source_table_columns_and_reader_are_the_tasks(streams, tmp_path):
    streams("backfill", "--dag-id", "by_hand", "--task-id", "read", *SPAN)
    files = list((tmp_path / "lake").glob("window_start=*/window_end=*/*.parquet"))
    assert {tuple(pq.ParquetFile(file).schema_arrow.names) for file in files} == {("value", "number")}
    assert covered("orders") == 3


def test_templates_of_source_and_sink_are_rendered_as_far_as_the_dag_tells(streams, tmp_path):
    streams("backfill", "--dag-id", "by_hand", "--task-id", "named", *SPAN)
    assert covered("by_hand.named") == 3
    assert len(list((tmp_path / "lake-orders").glob("window_start=*"))) == 3


def test_a_native_number_is_the_name_that_the_task_reads_under(streams):
    streams("backfill", "--dag-id", "by_hand", "--task-id", "native", *SPAN)
    assert covered("2026") == 3


def test_a_window_is_planned_and_read_as_the_task_does(streams, tmp_path, capsys):
    words = ("--dag-id", "by_hand", "--task-id", "read", "--window", "2026-11-20T10:01Z/2026-11-20T10:02Z")
    streams("plan", *words, "--output", "json")
    planned = json.loads(capsys.readouterr().out)
    assert (planned["source"]["names"], planned["reader"]) == (["numbers"], "orders")
    assert planned["start_cut"] == {"numbers-0": "60", "numbers-1": "60"}, "with the task's slack"
    assert covered("orders") == 0
    streams("read", *words, "--output", "json")
    assert json.loads(capsys.readouterr().out)["fingerprint"] == planned["fingerprint"]
    (file,) = (tmp_path / "lake").glob("window_start=20261120T100100Z/window_end=20261120T100200Z/*.parquet")
    assert pq.ParquetFile(file).schema_arrow.names == ["value", "number"]
    assert covered("orders") == 1


def test_one_of_a_mapped_task_is_named_by_its_index(streams, tmp_path, capsys):
    with pytest.raises(SystemExit):
        streams("backfill", "--dag-id", "by_hand", "--task-id", "each", *SPAN)
    assert "mapped 2 times: say which one with --map-index" in capsys.readouterr().err
    streams("backfill", "--dag-id", "by_hand", "--task-id", "each", "--map-index", "1", *SPAN)
    assert covered("by_hand.each", "b") == 3
    assert (tmp_path / "lake-b").exists()
    assert not (tmp_path / "lake-a").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dag-id", "by_hand", "--task-id", "of_run"], "can be rendered only in a run"),
        (["--dag-id", "by_hand", "--task-id", "nope"], "it has each, many, named, native, of_run, read"),
        (["--dag-id", "nobodys", "--task-id", "read"], "knows no DAG 'nobodys'"),
        (["--dag-id", "by_hand"], "belong together"),
        (
            ["pulsar", "x", "--dag-id", "by_hand", "--task-id", "read"],
            "leave out the source, --path, --sink and --columns",
        ),
        (
            ["--dag-id", "by_hand", "--task-id", "read", "--columns", "key"],
            "leave out the source, --path, --sink and --columns",
        ),
    ],
)
def test_what_cannot_be_taken_from_a_dag_is_told(streams, words, message, capsys):
    with pytest.raises(SystemExit):
        streams("backfill", *words, *SPAN)
    assert message in capsys.readouterr().err


def test_a_task_that_reads_another_source_by_now_is_refused(streams, capsys):
    words = ("backfill", "--dag-id", "by_hand", "--task-id", "read", *SPAN)
    with pytest.raises(SystemExit):
        streams(*words, "--source-key", FakeSource("another").key)
    assert f"reads {FakeSource('numbers').key}, not {FakeSource('another').key}" in capsys.readouterr().err
    streams(*words, "--source-key", FakeSource("numbers").key)
    assert covered("orders") == 3


def test_one_table_of_many_is_named_by_its_source(streams, tmp_path, capsys):
    many, orders = ("--dag-id", "by_hand", "--task-id", "many"), FakeSource("orders")
    with open_journal() as journal:
        cover_without_spark(
            journal,
            orders,
            Window(EPOCH, EPOCH + timedelta(minutes=1)),
            "by_hand.many",
            {"events": "3600", "stream": "orders"},
            sink=ParquetSink(f"{tmp_path}/lake/orders"),
        )
    for words, message in (
        ((), "say which one with --source-key"),
        (("--source-key", FakeSource("clicks").key), "has not landed fake:fake_default:clicks yet"),
    ):
        with pytest.raises(SystemExit):
            streams("backfill", *many, *SPAN, *words)
        assert message in " ".join(capsys.readouterr().err.split())
    streams("backfill", *many, *SPAN, "--source-key", orders.key)
    assert covered("by_hand.many", "orders") == 3
    assert len(list((tmp_path / "lake" / "orders").glob("window_start=*"))) == 3


@pytest.mark.parametrize("answer", ["", "Orders"])
def test_a_reader_is_forgotten_only_once_its_name_was_typed(streams, monkeypatch, capsys, answer):
    streams("backfill", "--dag-id", "by_hand", "--task-id", "read", *SPAN)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    with pytest.raises(SystemExit):
        streams("forget", "orders")
    assert "nothing was forgotten" in capsys.readouterr().err
    assert covered("orders") == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("orders\n"))
    streams("forget", "orders")
    assert covered("orders") == 0
    with open_journal() as journal:
        assert journal.sources() == []


def test_of_readers_with_one_name_the_source_says_which(streams, capsys):
    for index in ("0", "1"):
        streams("backfill", "--dag-id", "by_hand", "--task-id", "each", "--map-index", index, *SPAN)
    with pytest.raises(SystemExit):
        streams("forget", "by_hand.each", "--yes")
    assert "say which one with --source-key" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        streams("forget", "stranger", "--yes")
    streams("forget", "by_hand.each", "--yes", "--source-key", FakeSource("a").key)
    assert (covered("by_hand.each", "a"), covered("by_hand.each", "b")) == (0, 3)


def test_a_table_of_a_forgotten_reader_is_nobodys(streams, capsys):
    words = ("backfill", "--dag-id", "by_hand", "--task-id", "read", *SPAN)
    streams(*words)
    streams("forget", "orders", "--yes")
    with pytest.raises(SystemExit):
        streams(*words)
    assert "TableOwnedByOther" in capsys.readouterr().err


def test_doctor_examines_what_the_task_reads(streams, tmp_path, monkeypatch):
    examined = []

    def examine(setup, _progress):
        examined.append(setup)
        return report_of("", [])

    monkeypatch.setattr(doctor, "examine", examine)
    with pytest.raises(SystemExit):
        streams("doctor", "--dag-id", "by_hand", "--task-id", "read", "--write")
    (setup,) = examined
    assert (setup.source, setup.reader, setup.sink) == (
        FakeSource("numbers"),
        "orders",
        ParquetSink(f"{tmp_path}/lake"),
    )
    assert (setup.slack, setup.columns, setup.decoding_unknown, setup.write) == (
        timedelta(0),
        ("value", "number"),
        False,
        True,
    )
