"""A day waits for its hours: the example's two DAGs, by the scheduler's own rule for partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from airflow_provider_streams.airflow_features import dag_bags
from airflow_provider_streams.triggers.new_windows import KEY_FORMAT
from tests.airflow.test_example_dags import EXAMPLES, example

pytestmark = pytest.mark.dagtest

DAY = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = [(DAY + timedelta(hours=hour)).strftime(KEY_FORMAT) for hour in range(24)]


@pytest.fixture
def stored(migrated_database):
    """Both DAGs in the metadata database, and a scheduler that has not started."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        if session.get(DagBundleModel, "testing") is None:
            session.add(DagBundleModel(name="testing"))
    bag = dag_bags().DagBag(dag_folder=str(EXAMPLES / "daily_from_hours.py"))
    assert sorted(bag.dags) == ["covered_hours", "daily_from_hours"]
    dag_bags().sync_bag_to_db(bag, "testing", None)
    with create_session() as session:
        # a paused DAG collects no partitions
        session.get(DagModel, "daily_from_hours").is_paused = False
    return SchedulerJobRunner(job=Job())


def cover(keys):
    """What `ReadWindowOperator` does to its table's asset, in a run with this partition."""
    from airflow.assets.manager import AssetManager
    from airflow.models.asset import AssetModel
    from airflow.utils.session import create_session

    uri = example("daily_from_hours").timetable.asset_condition.uri
    with create_session() as session:
        asset = session.scalar(select(AssetModel).where(AssetModel.uri == uri))
        for key in keys:
            AssetManager.register_asset_change(asset=asset, session=session, partition_key=key)


def started(scheduler):
    """The partitions of the daily DAG's runs, after one more round of the scheduler."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        scheduler._create_dagruns_for_partitioned_asset_dags(session)
        runs = session.scalars(select(DagRun).where(DagRun.dag_id == "daily_from_hours"))
        return [run.partition_key for run in runs]


def test_a_day_starts_once_when_its_last_hour_is_covered(stored):
    cover([HOURS[23], *HOURS[:22]])
    assert started(stored) == []
    cover([HOURS[5]])
    assert started(stored) == [], "an hour that is read again is still one hour"
    cover([HOURS[22]])
    assert started(stored) == ["2026-11-20"]
    assert started(stored) == ["2026-11-20"]
