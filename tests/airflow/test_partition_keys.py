"""One window has one partition key, its run's: so it starts one run of each DAG that waits for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk import DAG, Asset
from airflow.utils.state import DagRunState
from pendulum import FixedTimezone
from sqlalchemy import select

from airflow_provider_streams import ParquetSink, PublishTime, Window
from airflow_provider_streams.airflow_features import Feature, dag_bags
from airflow_provider_streams.airflow_runtime import asset_events
from airflow_provider_streams.errors import ReadStalled
from airflow_provider_streams.operators.announcement import AnnounceWindowsOperator
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.timetables import window_timetable
from airflow_provider_streams.timetables.run_facts import run_facts
from airflow_provider_streams.windows.plan.airflow_run_window import resolve_window
from tests.airflow.test_events import events
from tests.airflow_versions import needs

pytestmark = [pytest.mark.dagtest, needs(Feature.PARTITION_EVENTS)]

MINUTE = timedelta(minutes=1)
NO_SLACK = PublishTime(timedelta(0))
START = datetime(2026, 11, 1, tzinfo=UTC)


def timetable(key_format="%Y%m%d.%H%M", zone="UTC", cron="* * * * *"):
    from airflow.sdk import CronPartitionTimetable

    return CronPartitionTimetable(cron, timezone=zone, run_offset=-1, key_format=key_format)


def reading(dag_id, sink, schedule, kind=ReadWindowOperator, **arguments):
    if kind is not AnnounceWindowsOperator:
        arguments["basis"] = NO_SLACK
    with DAG(dag_id, schedule=schedule, start_date=START) as dag:
        kind(task_id="read", source=FakeSource("numbers"), sink=sink, **arguments)
    return dag


@pytest.fixture
def lake(tmp_path):
    return ParquetSink(str(tmp_path / "lake"))


@pytest.fixture
def waiting(migrated_database):
    """A DAG that waits for an asset's partitions, and a round of Airflow's scheduler: the keys of the DAG's runs."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.sdk import PartitionedAssetTimetable
    from airflow.utils.session import create_session

    def wait_for(dag_id, uri):
        dag = DAG(dag_id, schedule=PartitionedAssetTimetable(assets=Asset(uri=uri)), start_date=START)
        with create_session() as session:
            if session.get(DagBundleModel, "testing") is None:
                session.add(DagBundleModel(name="testing"))
        bag = dag_bags().DagBag(dag_folder="/dev/null")
        bag.bag_dag(dag)
        dag_bags().sync_bag_to_db(bag, "testing", None)
        with create_session() as session:
            session.get(DagModel, dag_id).is_paused = False

        def started():
            with create_session() as session:
                SchedulerJobRunner(job=Job())._create_dagruns_for_partitioned_asset_dags(session)
                runs = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.id))
                return [run.partition_key for run in runs]

        return started

    return wait_for


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_a_window_of_a_dag_with_keys_of_its_own_starts_one_run(dag_test, fake, spark_stand_in, lake, waiting, *, zone):
    fake(events=600)
    dag_id = f"own_keys_{zone[:3].lower()}"
    dag = reading(dag_id, lake, timetable(zone=zone))
    started = waiting(f"waits_for_{dag_id}", lake.asset_uri)
    for minute in (0, 1):
        assert dag_test(dag, partition=EPOCH + minute * MINUTE).state == DagRunState.SUCCESS
    expected = [f"20261120.{'1000' if zone == 'UTC' else '1530'}", f"20261120.{'1001' if zone == 'UTC' else '1531'}"]
    assert [key for key, _ in events(dag_id)] == expected
    assert started() == expected
    assert dag_test(dag, partition=EPOCH).state == DagRunState.SUCCESS
    assert {key for key, _ in events(dag_id)} == set(expected), "a window that is read again has the key that it had"


