"""Asset events say what was landed: each window, once, under its partition's key; and nothing where nothing was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, Asset
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, PublishTime, Window
from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.airflow_runtime import asset_events
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import ReadStalled
from airflow_provider_streams.operators.announcement import AnnounceWindowsOperator
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from tests.airflow_versions import needs

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
MINUTE = timedelta(minutes=1)
NO_SLACK = PublishTime(timedelta(0))
KEYS = [f"2026-11-20T10:{minute:02d}:00" for minute in range(10)]


def minutes(start: int, end: int) -> Window:
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


@pytest.fixture
def lake(tmp_path):
    return ParquetSink(str(tmp_path / "lake"))


def filling(dag_id: str, sink: ParquetSink | None, *more: Any, **arguments: Any) -> DAG:
    span = {"start": EPOCH, "end": EPOCH + 10 * MINUTE, "window_length": MINUTE}
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        fill = BackfillWindowsOperator(
            task_id="fill", source=SOURCE, sink=sink, basis=NO_SLACK, reader="r", **{**span, **arguments}
        )
        for task in more:
            fill >> task
    return dag


def events(dag_id: str) -> list[Any]:
    """Those of the table, in order."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(AssetEvent).where(AssetEvent.source_dag_id == dag_id).order_by(AssetEvent.id))
        return [(getattr(event, "partition_key", None), event.extra) for event in found]


def result(run: Any, task: str = "fill") -> dict[str, Any]:
    return run.get_task_instance(task).xcom_pull(task_ids=task)


