"""`BackfillWindowsOperator` inside Airflow's task runner: what it chooses, previews, reads and records."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState
from openlineage.client.serde import Serde

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, SystemUnavailable
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.window.coverage_timeline import draw
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.windows.claim.claim import claim_table
from airflow_provider_streams.windows.claim.landing_request import LandingRequest
from airflow_provider_streams.windows.claim.overrides import Overrides

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
MINUTE = timedelta(minutes=1)
SPAN = Window(EPOCH, EPOCH + 10 * MINUTE)
MINUTES = tuple(Every(MINUTE).cells(SPAN.start, SPAN.end))
READER = "minutes"


def filling(dag_id: str, kind: type[BackfillWindowsOperator] = BackfillWindowsOperator, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        given = {
            "start": SPAN.start,
            "end": SPAN.end,
            "window_length": MINUTE,
            "basis": PublishTime(timedelta(0)),
            "reader": READER,
        }
        kind(task_id="fill", source=SOURCE, **{**given, "sink": None, **arguments})
    return dag


def result(run: Any) -> dict[str, Any]:
    assert run.state == DagRunState.SUCCESS
    return run.get_task_instance("fill").xcom_pull(task_ids="fill")


def coverage(span: Window = SPAN) -> Any:
    with open_journal() as journal:
        return journal.coverage(SOURCE.key, READER, span.start, span.end, MINUTE)


def states() -> list[str]:
    return [item.state for item in coverage().windows]


def read(chunks: list[Any]) -> list[Window]:
    return [spec.plan.window for chunk in chunks for spec in chunk.specs]


def note(window: Window, state: str, dag_id: str = "another", try_number: int = 1, **truth: Any) -> None:
    """Put a window into a state, as a task of another DAG would have left it."""
    plan = FakeSystem.from_options({"events": "3600", **truth}).plan(
        PlanRequest(SOURCE, window, READER, slack=timedelta(0))
    )
    task = TaskInstanceKey(dag_id, "r", "read", try_number)
    with open_journal() as journal:
        claim = claim_table(journal, LandingRequest(SOURCE, READER, Landing(), "publish"), [window], Overrides())
        run = journal.start_run(SOURCE.key, journal.pin(SOURCE.key, plan), task, landing_id=claim.landing_id).run
        if state == "covered":
            journal.finish_run(run, Landed(Receipt(plan.fingerprint, (), 1.0, "complete")))
        elif state != "running":
            journal.fail_run(run, "ReadStalled", "silent", lost=state == "lost")


@pytest.fixture(autouse=True)
def an_hour(fake):
    fake(events=3600)


def test_what_is_missing_is_read_in_one_job_and_recorded_window_by_window(dag_test, spark_stand_in):
    note(MINUTES[3], "covered")
    got = result(dag_test(filling("missing")))
    (chunk,) = spark_stand_in.jobs
    assert read([chunk]) == [window for window in MINUTES if window != MINUTES[3]]
    assert states() == ["covered"] * 10
    assert (got["rows"], got["verdict"], got["jobs"], len(got["covered"])) == (9 * 120, "complete", 1, 9)
    runs = {item.run.dag_id for item in coverage().windows}
    assert runs == {"another", "missing"}
    again = result(dag_test(filling("missing")))
    assert (again["windows"], again["verdict"]) == ([], "complete")
    assert len(spark_stand_in.jobs) == 1


def test_a_dry_run_previews_and_neither_pins_nor_reads(dag_test, fake, spark_stand_in, capfd):
    fake(events=480, head=120)
    got = result(dag_test(filling("preview", dry_run=True)))
    assert spark_stand_in.jobs == []
    assert got["windows"] == [str(window) for window in MINUTES[2:8]]
    assert got["beyond_horizon"] == [str(window) for window in MINUTES[:2]]
    assert got["not_ready"] == [str(window) for window in MINUTES[8:]]
    assert (got["bytes"], got["tasks"], got["jobs"]) == (6 * 120 * 16, 12, 1)
    assert got["horizon"] == "2026-11-20T10:02:00Z"
    assert got["minutes"] > 0
    assert all(not item.fingerprint and not item.attempts for item in coverage().windows)
    shown = capfd.readouterr().out
    assert "2 beyond the horizon, cannot be read: 2026-11-20T10:00:00Z/2026-11-20T10:02:00Z" in shown
    assert "2 not ready yet, left for later" in shown


class Telling(BackfillWindowsOperator):
    """Asks for its own lineage when it has ended, as the listener of OpenLineage does."""

    def execute(self, context):
        lineages.clear()
        try:
            answer = super().execute(context)
        except Exception:
            lineages.append(self.get_openlineage_facets_on_failure(None))
            raise
        lineages.append(self.get_openlineage_facets_on_complete(None))
        return answer


lineages: list[Any] = []


def test_lineage_names_the_ranges_of_what_landed_also_of_a_failed_backfill(
    dag_test, fake, spark_stand_in, monkeypatch, tmp_path
):
    # stands in for the provider of OpenLineage, which would make every test a lineage job
    extractors = SimpleNamespace(OperatorLineage=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage", SimpleNamespace(extractors=extractors))
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", extractors)
    lake = ParquetSink(str(tmp_path / "lake"))

    def told(state: DagRunState, dag_id: str, **arguments: Any) -> Any:
        dag = filling(dag_id, kind=Telling, sink=lake, **arguments)
        assert dag_test(dag).state == state
        (lineage,) = lineages
        return lineage

    fake(events=3600, head=60 * 8)
    lineage = told(DagRunState.FAILED, "lineage_failed")
    ranges = json.loads(Serde.to_json(lineage.inputs[0].facets["streamsRanges"]))["facts"]
    covered = [item.window for item in coverage().select("covered")]
    assert covered == list(MINUTES[8:])
    assert [(one["shard"], one["start"], one["end"], one["rows"]) for one in ranges] == [
        (f"numbers-{shard}", str(60 * minute), str(60 * minute + 60), 60) for minute in (8, 9) for shard in (0, 1)
    ]
    assert json.loads(Serde.to_json(lineage.outputs[0].outputFacets["outputStatistics"]))["rowCount"] == 240
    assert told(DagRunState.SUCCESS, "lineage_nothing", start=MINUTES[8].start) is None
    lineage = told(DagRunState.SUCCESS, "lineage_whole", start=SPAN.end, end=SPAN.end + MINUTE)
    facts = json.loads(Serde.to_json(lineage.run_facets["streamsWindow"]))["facts"]
    assert facts["window"] == Window(SPAN.end, SPAN.end + MINUTE).to_json()
    assert [dataset.name for dataset in lineage.outputs] == [lake.path]


def test_a_lost_window_does_not_hold_up_the_others_and_fails_the_task_at_the_end(dag_test, fake, spark_stand_in, capfd):
    fake(events=3600, head=150)
    run = dag_test(filling("lossy", retries=3, retry_delay=timedelta(0)))
    assert run.state == DagRunState.FAILED
    assert run.get_task_instance("fill").try_number == 1, "what is lost stays lost: no retry is spent on it"
    assert states() == ["lost"] * 3 + ["covered"] * 7
    assert "windows covered: 7, not covered: 3" in capfd.readouterr().out
    # once known as lost they do not fail the next one
    assert result(dag_test(filling("lossy_again")))["windows"] == []


def test_what_is_left_of_lost_windows_can_be_read(dag_test, fake, spark_stand_in):
    fake(events=3600, head=150)
    got = result(dag_test(filling("accepted", on_loss="record")))
    assert got["rows"] == 2 * (30 + 7 * 60)
    assert got["beyond_horizon"] == [str(window) for window in MINUTES[:3]]
    assert [item.cause for item in coverage().windows[:3]] == ["loss recorded"] * 3


def test_a_window_whose_receipt_disagrees_fails_alone(dag_test, fake, spark_stand_in):
    fake(events=3600, fault="drop:1:100")
    assert dag_test(filling("dropping")).state == DagRunState.FAILED
    assert states() == ["covered", "failed"] + ["covered"] * 8
    fake(events=3600)
    assert result(dag_test(filling("dropping", select="failed")))["windows"] == [str(MINUTES[1])]
    assert states() == ["covered"] * 10


@pytest.mark.parametrize(
    ("select", "chosen"),
    [
        ("missing", [1, 3, 4]),
        ("failed", [1, 3]),
        ("lost", [2]),
        (["failed", "lost"], [1, 2, 3]),
        ("all", [0, 1, 2, 3, 4]),
        ("late", []),
    ],
)
def test_the_selection_decides(dag_test, spark_stand_in, select, chosen):
    for window, state in zip(MINUTES, ("covered", "failed", "lost", "running"), strict=False):
        note(window, state)
    dag_test(filling(f"select_{'_'.join(select)}", select=select, end=MINUTES[4].end))
    assert read(spark_stand_in.jobs) == [MINUTES[number] for number in chosen]


def test_jobs_are_bounded_in_bytes_and_in_windows(dag_test, spark_stand_in):
    result(dag_test(filling("bytes", max_bytes=120 * 16 * 4)))
    assert [len(chunk.specs) for chunk in spark_stand_in.jobs] == [4, 4, 2]
    spark_stand_in.jobs.clear()
    result(dag_test(filling("windows", select="all", max_windows=3)))
    assert [len(chunk.specs) for chunk in spark_stand_in.jobs] == [3, 3, 3, 1]
    spark_stand_in.jobs.clear()
    result(dag_test(filling("tiny", select="all", max_bytes=1)))
    assert [len(chunk.specs) for chunk in spark_stand_in.jobs] == [1] * 10


def test_a_system_that_goes_away_in_the_middle_keeps_what_was_covered(dag_test, fake, spark_stand_in, monkeypatch):
    from airflow_provider_streams.airflow_runtime import spark_launch

    launch = spark_launch.launch

    def once_then_gone(chunk, *spark):
        if spark_stand_in.jobs:
            raise SystemUnavailable("the fake server", "it was switched off")
        return launch(chunk, *spark)

    monkeypatch.setattr(spark_launch, "launch", once_then_gone)
    assert dag_test(filling("halfway", max_windows=4)).state == DagRunState.FAILED
    assert states() == ["covered"] * 4 + ["failed"] * 4 + ["missing"] * 2
    monkeypatch.setattr(spark_launch, "launch", launch)
    result(dag_test(filling("halfway", max_windows=4)))
    assert read(spark_stand_in.jobs) == list(MINUTES), "nothing is read twice"


def test_a_retry_goes_on_where_the_killed_try_stopped(dag_test, spark_stand_in, monkeypatch):
    """Select `all`: only the run's own earlier tries tell what it has done already."""
    from airflow_provider_streams.airflow_runtime import spark_launch

    launch = spark_launch.launch

    def killed_in_the_second_job(chunk, *spark):
        if len(spark_stand_in.jobs) == 1 and not killed:
            killed.append(True)
            raise SystemUnavailable("worker", "killed")
        return launch(chunk, *spark)

    killed: list[bool] = []
    monkeypatch.setattr(spark_launch, "launch", killed_in_the_second_job)
    for window in MINUTES:
        note(window, "covered")
    dag = filling("retry", select="all", max_windows=5, retries=1, retry_delay=timedelta(0))
    result(dag_test(dag))
    assert killed
    assert read(spark_stand_in.jobs) == list(MINUTES)


