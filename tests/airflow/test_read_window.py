"""`ReadWindowOperator` inside Airflow's task runner: what is pinned, returned, recorded, and refused."""

from __future__ import annotations

import dataclasses
import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, Asset
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import Cuts, ParquetSink, PublishTime, Window
from airflow_provider_streams.airflow_features import Feature
from airflow_provider_streams.airflow_runtime import metrics
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.timetables import window_timetable
from tests.airflow_versions import needs

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
WINDOW = Window(EPOCH + timedelta(seconds=10), EPOCH + timedelta(seconds=20))
NO_SLACK = PublishTime(timedelta(0))


def reading(dag_id: str, schedule: Any = None, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=schedule, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(
            task_id="read",
            **{"source": SOURCE, "window": WINDOW, "basis": NO_SLACK, "sink": None, **arguments},
        )
    return dag


def result(run: Any) -> dict[str, Any]:
    assert run.state == DagRunState.SUCCESS
    return run.get_task_instance("read").xcom_pull(task_ids="read")


def coverage(reader: str, window: Window = WINDOW) -> Any:
    with open_journal() as journal:
        return journal.coverage(SOURCE.key, reader, window.start, window.end)


def states(reader: str, window: Window = WINDOW) -> list[str]:
    return [one.state for one in coverage(reader, window).windows]


@pytest.mark.parametrize("kind", [ReadWindowOperator, BackfillWindowsOperator])
def test_a_tasks_settings_of_spark_arrive_at_its_launch(dag_test, fake, spark_stand_in, kind):
    fake(events=3600)
    window = Window(EPOCH, EPOCH + timedelta(minutes=1))
    span = {"start": window.start, "end": window.end, "window_length": timedelta(minutes=1)}
    how = {"window": window} if kind is ReadWindowOperator else span
    spark = {"driver_memory": "{{ params.memory }}", "conf": {"spark.sql.shuffle.partitions": 7}}
    with DAG("settings_of_spark", schedule=None, start_date=EPOCH, params={"memory": "700m"}) as dag:
        kind(task_id="read", source=FakeSource("numbers"), sink=None, basis=NO_SLACK, spark=spark, **how)
    assert dag_test(dag).state == DagRunState.SUCCESS
    assert spark_stand_in.settings == [(None, SparkSettings.of({**spark, "driver_memory": "700m"}))]


def test_a_read_returns_its_plan_and_receipt_in_short(dag_test, fake, spark_stand_in):
    got = result(dag_test(reading("short")))
    assert {name: got[name] for name in ("reader", "rows", "splits", "verdict", "window_rule")} == {
        "reader": "short.read",
        "rows": 20,  # ten seconds of two shards, an event each second
        "splits": 2,
        "verdict": "complete",
        "window_rule": "window",
    }
    assert got["window"] == {"start": "2026-11-20T10:00:10Z", "end": "2026-11-20T10:00:20Z"}
    assert got["start_cut"] == {"numbers-0": "10", "numbers-1": "10"}
    assert got["end_cut"] == {"numbers-0": "20", "numbers-1": "20"}
    assert got["fingerprint"] == spark_stand_in.specs[0].plan.fingerprint
    assert got["bytes"] == 20 * 16


def test_a_rerun_reads_the_pinned_positions_although_the_stream_has_grown(dag_test, fake, spark_stand_in):
    dag = reading("twice", basis="chained")
    fake(events=30)
    first = result(dag_test(dag))
    fake(events=50)
    second = result(dag_test(dag))
    assert (second["fingerprint"], second["rows"]) == (first["fingerprint"], first["rows"])
    assert spark_stand_in.tables[0] == spark_stand_in.tables[1]


def test_replan_makes_a_new_plan(dag_test, fake, spark_stand_in):
    fake(events=30)
    first = result(dag_test(reading("again", basis="chained")))
    fake(events=50)
    second = result(dag_test(reading("again", basis="chained", replan=True)))
    assert first["rows"] == 60
    assert second["rows"] == 100
    assert result(dag_test(reading("again", basis="chained")))["fingerprint"] == second["fingerprint"]


def test_chained_windows_meet_at_one_cut(dag_test, fake, spark_stand_in):
    later = Window(WINDOW.end, WINDOW.end + timedelta(seconds=10))
    fake(events=30)
    first = result(dag_test(reading("chain", basis="chained")))
    fake(events=50)
    second = result(dag_test(reading("chain", basis="chained", window=later)))
    assert second["start_cut"] == first["end_cut"]
    assert first["rows"] + second["rows"] == 100


def test_chained_windows_out_of_order_are_refused(dag_test, fake, spark_stand_in, capfd):
    earlier = Window(WINDOW.start - timedelta(seconds=10), WINDOW.start)
    result(dag_test(reading("disorder", basis="chained")))
    assert dag_test(reading("disorder", basis="chained", window=earlier)).state == DagRunState.FAILED
    assert "ChainOutOfOrder" in capfd.readouterr().out
    assert len(spark_stand_in.specs) == 1
    assert states("disorder.read", earlier) == ["failed"]


def test_a_chained_window_waits_while_the_one_before_it_is_not_covered(dag_test, fake, spark_stand_in, capfd):
    first = Window(WINDOW.start - timedelta(seconds=10), WINDOW.start)
    result(dag_test(reading("waiting", basis="chained", window=first, dry_run=True)))
    assert dag_test(reading("waiting", basis="chained")).state == DagRunState.FAILED
    shown = capfd.readouterr().out
    assert f"the window {first} before it is not covered yet" in shown
    assert states("waiting.read") == ["missing"], "it is not its turn: that is no failure of it"
    result(dag_test(reading("waiting", basis="chained", window=first)))
    result(dag_test(reading("waiting", basis="chained")))


def test_a_window_that_shares_time_with_a_covered_one_is_refused(dag_test, fake, spark_stand_in, tmp_path, capfd):
    sink = ParquetSink(str(tmp_path / "lake"))
    result(dag_test(reading("overlap", sink=sink)))
    wider = {"sink": sink, "window": Window(WINDOW.start, WINDOW.end + timedelta(seconds=5))}
    assert dag_test(reading("overlap", **wider)).state == DagRunState.FAILED
    shown = capfd.readouterr().out
    assert "WindowsOverlap" in shown
    assert "overlap='replace'" in shown
    assert (states("overlap.read"), len(spark_stand_in.specs)) == (["covered"], 1)
    got = result(dag_test(reading("overlap", **wider, overlap="replace")))
    assert (got["rows"], got["written"], got["target"]) == (30, 30, sink.asset_uri)
    assert ParquetTable(sink.path).state().windows == {wider["window"]}


def test_losses_that_were_accepted_once_are_not_accepted_again_by_silence(dag_test, fake, spark_stand_in, capfd):
    fake(head=15)
    result(dag_test(reading("accepted", on_loss="record", dry_run=True)))
    assert dag_test(reading("accepted")).state == DagRunState.FAILED
    assert "PlanOptionsChanged" in capfd.readouterr().out
    assert spark_stand_in.specs == []
    assert result(dag_test(reading("accepted", on_loss="record")))["verdict"] == "loss recorded"


@pytest.mark.parametrize("given", ["{{ none }}", "{{ '' }}", " "])
def test_a_reader_whose_template_gives_nothing_is_refused(dag_test, fake, spark_stand_in, capsys, given):
    assert dag_test(reading("nameless", reader=given)).state == DagRunState.FAILED
    assert "InvalidRequest: ReadWindowOperator: reader" in capsys.readouterr().out
    with open_journal() as journal:
        assert journal.sources() == []


def test_the_users_own_cuts_are_read_as_given(dag_test, fake, spark_stand_in):
    got = result(dag_test(reading("cuts", basis=Cuts(start="3", end="5"))))
    assert (got["basis"], got["rows"]) == ("cuts", 4)


def test_a_dry_run_pins_and_shows_but_reads_nothing(dag_test, fake, spark_stand_in, capfd):
    got = result(dag_test(reading("dry", dry_run=True)))
    assert spark_stand_in.specs == []
    assert (got["verdict"], got["rows"]) == ("planned", None)
    assert got["fingerprint"][:12] in capfd.readouterr().out
    assert states("dry.read") == ["missing"]
    assert result(dag_test(reading("dry")))["fingerprint"] == got["fingerprint"]


def test_a_dry_run_that_plans_anew_leaves_a_covered_window_as_it_is(dag_test, fake, spark_stand_in):
    read = result(dag_test(reading("again")))
    fake(head=15)
    got = result(dag_test(reading("again", dry_run=True, replan=True, on_loss="record")))
    assert (got["verdict"], bool(got["losses"])) == ("planned", True)
    assert got["fingerprint"] != read["fingerprint"]
    assert states("again.read") == ["covered"]


def test_a_template_can_give_the_window(dag_test, fake, spark_stand_in):
    dag = reading("template", window="{{ dag_run.conf['window'] }}")
    got = result(dag_test(dag, run_conf={"window": str(WINDOW)}))
    assert got["window"] == WINDOW.to_json()


def test_a_data_interval_is_the_window(dag_test, fake, spark_stand_in):
    from airflow.timetables.interval import CronDataIntervalTimetable

    fake(events=100, interval_ms=60_000)
    dag = reading("interval", CronDataIntervalTimetable("@hourly", timezone="UTC"), window=None)
    got = result(dag_test(dag, logical_date=EPOCH + timedelta(hours=1)))
    assert (got["window_rule"], got["rows"]) == ("data_interval", 2 * 60)


def test_an_empty_data_interval_is_refused_with_the_fix(dag_test, fake, spark_stand_in, capfd):
    run = dag_test(reading("empty_interval", "@hourly", window=None), logical_date=EPOCH)
    assert run.state == DagRunState.FAILED
    assert "window_timetable('@hourly')" in capfd.readouterr().out


def test_an_empty_window_is_covered_with_no_rows(dag_test, fake, spark_stand_in):
    before = Window(EPOCH - timedelta(hours=2), EPOCH - timedelta(hours=1))
    got = result(dag_test(reading("nothing", window=before)))
    assert (got["rows"], got["splits"], got["verdict"]) == (0, 0, "complete")
    assert states("nothing.read", before) == ["covered"]


def test_a_receipt_that_disagrees_fails_the_run_and_covers_nothing(dag_test, fake, spark_stand_in):
    spark_stand_in.tamper = lambda receipts: [
        dataclasses.replace(receipt, entries=receipt.entries - 1) for receipt in receipts
    ]
    run = dag_test(reading("tampered"))
    assert run.state == DagRunState.FAILED
    (window,) = coverage("tampered.read").windows
    assert window.state == "failed"
    assert "ReceiptMismatch" in window.cause


def test_a_trimmed_start_is_recorded_as_lost(dag_test, fake, spark_stand_in):
    fake(head=15)
    assert dag_test(reading("trimmed")).state == DagRunState.FAILED
    assert states("trimmed.read") == ["lost"]


def test_loss_can_be_recorded_instead(dag_test, fake, spark_stand_in):
    fake(head=15)
    got = result(dag_test(reading("recorded", on_loss="record")))
    assert (got["verdict"], got["rows"], got["losses"]) == ("loss recorded", 10, 2)


def test_a_terminal_error_spends_no_retry(dag_test, fake, spark_stand_in):
    fake(head=15)
    run = dag_test(reading("terminal", retries=3, retry_delay=timedelta(0)))
    ti = run.get_task_instance("read")
    assert (ti.state, ti.try_number) == (TaskInstanceState.FAILED, 1)


def test_a_window_that_is_not_ready_yet_is_no_failed_window(dag_test, fake, spark_stand_in):
    fake(events=15)
    assert dag_test(reading("early")).state == DagRunState.FAILED
    assert states("early.read") == ["missing"]


def test_the_sink_gets_an_asset_event_with_the_window(dag_test, fake, spark_stand_in, tmp_path):
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    sink = ParquetSink(str(tmp_path / "lake"))
    dag = reading("asset", sink=sink)
    operator = dag.get_task("read")
    assert operator.outlets == [Asset(uri=sink.asset_uri)]
    assert operator.inlets == [Asset(uri="fake://fake_default/numbers")]
    got = result(dag_test(dag))
    with create_session() as session:
        event = session.scalars(select(AssetEvent).where(AssetEvent.source_dag_id == "asset")).one()
        extra = dict(event.extra)
    assert {name: extra[name] for name in ("window", "reader", "fingerprint", "rows")} == {
        name: got[name] for name in ("window", "reader", "fingerprint", "rows")
    }


def test_no_secret_leaves_the_connection(dag_test, fake, spark_stand_in, monkeypatch, tmp_path, capfd):  # noqa: PLR0917 - fixtures
    secret = "canary-0f3d9a77"
    fake(password=secret)
    extra = {"truth": str(tmp_path / "truth.json"), "token": secret}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": extra}))
    got = result(dag_test(reading("canary")))
    (spec,) = spark_stand_in.specs
    assert spec.options["token"] == secret, "Spark needs it"
    assert secret not in str(spec.plan.to_json())
    assert secret not in repr(spec)
    assert secret not in str(got)
    printed = capfd.readouterr()
    assert spec.plan.fingerprint[:12] in printed.out
    assert secret not in printed.out + printed.err
    assert secret.encode() not in (tmp_path / "journal.db").read_bytes()


@needs(Feature.PARTITIONED_RUNS)
def test_a_run_by_hand_of_a_partitioned_dag_reads_the_last_full_window(dag_test, fake, spark_stand_in, monkeypatch):
    """As `airflow dags test` starts it."""
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps({"conn_type": "fake", "extra": {"events": 3 * 3600}}))
    dag = reading("no_partition", window_timetable("@hourly"), window=None)
    got = result(dag_test(dag, logical_date=EPOCH + timedelta(minutes=150)))
    assert Window.from_json(got["window"]) == Window(EPOCH + timedelta(hours=1), EPOCH + timedelta(hours=2))
    assert got["rows"] == 7200


