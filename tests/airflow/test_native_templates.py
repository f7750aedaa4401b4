"""DAGs that render templates to native objects: what was written is what is read, or the task fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.utils.state import DagRunState

from airflow_provider_streams import ParquetSink, PublishTime, ReadWindowOperator, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

pytestmark = pytest.mark.dagtest

WINDOW = Window(EPOCH, EPOCH + timedelta(minutes=1))


def reading(dag_id: str, **arguments: Any) -> DAG:
    how = {"source": FakeSource("numbers"), "sink": None, "window": WINDOW, "basis": PublishTime(timedelta(0))}
    with DAG(
        dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC), render_template_as_native_obj=True
    ) as dag:
        found = {name: one() if callable(one) else one for name, one in {**how, **arguments}.items()}
        ReadWindowOperator(task_id="read", params={"year": 2026, "none": None}, **found)
    return dag


def covered(reader: str, source: str = "numbers") -> int:
    with open_journal() as journal:
        return journal.coverage(FakeSource(source).key, reader, WINDOW.start, WINDOW.end).counts["covered"]


@task
def chosen() -> dict[str, str]:
    return WINDOW.to_json()


def test_numbers_windows_and_settings_are_taken_as_written(dag_test, fake, spark_stand_in, tmp_path):
    fake(events=120)
    dag = reading(
        "natively",
        sink=ParquetSink(f"{tmp_path}/{{{{ params.year }}}}"),
        reader="{{ params.year }}",
        window="{{ ti.xcom_pull('chosen') }}",
        spark={"conf": {"spark.x": "12e5"}, "driver_memory": "4g"},
    )
    with dag:
        chosen() >> dag.get_task("read")
    assert dag_test(dag).state == DagRunState.SUCCESS
    assert covered("2026") == 1
    ((_, settings),) = spark_stand_in.settings
    assert settings.conf == {"spark.x": "12e5", "spark.driver.memory": "4g"}
    assert list(tmp_path.glob("2026/window_start=*/window_end=*/*.parquet"))


def test_a_window_may_be_another_tasks_output(dag_test, fake, spark_stand_in):
    fake(events=120)
    assert dag_test(reading("of_task", window=chosen)).state == DagRunState.SUCCESS
    assert covered("of_task.read") == 1


@pytest.mark.parametrize("name", ["reader", "window"])
def test_nothing_is_no_default(dag_test, fake, spark_stand_in, capsys, name):
    fake(events=120)
    dag_id = f"nothing_{name}"
    assert dag_test(reading(dag_id, **{name: "{{ params.none }}"})).state == DagRunState.FAILED
    assert covered(f"{dag_id}.read") == 0
    assert f"ReadWindowOperator: {name}: the template '{{{{ params.none }}}}' gave no value" in capsys.readouterr().out


def test_a_mapped_task_renders_as_others(dag_test, fake, spark_stand_in):
    fake(events=120, streams="a,b")
    with DAG(
        "mapped_native", schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC), render_template_as_native_obj=True
    ) as dag:
        ReadWindowOperator.partial(
            task_id="read", sink=None, basis=PublishTime(timedelta(0)), window=WINDOW.to_json(), params={"year": 2026}
        ).expand_kwargs(
            [
                {"source": FakeSource("{{ 'a' }}"), "reader": "{{ params.year }}"},
                {"source": FakeSource("b"), "reader": "{{ none }}"},
            ]
        )
    assert dag_test(dag).state == DagRunState.FAILED
    assert (covered("2026", "a"), covered("mapped_native.read", "b")) == (1, 0)