def test_windows_that_a_failed_run_left_have_the_keys_of_their_own_runs(dag_test, fake, spark_stand_in, lake, waiting):
    """A backfill that failed after some windows; the next run of the partitioned DAG announces them."""
    fake(events=600)

    def stall(spec):
        if spec.plan.window.start == EPOCH + 2 * MINUTE:
            raise ReadStalled("numbers-0", 1, 2, seconds=60)

    spark_stand_in.before = stall
    span = {"start": EPOCH, "end": EPOCH + 3 * MINUTE, "window_length": MINUTE}
    filling = reading("fills_first", lake, None, BackfillWindowsOperator, reader="r", **span)
    assert dag_test(filling).state == DagRunState.FAILED
    spark_stand_in.before = lambda _spec: None
    started = waiting("waits_for_left", lake.asset_uri)
    assert (
        dag_test(reading("takes_over", lake, timetable(), reader="r"), partition=EPOCH + 3 * MINUTE).state == "success"
    )
    keys = ["20261120.1000", "20261120.1001", "20261120.1003"]
    assert sorted(key for key, _ in events("takes_over")) == keys
    assert sorted(started()) == keys


@pytest.mark.parametrize("announced_by", ["backfill", "teardown"])
def test_a_backfill_in_a_partitioned_dag_writes_its_keys(
    dag_test, fake, spark_stand_in, lake, waiting, *, announced_by
):
    fake(events=600)
    span = {"start": EPOCH, "end": EPOCH + 3 * MINUTE, "window_length": MINUTE}
    dag_id = f"fills_{announced_by}"
    dag = reading(dag_id, lake, timetable(), BackfillWindowsOperator, reader="r", **span)
    if announced_by == "teardown":

        def stall(spec):
            if spec.plan.window.start == EPOCH + MINUTE:
                raise ReadStalled("numbers-0", 1, 2, seconds=60)

        spark_stand_in.before = stall
        announce = AnnounceWindowsOperator(
            task_id="announce", source=FakeSource("numbers"), sink=lake, reader="r", dag=dag
        )
        dag.get_task("read") >> announce.as_teardown(on_failure_fail_dagrun=False)
    started = waiting(f"waits_for_{dag_id}", lake.asset_uri)
    dag_test(dag, partition=EPOCH + 2 * MINUTE)
    expected = ["20261120.1000", "20261120.1001", "20261120.1002"]
    if announced_by == "teardown":
        expected.remove("20261120.1001")
    assert sorted(key for key, _ in events(dag_id)) == expected
    assert sorted(started()) == expected


def test_hours_that_a_daily_dag_fills_have_keys_of_hours(dag_test, fake, spark_stand_in, lake, waiting):
    """Its own key is its day's, and no window of an hour is that."""
    fake(events=600)
    span = {"start": EPOCH, "end": EPOCH + 2 * MINUTE, "window_length": MINUTE}
    dag = reading("day_fills", lake, timetable("%Y-%m-%d", cron="@daily"), BackfillWindowsOperator, **span)
    started = waiting("waits_for_day_fills", lake.asset_uri)
    dag_test(dag, partition=EPOCH.replace(hour=0))
    keys = ["2026-11-20T10:00:00", "2026-11-20T10:01:00"]
    assert sorted(key for key, _ in events("day_fills")) == keys
    assert sorted(started()) == keys


def test_a_window_with_the_run_own_key_is_announced_by_a_later_run(dag_test, fake, spark_stand_in, lake, caplog):
    """The first hour of a day that a daily DAG fills; here the first minute of an hour."""
    fake(events=8000)
    span = {"start": "{{ partition_date }}", "end": "{{ partition_date.add(minutes=2) }}", "window_length": MINUTE}
    schedule = timetable("%Y-%m-%dT%H:%M:%S", cron="@hourly")
    dag = reading("hour_fills", lake, schedule, BackfillWindowsOperator, **span)
    run = dag_test(dag, partition=EPOCH)
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["unannounced"] == 1
    assert keyed("hour_fills") == {"2026-11-20T10:01:00": "10:01"}
    assert (
        f"{Window(EPOCH, EPOCH + MINUTE)} has no event of {lake.location} yet: its key '2026-11-20T10:00:00' is this "
        f"run's own key, which names {Window(EPOCH, EPOCH + timedelta(hours=1))}. A later run announces it"
    ) in caplog.text
    assert "does not tell by which rule" not in caplog.text
    dag_test(dag, partition=EPOCH + timedelta(hours=1))
    told = {"2026-11-20T10:00:00": "10:00", "2026-11-20T10:01:00": "10:01", "2026-11-20T11:01:00": "11:01"}
    assert keyed("hour_fills") == told
    announcing = reading("tells_later", lake, None, AnnounceWindowsOperator, reader="hour_fills.read")
    dag_test(announcing)
    assert keyed("tells_later") == {"2026-11-20T11:00:00": "11:00"}