@needs(Feature.PARTITION_EVENTS)
def test_each_window_of_a_backfill_is_told_under_its_key(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    run = dag_test(filling("told", lake))
    assert result(run)["unannounced"] == 0
    found = events("told")
    keyed = {key: extra for key, extra in found if key}
    assert sorted(keyed) == KEYS
    assert all(extra["window"]["start"] == f"{key}Z" and extra["rows"] == 120 for key, extra in keyed.items())
    (plain,) = (extra for key, extra in found if not key)
    assert [one["window"] for one in plain["windows"]] == [minutes(n, n + 1).to_json() for n in range(10)]


def test_what_reads_nothing_tells_nothing(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    dag_test(filling("dry", lake, dry_run=True))
    with DAG("dry_read", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(
            task_id="read",
            source=SOURCE,
            sink=lake,
            window=minutes(0, 1),
            basis=NO_SLACK,
            dry_run=True,
            reader="dry",
        )
    dag_test(dag)
    dag_test(filling("again", lake))
    told = len(events("again"))
    dag_test(filling("again", lake))
    assert (events("dry"), events("dry_read")) == ([], [])
    each = 11 if has(Feature.PARTITION_EVENTS) else 1  # one of the table, and one of each of ten windows
    assert (told, len(events("again"))) == (each, each), "nothing is missing any more"


def test_a_read_tells_its_window(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    with DAG("tells", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(task_id="read", source=SOURCE, sink=lake, window=minutes(0, 1), basis=NO_SLACK)
    got = result(dag_test(dag), "read")
    ((key, extra),) = events("tells")
    assert key is None
    assert {name: extra[name] for name in ("window", "fingerprint", "rows", "verdict", "reader")} == {
        "window": minutes(0, 1).to_json(),
        "fingerprint": got["fingerprint"],
        "rows": 120,
        "verdict": "complete",
        "reader": "tells.read",
    }


@needs(Feature.PARTITION_EVENTS)
def test_what_a_failed_backfill_landed_is_told_by_its_teardown(dag_test, fake, spark_stand_in, lake):
    fake(events=600)

    def stall(spec):
        if spec.plan.window == minutes(3, 4):
            raise ReadStalled("numbers-0", 1, 2, seconds=60)

    spark_stand_in.before = stall
    with DAG("half", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        fill = BackfillWindowsOperator(
            task_id="fill",
            source=SOURCE,
            sink=lake,
            basis=NO_SLACK,
            reader="r",
            start=EPOCH,
            end=EPOCH + 10 * MINUTE,
            window_length=MINUTE,
        )
        announce = AnnounceWindowsOperator(task_id="announce", source=SOURCE, sink=lake, reader="r")
        fill >> announce.as_teardown(setups=None, on_failure_fail_dagrun=False)
    run = dag_test(dag)
    assert run.get_task_instance("fill").state == "failed"
    assert run.get_task_instance("announce").state == "success"
    assert sorted(key for key, _ in events("half") if key) == KEYS[:3] + KEYS[4:]
    assert run.state == DagRunState.FAILED


@needs(Feature.PARTITION_EVENTS)
def test_what_a_failed_backfill_landed_is_told_by_the_next_one(dag_test, fake, spark_stand_in, lake):
    fake(events=600)

    def stall(spec):
        if spec.plan.window == minutes(3, 4):
            raise ReadStalled("numbers-0", 1, 2, seconds=60)

    spark_stand_in.before = stall
    assert dag_test(filling("first", lake)).state == DagRunState.FAILED
    assert events("first") == []
    spark_stand_in.before = lambda _spec: None
    dag_test(filling("second", lake))
    assert sorted(key for key, _ in events("second") if key) == KEYS


def break_once(dag, task="fill"):
    """The task fails after its work: Airflow takes no event of it."""
    broken = [True]

    def post_execute(context, result=None):
        if broken and broken.pop():
            raise RuntimeError("after execute")

    dag.get_task(task)._post_execute_hook = post_execute
    return dag


def told(dag_id):
    """The windows that Airflow heard of, from events of the table."""
    return [fact["window"] for key, extra in events(dag_id) if not key for fact in extra["windows"]]


TEN = [minutes(n, n + 1).to_json() for n in range(10)]


def test_events_of_a_task_that_failed_after_its_work_are_sent_by_its_retry(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    when = {"logical_date": datetime(2026, 11, 20, tzinfo=UTC), "run_after": datetime(2026, 11, 20, tzinfo=UTC)}
    dag = break_once(filling("retried", lake))
    assert dag_test(dag, **when).state == DagRunState.FAILED
    assert events("retried") == []
    run = dag_test(dag, **when)
    assert (result(run)["windows"], result(run)["unannounced"], told("retried")) == ([], 0, TEN)


def test_events_of_a_task_that_failed_after_its_work_are_sent_by_the_next_run(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    assert dag_test(break_once(filling("lost", lake))).state == DagRunState.FAILED
    dag_test(filling("finds", lake))
    assert (events("lost"), told("finds")) == ([], TEN)
    dag_test(filling("finds", lake))
    assert told("finds") == TEN, "Airflow has them: the task that sent them succeeded"
    with open_journal() as journal:
        assert journal.unannounced(SOURCE.key, "r") == ()


def mark_success(dag_id):
    """As a user does: Airflow takes no events then, and has the same state as of a task that succeeded."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(TaskInstance).where(TaskInstance.dag_id == dag_id).values(state="success"))


def test_events_of_a_task_that_a_user_marked_as_success_are_sent_once_it_is_cleared(
    dag_test, fake, spark_stand_in, lake
):
    fake(events=600)
    when = {"logical_date": datetime(2026, 11, 20, tzinfo=UTC), "run_after": datetime(2026, 11, 20, tzinfo=UTC)}
    dag = break_once(filling("marked", lake))
    dag_test(dag, **when)
    mark_success("marked")
    dag_test(dag, **when)
    assert told("marked") == TEN


@pytest.mark.parametrize("again", ["backfill", "cleared read"])
def test_events_of_a_task_that_a_user_marked_as_success_are_sent_once_its_windows_are_read_again(
    dag_test, fake, spark_stand_in, lake, *, again
):
    fake(events=600)
    name = again.partition(" ")[0]
    when = {"logical_date": datetime(2026, 11, 20, tzinfo=UTC), "run_after": datetime(2026, 11, 20, tzinfo=UTC)}
    with DAG(f"marked_{name}", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(task_id="read", source=SOURCE, sink=lake, window=minutes(0, 1), basis=NO_SLACK, reader="r")
    dag_test(break_once(dag, "read"), **when)
    mark_success(dag.dag_id)
    dag_test(filling(f"sees_{name}", lake))
    assert told(f"sees_{name}") == TEN[1:]
    if again == "backfill":
        dag = filling("reads_again", lake, select="all", end=EPOCH + MINUTE)
    dag_test(dag, **({} if again == "backfill" else when))
    assert told(dag.dag_id) == TEN[:1]


def test_what_a_retry_leaves_over_is_sent_later(dag_test, fake, spark_stand_in, lake, monkeypatch):
    """The first try sent some events, in vain; its retry sends as many, of which others may be the first ones."""
    fake(events=600)
    monkeypatch.setattr(asset_events, "MOST_EVENTS", 6)
    when = {"logical_date": datetime(2026, 11, 20, tzinfo=UTC), "run_after": datetime(2026, 11, 20, tzinfo=UTC)}
    dag = break_once(filling("left_over", lake, start=EPOCH + 5 * MINUTE))
    dag_test(dag, **when)
    assert result(dag_test(filling("all_of_them", lake)))["unannounced"] == 4
    dag_test(filling("all_of_them", lake))
    assert told("all_of_them") == TEN


@needs(Feature.TASK_STATE)  # `dag.test` says that a run began at its logical date
def test_a_run_that_was_made_again_under_its_old_name_reads_again(dag_test, fake, spark_stand_in, lake):
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    fake(events=600)
    when = datetime(2026, 11, 20, tzinfo=UTC)
    first = dag_test(filling("all", lake, select="all"), logical_date=when, run_after=when)
    assert len(result(first)["covered"]) == 10
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == "all"))
    second = dag_test(filling("all", lake, select="all"), logical_date=when, run_after=when)
    assert second.run_id == first.run_id
    assert len(result(second)["covered"]) == 10


def test_a_source_of_a_mapped_task_that_is_not_the_tables_is_refused(dag_test, fake, spark_stand_in, lake):
    fake(events=600)
    with DAG("mapped", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator.partial(task_id="read", sink=lake, window=str(minutes(0, 1)), basis=NO_SLACK).expand(
            source=[FakeSource("a"), FakeSource("b")]
        )
    run = dag_test(dag)
    states = sorted(str(ti.state) for ti in run.get_task_instances())
    assert states == ["failed", "success"]
    with open_journal() as journal:
        covered = [
            journal.coverage(FakeSource(name).key, "mapped.read", EPOCH, EPOCH + MINUTE).counts["covered"]
            for name in ("a", "b")
        ]
    assert sorted(covered) == [0, 1]


@pytest.mark.usefixtures("spark_stand_in")
@pytest.mark.parametrize("is_declared", [True, False])
def test_a_mapped_task_says_that_its_table_is_undeclared(dag_test, fake, lake, caplog, is_declared):
    fake(events=600)
    outlets = [Asset(uri=lake.asset_uri)] if is_declared else []
    with DAG("mapped", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator.partial(task_id="read", source=SOURCE, sink=lake, basis=NO_SLACK, outlets=outlets).expand(
            window=[str(minutes(0, 1)), str(minutes(1, 2))]
        )
    assert dag_test(dag).state == DagRunState.SUCCESS
    assert ("outlets=[Asset(uri=" in caplog.text) is not is_declared


@pytest.mark.parametrize("template", ["{{ none }}", "{{ params.get('x', '') }}", " "])
def test_a_readers_name_that_renders_to_nothing_is_refused(dag_test, fake, spark_stand_in, template):
    fake(events=600)
    with DAG("nameless", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(
            task_id="read", source=SOURCE, sink=None, window=minutes(0, 1), basis=NO_SLACK, reader=template
        )
    assert dag_test(dag).state == DagRunState.FAILED
    assert spark_stand_in.specs == []
