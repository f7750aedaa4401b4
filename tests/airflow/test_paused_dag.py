"""A DAG with a schedule of a timedelta that was paused: what its next run says, and how it goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType

from airflow_provider_streams import BackfillWindowsOperator, ParquetSink, PublishTime, ReadWindowOperator, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.timetables import window_timetable
from tests.airflow_versions import sdk_timetable

pytestmark = pytest.mark.dagtest

MINUTE = timedelta(minutes=1)
SHIFT = timedelta(seconds=7)
SOURCE = FakeSource("numbers")
HOW: dict[str, Any] = {"source": SOURCE, "basis": PublishTime(timedelta(0)), "reader": "r"}


def reading(schedule: Any, sink: ParquetSink) -> DAG:
    with DAG("was_paused", schedule=schedule, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ReadWindowOperator(task_id="read", sink=sink, **HOW)
    return dag


def minute(number: int, shift: timedelta = SHIFT) -> Window:
    return Window(EPOCH + number * MINUTE + shift, EPOCH + (number + 1) * MINUTE + shift)


@pytest.fixture
def table(tmp_path):
    return ParquetSink(str(tmp_path / "lake"))


@pytest.fixture
def scheduled(dag_test, monkeypatch):
    """A run with the data interval that the scheduler gave it."""
    import pendulum
    from airflow.models import dagrun

    make = dagrun.get_or_create_dagrun

    def run(dag: DAG, interval: Window) -> Any:
        def of_interval(*, session: Any, **how: Any) -> Any:
            made = make(session=session, **how)
            made.run_type = DagRunType.SCHEDULED
            made.data_interval_start, made.data_interval_end = map(pendulum.instance, (interval.start, interval.end))
            session.commit()
            return made

        monkeypatch.setattr(dagrun, "get_or_create_dagrun", of_interval)
        return dag_test(dag, logical_date=interval.start)

    return run


def covered() -> list[Window]:
    with open_journal() as journal:
        return [
            one.window
            for one in journal.coverage(SOURCE.key, "r", EPOCH, EPOCH + 10 * MINUTE).windows
            if one.state == "covered"
        ]


def test_the_first_run_after_a_pause_says_how_to_go_on(scheduled, dag_test, fake, spark_stand_in, table, *, capsys):
    fake(events=600)
    delta = reading(sdk_timetable("DeltaDataIntervalTimetable")(MINUTE), table)
    assert scheduled(delta, minute(0)).state == DagRunState.SUCCESS
    capsys.readouterr()
    assert scheduled(delta, minute(4, timedelta(0))).state == DagRunState.FAILED
    said = capsys.readouterr().out
    assert "The DAG's runs tile time by 1m now, and so will all later ones: after a pause" in said
    assert "give the DAG schedule=window_timetable('1m +7s')" in said

    # what it says works
    kept = reading(window_timetable("1m +7s"), table)
    assert scheduled(kept, minute(4)).state == DagRunState.SUCCESS
    with DAG("fills_pause", schedule=None, start_date=EPOCH) as filling:
        BackfillWindowsOperator(task_id="fill", sink=table, start=EPOCH, end=EPOCH + 5 * MINUTE + SHIFT, **HOW)
    assert dag_test(filling).state == DagRunState.SUCCESS
    assert covered() == [minute(number) for number in range(5)]


def test_a_backfill_of_other_windows_is_not_told_of_a_pause(
    scheduled, dag_test, fake, spark_stand_in, table, *, capsys
):
    fake(events=600)
    scheduled(reading(window_timetable("1m +7s"), table), minute(0))
    with DAG("fills_else", schedule=None, start_date=EPOCH) as filling:
        BackfillWindowsOperator(
            task_id="fill", sink=table, start=EPOCH, end=EPOCH + 5 * MINUTE, window_length=MINUTE, **HOW
        )
    capsys.readouterr()
    assert dag_test(filling).state == DagRunState.FAILED
    said = capsys.readouterr().out
    assert "its window schedule is 1m +7s" in said
    assert "after a pause" not in said