def test_the_key_of_a_run_whose_window_failed_is_not_announced(dag_test, fake, spark_stand_in, lake, waiting):
    fake(events=600)

    def stall(spec):
        if spec.plan.window.start == EPOCH + 2 * MINUTE:
            raise ReadStalled("numbers-0", 1, 2, seconds=60)

    spark_stand_in.before = stall
    span = {"start": EPOCH, "end": EPOCH + 3 * MINUTE, "window_length": MINUTE}
    dag = reading("own_fails", lake, timetable(), BackfillWindowsOperator, reader="r", **span)
    announce = AnnounceWindowsOperator(task_id="announce", source=FakeSource("numbers"), sink=lake, reader="r", dag=dag)
    dag.get_task("read") >> announce.as_teardown(on_failure_fail_dagrun=False)
    started = waiting("waits_for_own_fails", lake.asset_uri)
    dag_test(dag, partition=EPOCH + 2 * MINUTE)
    assert sorted(started()) == ["20261120.1000", "20261120.1001"]
    assert {key: extra["window"]["start"][11:16] for key, extra in events("own_fails")} == {
        "20261120.1000": "10:00",
        "20261120.1001": "10:01",
    }


def left_by_a_failed_backfill(dag_test, spark_stand_in, sink, source="numbers"):
    """Three windows that landed and were not announced."""

    def stall(spec):
        if spec.plan.window.start == EPOCH + 3 * MINUTE:
            raise ReadStalled("numbers-0", 1, 2, seconds=60)

    spark_stand_in.before = stall
    span = {"start": EPOCH, "end": EPOCH + 4 * MINUTE, "window_length": MINUTE}
    with DAG("leaves", schedule=None, start_date=START) as dag:
        BackfillWindowsOperator(
            task_id="read", source=FakeSource(source), sink=sink, basis=NO_SLACK, reader="r", **span
        )
    assert dag_test(dag).state == DagRunState.FAILED
    spark_stand_in.before = lambda _spec: None


def test_the_run_own_window_is_announced_before_older_ones(dag_test, fake, spark_stand_in, lake, monkeypatch):
    fake(events=600)
    monkeypatch.setattr(asset_events, "MOST_EVENTS", 2)
    left_by_a_failed_backfill(dag_test, spark_stand_in, lake)
    dag = reading("own_first", lake, timetable(), reader="r")
    run = dag_test(dag, partition=EPOCH + 4 * MINUTE)
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["unannounced"] == 2
    assert [key for key, _ in events("own_first")] == ["20261120.1004", "20261120.1000"]
    dag_test(dag, partition=EPOCH + 5 * MINUTE)
    assert sorted(keyed("own_first").values()) == ["10:00", "10:01", "10:04", "10:05"]


def test_the_run_own_window_comes_first_in_each_table_of_a_fan_out(
    dag_test, fake, spark_stand_in, tmp_path, monkeypatch
):
    fake(events=600, streams="a,b")
    monkeypatch.setattr(asset_events, "MOST_EVENTS", 3)
    sink = ParquetSink(f"{tmp_path}/lake/{{topic}}")
    left_by_a_failed_backfill(dag_test, spark_stand_in, sink, "a,b")
    with DAG("own_first_of_all", schedule=timetable(), start_date=START) as dag:
        ReadWindowOperator(task_id="read", source=FakeSource("a,b"), sink=sink, basis=NO_SLACK, reader="r")
    run = dag_test(dag, partition=EPOCH + 4 * MINUTE)
    whole = [key for key, extra in events("own_first_of_all") if "tables" in extra]
    single = [key for key, extra in events("own_first_of_all") if "tables" not in extra]
    assert sorted(whole) == ["20261120.1000", "20261120.1001", "20261120.1004"]
    assert sorted(single) == ["20261120.1000", "20261120.1004", "20261120.1004"], "one budget for both tables"
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["unannounced"] == 5


def backfill_of(dag_id, sink, minutes, **arguments):
    """Of another DAG than the reader's."""
    span = {"start": EPOCH, "end": EPOCH + minutes * MINUTE, "window_length": MINUTE}
    return reading(dag_id, sink, None, BackfillWindowsOperator, reader="r", **span, **arguments)


def keyed(dag_id):
    return {key: extra["window"]["start"][11:16] for key, extra in events(dag_id) if key}