@needs(Feature.PARTITION_EVENTS)
def test_a_partition_whose_hour_comes_twice_has_both_hours(dag_test, fake, spark_stand_in):
    """Airflow's date of that partition is the second hour; its key is the name of both."""
    from airflow.partition_mappers.temporal import StartOfHourMapper as CoreMapper
    from airflow.sdk import PartitionedAssetTimetable, StartOfHourMapper

    hours = Window(datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC))
    fake(events=3 * 3600, epoch=hours.start)
    schedule = PartitionedAssetTimetable(
        assets=Asset(uri="file:///upstream"), default_partition_mapper=StartOfHourMapper(timezone="Europe/Berlin")
    )
    date = CoreMapper(timezone="Europe/Berlin").to_partition_date("2026-10-25T02")
    assert date.astimezone(UTC) == hours.start + timedelta(hours=1)
    got = result(dag_test(reading("twice", schedule, window=None), partition=date))
    assert (got["window_rule"], got["rows"], got["verdict"]) == ("partition", 2 * 2 * 3600, "complete")
    assert got["window"] == {"start": "2026-10-25T00:00:00Z", "end": "2026-10-25T02:00:00Z"}


def test_whom_it_concerns_learns_that_a_table_was_removed(dag_test, fake, spark_stand_in, tmp_path, monkeypatch):
    """By the callback of the task, and by a figure."""
    fake(events=3600)
    figures, told = [], []
    monkeypatch.setattr(metrics.Stats, "incr", lambda name, count=1, **_: figures.append((name, count)))
    sink = ParquetSink(f"{tmp_path}/lake/numbers")
    minutes = [Window(EPOCH + timedelta(minutes=n), EPOCH + timedelta(minutes=n + 1)) for n in range(2)]
    first, second = (reading("removed", window=window, sink=sink, on_missing=told.append) for window in minutes)
    result(dag_test(first))
    assert told == []
    shutil.rmtree(sink.path.removeprefix("file://"))
    result(dag_test(second))
    (lost,) = told
    assert (lost.reader, lost.windows, lost.is_table_gone) == ("removed.read", (minutes[0],), True)
    assert ("streams.missing_windows", 1) in figures