def test_late_rows_are_counted_shown_and_read_again(dag_test, fake, spark_stand_in):
    late = {"late_every": 50, "late_by_ms": 150_000}  # two and a half minutes: beyond slack
    fake(events=3600, **late)
    lookback = timedelta(minutes=5)
    first = result(dag_test(filling("late", select="missing")))
    truth = FakeSystem.from_options({"events": "3600", **{k: str(v) for k, v in late.items()}}).truth
    published = [truth.time_of(n) for n in range(3600)]
    expected = [2 * sum(window.start <= moment < window.end for moment in published) for window in MINUTES]
    assert first["rows"] < sum(expected)
    recounted = result(dag_test(filling("late_shown", select="late", lookback=lookback, dry_run=True)))
    late = [item.late_rows for item in coverage().windows]
    assert [item.rows + item.late_rows for item in coverage().windows] == expected
    assert recounted["late_rows"] == coverage().totals["late_rows"] == sum(late) > 0
    assert "rows appeared after it was read" in draw(coverage())
    spark_stand_in.jobs.clear()
    got = result(dag_test(filling("late_read", select="late", lookback=lookback)))
    assert got["windows"] == [str(window) for window, rows in zip(MINUTES, late, strict=True) if rows]
    assert [item.rows for item in coverage().windows] == expected
    assert result(dag_test(filling("late_again", select="late", lookback=lookback)))["windows"] == []


def test_windows_that_another_task_is_reading_are_left_to_it(dag_test, spark_stand_in, monkeypatch):
    from airflow_provider_streams.operators.backfill import _RunningTasks

    note(MINUTES[0], "running", dag_id="alive")
    note(MINUTES[1], "running", dag_id="killed")
    monkeypatch.setattr(_RunningTasks, "__contains__", lambda _, run: run.dag_id == "alive")
    result(dag_test(filling("next_to", end=MINUTES[2].end)))
    assert read(spark_stand_in.jobs) == [MINUTES[1], MINUTES[2]]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"select": "everything"}, None),
        ({"basis": "chained"}, InvalidRequest),
        ({"window_length": timedelta(0)}, InvalidWindow),
        ({"max_bytes": 0}, InvalidRequest),
        ({"start": "soon"}, None),
    ],
)
def test_what_cannot_work_is_refused(dag_test, spark_stand_in, wrong, error):
    """Templated ones in the run, the others when the DAG is parsed."""
    if error is None:
        assert dag_test(filling(f"wrong_{next(iter(wrong))}", **wrong)).state == DagRunState.FAILED
        return
    with pytest.raises(error):
        filling("wrong", **wrong)
