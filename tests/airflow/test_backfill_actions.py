"""What the page's button asks Airflow for: a DAG's own runs of just the windows that were chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.airflow_features import Feature, dag_bags, has
from airflow_provider_streams.journal.coverage_rollup import Piece
from airflow_provider_streams.journal.reader_overview import Activity, ReaderOverview, ReadingTask
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.timetables import window_timetable
from tests.airflow_versions import needs, sdk_timetable

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
START = datetime(2026, 10, 20, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def reading(dag_id: str, schedule: object, **more: object) -> DAG:
    with DAG(dag_id, schedule=schedule, start_date=START, catchup=False, max_active_runs=3) as dag:
        ReadWindowOperator(task_id="read", source=SOURCE, sink=ParquetSink("/lake/numbers"), **more)
    return dag


def filling(dag_id: str, select: str) -> DAG:
    with DAG(dag_id, schedule=None, params={"start": "", "end": "", "select": "missing"}) as dag:
        BackfillWindowsOperator(
            task_id="fill",
            source=SOURCE,
            sink=ParquetSink("/lake/numbers"),
            start="{{ params.start }}",
            end="{{ params['end'] }}",
            select=select,
        )
    return dag


def mapped() -> DAG:
    sources = [FakeSource("a"), FakeSource("b")]
    with DAG("fill_mapped", schedule=None) as dag:
        ReadWindowOperator.partial(task_id="each", sink=None).expand(source=sources)
    return dag


def by_start(cron: str, zone: str) -> Any:
    """A run of a partition at its start, where Airflow has partitions."""
    if not has(Feature.PARTITIONED_RUNS):
        return window_timetable(cron, zone)
    from airflow.sdk import CronPartitionTimetable

    return CronPartitionTimetable(cron, timezone=zone)


HOURLY = window_timetable("0 * * * *")
INTERVALS = sdk_timetable("CronDataIntervalTimetable")("0 * * * *", timezone="UTC")
TRIGGERED = sdk_timetable("CronTriggerTimetable")("0 * * * *", timezone="UTC", interval=timedelta(hours=1))
DAGS = {
    "fill_hourly": lambda: reading("fill_hourly", HOURLY),
    "fill_seconds": lambda: reading("fill_seconds", window_timetable("* * * * * */5")),
    "fill_berlin": lambda: reading("fill_berlin", by_start("0 0 * * *", "Europe/Berlin")),
    "fill_monthly": lambda: reading("fill_monthly", by_start("0 0 1 * *", "Europe/Berlin")),
    "fill_intervals": lambda: reading("fill_intervals", INTERVALS),
    "fill_trigger": lambda: reading("fill_trigger", TRIGGERED),
    "fill_fixed": lambda: reading("fill_fixed", HOURLY, window="2026-11-20T10:00Z/2026-11-20T11:00Z"),
    "fill_none": lambda: reading("fill_none", None),
    "fill_any": lambda: filling("fill_any", "{{ params.select }}"),
    "fill_missing": lambda: filling("fill_missing", "missing"),
    "fill_mapped": mapped,
}


@pytest.fixture(scope="module")
def known_dags(migrated_database):
    """Airflow knows the DAGs, as after its DAG processor."""
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        if session.get(DagBundleModel, "filling") is None:
            session.add(DagBundleModel(name="filling"))
    bag = dag_bags().DagBag(dag_folder="/dev/null")
    for make in DAGS.values():
        bag.bag_dag(make())
    dag_bags().sync_bag_to_db(bag, "filling", None)


def hours(first: int, last: int) -> list[Window]:
    begin = datetime(2026, 11, 20, tzinfo=UTC)
    return [Window(begin + timedelta(hours=n), begin + timedelta(hours=n + 1)) for n in range(first, last)]


def every_five_seconds(count: int) -> list[Window]:
    begin, length = datetime(2026, 11, 20, 10, tzinfo=UTC), timedelta(seconds=5)
    return [Window(begin + n * length, begin + (n + 1) * length) for n in range(count)]


def of_berlin(*dates: tuple[int, int]) -> list[Window]:
    edges = [datetime(2026, month, day, tzinfo=BERLIN) for month, day in dates]
    return [Window(start, end) for start, end in pairwise(edges)]


def gap_of(dag_id: str, windows: list[Window], select: str = "missing", **more: object):
    from airflow_provider_streams.plugin.backfill_actions import Gap

    then = windows[0].start
    one = ReaderOverview(7, SOURCE.key, "r", by_dag={dag_id: Activity(1, 0, then, then, None)})
    span = Window(windows[0].start, windows[-1].end)
    return Gap(one, span, [Piece(window, "missing") for window in windows], True, select, None, **more)


def action_of(gap, task_id: str = "read", map_index: int = -1, *, allowed: bool = True):
    from airflow_provider_streams.plugin.backfill_actions import _action
    from airflow_provider_streams.plugin.dags import known_tasks

    (dag_id,) = gap.one.by_dag
    known = list(known_tasks([ReadingTask(dag_id, task_id, map_index)]))
    return _action(gap, known, SimpleNamespace(may_run=lambda _dag_id: allowed))


def runs_of(action) -> list[Window]:
    """The windows of the runs that Airflow makes of a request."""
    from airflow.models.backfill import _get_info_list
    from airflow.models.serialized_dag import SerializedDagModel

    from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable

    dag = SerializedDagModel.get_dag(action.body["dag_id"])
    dates = (datetime.fromisoformat(action.body[name]) for name in ("from_date", "to_date"))
    infos = _get_info_list(dag=dag, from_date=next(dates), to_date=next(dates), reverse=False)
    window_schedule = schedule_of_timetable(dag.timetable)
    return [
        window_schedule.cell(info.partition_date)
        if getattr(info, "partition_date", None)
        else Window(info.data_interval.start, info.data_interval.end)
        for info in infos
    ]


@pytest.mark.parametrize(
    ("dag_id", "windows"),
    [
        ("fill_hourly", hours(3, 4)),
        ("fill_hourly", hours(3, 9)),
        ("fill_berlin", of_berlin((10, 24), (10, 25), (10, 26), (10, 27))),
        # Airflow makes no data interval before its end
        pytest.param("fill_monthly", of_berlin((11, 1), (12, 1)), marks=needs(Feature.PARTITIONED_RUNS)),
        ("fill_intervals", hours(3, 9)),
        ("fill_trigger", hours(3, 9)),
        ("fill_seconds", every_five_seconds(2)),  # of many thousand a day
    ],
)
def test_airflow_makes_the_runs_of_just_these_windows(known_dags, dag_id, windows):
    action = action_of(gap_of(dag_id, windows))
    assert runs_of(action) == windows
    assert (action.path, action.runs, action.again, action.left) == ("api/v2/backfills", len(windows), 0, 0)
    assert action.body["max_active_runs"] == 3


def test_windows_between_the_chosen_ones_are_told(known_dags):
    chosen = [*hours(3, 4), *hours(8, 9)]
    action = action_of(gap_of("fill_hourly", chosen))
    assert runs_of(action) == hours(3, 9)
    assert (action.runs, action.again) == (6, 4)
    assert action.body["reprocess_behavior"] == "failed", "what ended well between them is left alone"


def test_missing_windows_whose_runs_ended_well_are_run_again(known_dags):
    assert action_of(gap_of("fill_hourly", hours(3, 9))).body["reprocess_behavior"] == "completed"


@pytest.mark.parametrize(
    ("dag_id", "select", "why"),
    [
        ("fill_fixed", "missing", "has no runs for these windows"),
        ("fill_none", "missing", "has no runs for these windows"),
        ("fill_hourly", "lost", "the command does"),
        ("fill_hourly", "late", "the command does"),
    ],
)
def test_there_is_no_button_where_airflow_would_do_something_else(known_dags, dag_id, select, why):
    assert why in action_of(gap_of(dag_id, hours(3, 9), select))


def test_windows_off_the_schedule_have_no_button(known_dags):
    odd = [Window(one.start + timedelta(minutes=1), one.end + timedelta(minutes=1)) for one in hours(3, 5)]
    assert "has no runs for these windows" in action_of(gap_of("fill_hourly", odd))


def test_only_who_may_start_runs_has_a_button(known_dags):
    assert "not among your rights" in action_of(gap_of("fill_hourly", hours(3, 9)), allowed=False)


def test_a_backfill_dag_is_run_with_the_span_as_its_parameters(known_dags):
    action = action_of(gap_of("fill_any", hours(3, 9), "failed"), "fill")
    assert (action.kind, action.path, action.runs) == ("dag_run", "api/v2/dags/fill_any/dagRuns", 1)
    conf = {"start": "2026-11-20T03:00:00Z", "end": "2026-11-20T09:00:00Z", "select": "failed"}
    assert action.body == {"logical_date": None, "conf": conf}


def test_a_backfill_dag_that_selects_for_itself_is_run_for_that_only(known_dags):
    assert "select" not in action_of(gap_of("fill_missing", hours(3, 9)), "fill").body["conf"]
    assert "takes none from parameters" in action_of(gap_of("fill_missing", hours(3, 9), "failed"), "fill")


@pytest.mark.parametrize(
    ("ref", "is_known"),
    [
        (ReadingTask("fill_mapped", "each", 1), True),
        (ReadingTask("fill_mapped", "each", 2), False),
        (ReadingTask("fill_mapped", "each"), False),
        (ReadingTask("fill_hourly", "read", 0), False),
        (ReadingTask("fill_hourly", "gone"), False),
        (ReadingTask("nobodys", "read"), False),
    ],
)
def test_a_task_is_known_while_its_dag_has_it(known_dags, ref, is_known):
    from airflow_provider_streams.plugin.dags import known_tasks

    assert [task.ref for task in known_tasks([ref])] == [ref] * is_known