def test_a_dag_that_names_windows_in_another_zone_than_an_earlier_backfill(dag_test, fake, spark_stand_in, lake):
    """No two windows have one key: the DAG's windows wait until those that the backfill named have their own keys."""
    fake(events=600)
    dag_test(backfill_of("came_first", lake, 2))
    assert keyed("came_first") == {"2026-11-20T10:00:00": "10:00", "2026-11-20T10:01:00": "10:01"}
    # its clocks are a minute ahead
    dag = reading("own_zone", lake, timetable("%Y-%m-%dT%H:%M:%S", zone=FixedTimezone(60)), reader="r")
    dag_test(dag, partition=EPOCH)
    assert events("own_zone") == []
    dag_test(dag, partition=EPOCH + MINUTE)
    assert keyed("own_zone") == {"2026-11-20T10:02:00": "10:01"}
    dag_test(dag, partition=EPOCH + 2 * MINUTE)
    assert keyed("own_zone") == {
        "2026-11-20T10:01:00": "10:00",
        "2026-11-20T10:02:00": "10:01",
        "2026-11-20T10:03:00": "10:02",
    }


def test_a_backfill_elsewhere_writes_the_keys_of_the_dag_that_reads(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    dag = reading("has_read", lake, timetable(zone=FixedTimezone(60)), reader="r")
    dag_test(dag, partition=EPOCH + 3 * MINUTE)
    dag_test(backfill_of("fills_others", lake, 2))
    assert keyed("fills_others") == {"20261120.1001": "10:00", "20261120.1002": "10:01"}


def test_a_window_that_is_read_again_elsewhere_keeps_its_key(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    dag_test(backfill_of("names", lake, 1, partition_key_format="%H.%M"))
    dag_test(backfill_of("names_again", lake, 2, select="all"))
    assert keyed("names_again") == {"10.00": "10:00", "2026-11-20T10:01:00": "10:01"}


def test_of_two_windows_that_the_dag_names_alike_the_second_is_not_announced(
    dag_test, fake, spark_stand_in, lake, waiting, *, caplog
):
    """As an hour that comes twice in autumn, if its key tells no offset."""
    fake(events=600)
    dag = reading("alike", lake, timetable("%Y-%m-%dT%H"))
    started = waiting("waits_for_alike", lake.asset_uri)
    for minute in (0, 1):
        dag_test(dag, partition=EPOCH + minute * MINUTE)
    assert keyed("alike") == {"2026-11-20T10": "10:00"}
    assert started() == ["2026-11-20T10"]
    assert "which is the key of 2026-11-20T10:00:00Z/2026-11-20T10:01:00Z" in caplog.text


def test_a_dag_scheduled_by_the_table_alone_starts_from_runs_without_a_key(dag_test, fake, spark_stand_in, lake):
    """Airflow gives a run's key to each of its events, and an event with a key starts no such DAG."""
    from airflow.models.asset import AssetDagRunQueue
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    fake(events=600)
    bag = dag_bags().DagBag(dag_folder="/dev/null")
    bag.bag_dag(DAG("waits_for_any", schedule=[Asset(uri=lake.asset_uri)], start_date=START))
    dag = reading("feeds_any", lake, timetable())

    def starts_it(**how):
        dag_test(dag, **how)
        with create_session() as session:
            queued = select(AssetDagRunQueue).where(AssetDagRunQueue.target_dag_id == "waits_for_any")
            return session.scalars(queued).first() is not None

    dag_test(dag, logical_date=EPOCH)  # Airflow has the bundle
    dag_bags().sync_bag_to_db(bag, "testing", None)
    with create_session() as session:
        session.get(DagModel, "waits_for_any").is_paused = False
    assert not starts_it(partition=EPOCH)
    assert starts_it(logical_date=EPOCH + 3 * MINUTE)


def test_a_window_that_is_not_the_run_has_the_key_of_its_own_run(dag_test, fake, spark_stand_in, lake, waiting):
    """A task of a partitioned DAG that says itself what it reads, here what came before its partition."""
    fake(events=600)
    window = Window(EPOCH, EPOCH + MINUTE)
    dag = reading("reads_before", lake, timetable(), window=window)
    started = waiting("waits_for_before", lake.asset_uri)
    assert dag_test(dag, partition=EPOCH + 2 * MINUTE).state == DagRunState.SUCCESS
    assert started() == ["20261120.1000"]


def test_a_run_that_cannot_name_a_window_leaves_it_to_one_that_can(dag_test, fake, spark_stand_in, lake, waiting):
    fake(events=600)
    dag = reading("own_format", lake, timetable(), window=Window(EPOCH, EPOCH + 2 * MINUTE), reader="r")
    started = waiting("waits_for_named", lake.asset_uri)
    run = dag_test(dag, partition=EPOCH + 4 * MINUTE)
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["unannounced"] == 1
    assert events("own_format") == []
    span = {"start": EPOCH, "end": EPOCH + 2 * MINUTE, "window_length": 2 * MINUTE}
    dag_test(reading("names_it", lake, None, BackfillWindowsOperator, reader="r", **span))
    assert started() == ["2026-11-20T10:00:00"]


def test_each_table_of_a_fan_out_has_the_run_key(dag_test, fake, spark_stand_in, tmp_path, waiting):
    fake(events=120, streams="a,b")
    sink = ParquetSink(f"{tmp_path}/lake/{{topic}}")
    with DAG("own_keys_fan_out", schedule=timetable(), start_date=START) as dag:
        ReadWindowOperator(task_id="read", source=FakeSource("a,b"), sink=sink, basis=NO_SLACK)
    whole, single = waiting("waits_for_all", sink.asset_uri), waiting("waits_for_a", f"file://{tmp_path}/lake/a")
    assert dag_test(dag, partition=EPOCH).state == DagRunState.SUCCESS
    assert [key for key, _ in events("own_keys_fan_out")] == ["20261120.1000"] * 3
    assert (whole(), single()) == (["20261120.1000"], ["20261120.1000"])


def test_a_run_without_a_key_reads_the_last_full_window_before_its_date(dag_test, fake, spark_stand_in, lake):
    """As `airflow dags test <dag> <date>` starts it; there is no way to give it a key."""
    fake(events=600)
    dag = reading("by_hand", lake, timetable())
    run = dag_test(dag, logical_date=EPOCH + 2.5 * MINUTE)
    window = run.get_task_instance("read").xcom_pull(task_ids="read")["window"]
    assert window == {"start": "2026-11-20T10:01:00Z", "end": "2026-11-20T10:02:00Z"}
    assert [key for key, _ in events("by_hand")] == [None], "it is no run of a partition"


@pytest.mark.parametrize("by", ["command line", "task"])
@pytest.mark.parametrize("schedule", [timetable(), window_timetable("1m")], ids=["partitions", "intervals"])
def test_a_triggered_run_reads_the_last_full_window_before_its_date(migrated_database, *, by, schedule):
    """`airflow dags trigger -l`, and `TriggerDagRunOperator`: Airflow's own function that makes such runs."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    dag_id = f"triggered_{by[:4]}_{type(schedule).__name__}"
    dag = DAG(dag_id, schedule=schedule, start_date=START)
    with create_session() as session:
        if session.get(DagBundleModel, "testing") is None:
            session.add(DagBundleModel(name="testing"))
    bag = dag_bags().DagBag(dag_folder="/dev/null")
    bag.bag_dag(dag)
    dag_bags().sync_bag_to_db(bag, "testing", None)
    how = {
        "command line": (DagRunTriggeredByType.CLI, DagRunType.MANUAL),
        "task": (DagRunTriggeredByType.OPERATOR, DagRunType.OPERATOR_TRIGGERED),
    }
    triggered_by, run_type = how[by]
    run = trigger_dag(dag_id, triggered_by=triggered_by, run_type=run_type, logical_date=EPOCH + 2.5 * MINUTE)
    names = ("logical_date", "data_interval_start", "data_interval_end", "partition_key", "partition_date")
    context = {"dag": dag, "dag_run": run, **{name: getattr(run, name) for name in names}}
    found = resolve_window(None, None, run_facts(context))
    assert found.window == Window(EPOCH + MINUTE, EPOCH + 2 * MINUTE)


def test_a_run_without_a_key_and_a_date_is_told_which_key_to_give(dag_test, fake, spark_stand_in, lake, capsys):
    run = dag_test(reading("dateless", lake, timetable()), logical_date=None)
    assert run.state == DagRunState.FAILED
    printed = capsys.readouterr().out
    assert "with neither a partition key nor a logical date" in printed
    assert f"like '{datetime.now(UTC):%Y%m%d}." in printed
