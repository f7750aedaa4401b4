"""A table for each stream inside Airflow's task runner: what is returned, told, retried and refused."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, Asset
from airflow.utils.state import DagRunState
from openlineage.client.serde import Serde

from airflow_provider_streams import IcebergSink, ParquetSink, PublishTime, PulsarSource, Window
from airflow_provider_streams.airflow_runtime.asset_events import MOST_EVENTS
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import EventsLost, InvalidRequest, PreflightFailed
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from tests.airflow.test_events import events

pytestmark = pytest.mark.dagtest

MINUTE = timedelta(minutes=1)
WINDOW = Window(EPOCH, EPOCH + MINUTE)
NO_SLACK = PublishTime(timedelta(0))
NAMES = [f"s{number:03}" for number in range(250)]
ALL = FakeSource("*")


def sink(tmp_path: Any) -> ParquetSink:
    return ParquetSink(f"{tmp_path}/lake/{{topic}}")


def reading(dag_id: str, tmp_path: Any, kind: Any = ReadWindowOperator, **arguments: Any) -> DAG:
    how = {"source": ALL, "window": WINDOW, "basis": NO_SLACK, "sink": sink(tmp_path), **arguments}
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        kind(task_id="read", **{name: value for name, value in how.items() if value is not None})
    return dag


def xcom(run: Any) -> Any:
    return run.get_task_instance("read").xcom_pull(task_ids="read")


def windows(tmp_path: Any, name: str) -> set[Window]:
    state = ParquetTable(f"{tmp_path}/lake/{name}").state()
    return set() if state is None else set(state.windows)


@pytest.mark.slow
def test_hundreds_of_streams_are_one_job_and_an_xcom_of_bounded_size(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=60, streams=",".join(NAMES))
    run = dag_test(reading("many", tmp_path))
    assert run.state == DagRunState.SUCCESS
    assert len(spark_stand_in.jobs) == 1
    assert all(windows(tmp_path, name) == {WINDOW} for name in NAMES)
    told = xcom(run)
    assert (told["tables"], told["rows"], told["written"], told["verdict"]) == (250, 250 * 120, 250 * 120, "complete")
    assert told["target"] == f"file://{tmp_path}/lake/*"
    assert len(told["largest"]) == 20
    assert len(json.dumps(told)) < 10_000
    assert len(events("many")) == 1
    (_, extra) = events("many")[0]
    assert (extra["tables"], extra["rows"]) == (250, 250 * 120)
    with open_journal() as journal:
        given = [run for name in NAMES for run in journal.unannounced(f"fake:fake_default:{name}", "many.read")]
        assert {run.announced_by.run_id for run in given} == {run.run_id}
        states = [
            item.state
            for name in NAMES
            for item in journal.coverage(f"fake:fake_default:{name}", "many.read", WINDOW.start, WINDOW.end).windows
        ]
    assert states == ["covered"] * 250


def test_tables_that_are_outlets_of_the_task_are_told_one_by_one(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=60, streams="orders,clicks")
    orders, gone = (Asset(uri=f"file://{tmp_path}/lake/{name}") for name in ("orders", "gone"))
    run = dag_test(reading("followed", tmp_path, outlets=[orders, gone]))
    assert run.state == DagRunState.SUCCESS
    told = [extra for _, extra in events("followed")]
    assert sorted(extra.get("tables", 1) for extra in told) == [1, 2]
    assert {extra["rows"] for extra in told} == {120, 240}


def test_long_paths_of_tables_are_told_under_their_short_assets(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=60, streams="orders,clicks")
    deep = ParquetSink(f"{tmp_path}/{'/'.join(['x' * 200] * 8)}/{{topic}}")
    orders, gone = (Asset(uri=ParquetSink(deep.path.replace("{topic}", name)).asset_uri) for name in ("orders", "gone"))
    dag_test(reading("deep", tmp_path, sink=deep, outlets=[orders, gone]))
    told = [extra for _, extra in events("deep")]
    assert sorted(extra.get("tables", 1) for extra in told) == [1, 2], "no stream lands in the table that is gone"
    assert {extra["rows"] for extra in told} == {120, 240}


def test_named_streams_are_outlets_by_themselves(tmp_path):
    named = reading("named", tmp_path, source=FakeSource("orders,clicks")).get_task("read")
    assert {asset.uri for asset in named.outlets} == {
        f"file://{tmp_path}/lake/{one}" for one in ("*", "orders", "clicks")
    }
    many = reading("many", tmp_path, source=FakeSource(",".join(NAMES))).get_task("read")
    assert len(many.outlets) == 1
    assert len(NAMES) > MOST_EVENTS


def test_a_failure_fails_the_task_at_the_end_and_a_backfill_reads_what_is_missing(
    dag_test, fake, spark_stand_in, tmp_path, capfd
):
    fake(events=120, streams="orders,clicks,views")

    def lose(spec: Any) -> None:
        if spec.plan.source.names == ("clicks",):
            raise EventsLost("clicks-0", 1, 2, "1 entry", "a user removed it")

    spark_stand_in.before = lose
    run = dag_test(reading("lossy", tmp_path))
    assert run.state == DagRunState.FAILED
    said = "".join(capfd.readouterr())
    assert "10:01:00Z, 2 landed, 1 did not. clicks: EventsLost" in said
    assert events("lossy") == []
    spark_stand_in.before = lambda _spec: None
    del spark_stand_in.specs[:]
    filling = reading(
        "lossy_fill",
        tmp_path,
        BackfillWindowsOperator,
        window=None,
        start=EPOCH,
        end=EPOCH + 2 * MINUTE,
        window_length=MINUTE,
        reader="lossy.read",
        select=["missing", "lost"],
    )
    run = dag_test(filling)
    assert run.state == DagRunState.SUCCESS
    read = sorted((spec.plan.source.names[0], spec.plan.window.start.minute) for spec in spark_stand_in.specs)
    assert read == [("clicks", 0), ("clicks", 1), ("orders", 1), ("views", 1)]
    told = xcom(run)
    assert (told["tables"], told["windows"], told["rows"]) == (3, 4, 480)
    assert all(len(windows(tmp_path, name)) == 2 for name in ("orders", "clicks", "views"))
    told = xcom(dag_test(filling))
    assert (told["windows"], told["rows"], told["written"]) == (0, 0, 0), "nothing is missing any more"
    found = events("lossy_fill")
    assert sum(extra["rows"] for key, extra in found if key) == 6 * 120, "also what the failed task had landed"


def test_what_ends_the_task_for_all_says_in_its_log_what_had_failed_before(
    dag_test, fake, spark_stand_in, tmp_path, capfd
):
    fake(events=120, streams="orders,a.b,A_b")

    def end(_spec: Any) -> None:
        raise PreflightFailed("there is no Spark")

    spark_stand_in.before = end
    assert dag_test(reading("ended", tmp_path)).state == DagRunState.FAILED
    said = "".join(capfd.readouterr())
    assert "PreflightFailed: there is no Spark" in said
    assert "Failed before this: a.b: InvalidRequest" in said


def test_a_dry_run_plans_each_and_lands_nothing(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=60, streams="orders,clicks")
    run = dag_test(reading("dry", tmp_path, dry_run=True))
    assert run.state == DagRunState.SUCCESS
    assert (xcom(run)["tables"], xcom(run)["verdict"], xcom(run)["rows"]) == (2, "planned", None)
    assert spark_stand_in.specs == []
    assert not (tmp_path / "lake").exists()


def test_a_dry_run_that_is_refused_does_not_say_that_it_landed_any(dag_test, fake, spark_stand_in, tmp_path, capfd):
    fake(events=60, streams="orders,clicks,views")
    somebodys = tmp_path / "lake" / "clicks"
    somebodys.mkdir(parents=True)
    (somebodys / "x.parquet").write_text("somebody's")
    assert dag_test(reading("dry", tmp_path, dry_run=True)).state == DagRunState.FAILED
    said = "".join(capfd.readouterr())
    assert "10:01:00Z, 2 could be landed, 1 could not. clicks: TableOwnedByOther" in said
    assert "A dry run lands nothing" in said
    assert "did not" not in said


def test_a_backfill_s_dry_run_pins_nothing(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=120, streams="orders,clicks")
    span = {"window": None, "start": EPOCH, "end": EPOCH + 2 * MINUTE, "window_length": MINUTE}
    run = dag_test(reading("dry_fill", tmp_path, BackfillWindowsOperator, dry_run=True, **span))
    assert run.state == DagRunState.SUCCESS
    assert (xcom(run)["tables"], xcom(run)["windows"], xcom(run)["verdict"]) == (2, 4, "planned")
    with open_journal() as journal:
        assert journal.pinned("fake:fake_default:orders", "dry_fill.read", WINDOW) is None


@pytest.mark.slow_except("2")
@pytest.mark.parametrize("streams", [2, 120])
def test_lineage_names_every_stream_and_its_table(dag_test, fake, spark_stand_in, tmp_path, monkeypatch, streams):  # noqa: PLR0917 - fixtures
    # stands in for the provider of OpenLineage, which would make every test a lineage job
    extractors = SimpleNamespace(OperatorLineage=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", SimpleNamespace(extractors=extractors))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    names = NAMES[:streams]
    fake(events=60, streams=",".join(names))
    told.clear()
    assert dag_test(reading("lineage", tmp_path, Telling)).state == DagRunState.SUCCESS
    (found,) = told
    assert sorted(one.name for one in found.inputs) == names
    assert sorted(one.name for one in found.outputs) == [f"{tmp_path}/lake/{one}" for one in names]
    rows = [json.loads(Serde.to_json(one.outputFacets["outputStatistics"]))["rowCount"] for one in found.outputs]
    assert set(rows) == {120}
    assert all(bool(one.facets) is (streams == 2) for one in found.inputs), "of very many only the names"
    assert len(found.run_facets) == (1 if streams == 2 else 0)


told: list[Any] = []


class Telling(ReadWindowOperator):
    """Asks for its own lineage when it has ended, as the listener of OpenLineage does."""

    def execute(self, context: Any) -> Any:
        done = super().execute(context)
        told.append(self.get_openlineage_facets_on_complete(None))
        return done


def test_a_sensor_waits_for_all_of_them(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=120, streams="orders,clicks")
    with DAG("waits", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        wait = WindowReadySensor(task_id="wait", source=ALL, window=WINDOW, basis=NO_SLACK)
        wait >> ReadWindowOperator(task_id="read", source=ALL, window=WINDOW, basis=NO_SLACK, sink=sink(tmp_path))
    assert dag_test(dag).state == DagRunState.SUCCESS


@pytest.mark.parametrize("kind", [ReadWindowOperator, BackfillWindowsOperator])
def test_what_cannot_be_is_refused_at_parse(kind):
    span = {"start": EPOCH, "end": EPOCH} if kind is BackfillWindowsOperator else {}
    with pytest.raises(InvalidRequest, match=r"nothing to put for \{shop\}; known: \{tenant\}"):
        kind(task_id="read", source=PulsarSource(pattern="t/n/.*"), sink=IcebergSink("lake.{shop}"), **span)
    with pytest.raises(InvalidRequest, match="would share the table iceberg://default/lake/a_b"):
        kind(task_id="read", source=PulsarSource(["a.b", "A_b"]), sink=IcebergSink("lake.{topic}"), **span)
