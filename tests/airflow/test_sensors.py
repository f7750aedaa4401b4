"""Sensors inside Airflow's task runner, waiting in the worker and in the triggerer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import PublishTime, Window
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.triggers import base as trigger_state

pytestmark = pytest.mark.dagtest

SOURCE = FakeSource("numbers")
WINDOW = Window(EPOCH + timedelta(seconds=10), EPOCH + timedelta(seconds=20))
NO_SLACK = PublishTime(timedelta(0))


def waiting(dag_id: str, **arguments: Any) -> DAG:
    """Wait for the window, then read it."""
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 11, 1, tzinfo=UTC)) as dag:
        ready = WindowReadySensor(
            task_id="ready",
            **{"source": SOURCE, "window": WINDOW, "basis": NO_SLACK, "poke_interval": 0.01, **arguments},
        )
        ready >> ReadWindowOperator(task_id="read", source=SOURCE, window=WINDOW, basis=NO_SLACK, sink=None)
    return dag


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Call-backs, one taken before each poll of a trigger: what happens at the server meanwhile."""
    steps: list[Any] = []
    asked = trigger_state.StateTrigger.__dict__["run"]

    async def run(self: Any) -> Any:
        ask = self.ask

        async def next_step() -> Any:
            if steps:
                await asyncio.to_thread(steps.pop(0))
            return await ask()

        self.ask = next_step
        async for event in asked(self):
            yield event

    monkeypatch.setattr(trigger_state.StateTrigger, "run", run)
    return steps


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_ready_window_is_not_waited_for(dag_test, fake, spark_stand_in, deferrable):
    run = dag_test(waiting(f"ready_{deferrable}", deferrable=deferrable))
    assert run.state == DagRunState.SUCCESS
    ti = run.get_task_instance("ready")
    assert ti.xcom_pull(task_ids="ready") == {"window": WINDOW.to_json()}


def test_a_deferred_sensor_resumes_when_the_window_is_complete(dag_test, fake, spark_stand_in, polls, capfd):
    fake(events=15)
    polls += [lambda: None, lambda: fake(events=19), lambda: fake(events=25)]
    run = dag_test(waiting("later", deferrable=True))
    assert run.state == DagRunState.SUCCESS
    assert polls == [], "it polled until the window was complete"
    assert run.get_task_instance("ready").xcom_pull(task_ids="ready") == {"window": WINDOW.to_json()}
    assert run.get_task_instance("read").xcom_pull(task_ids="read")["rows"] == 20
    assert "events are known only until" in capfd.readouterr().out


def test_a_deferred_sensor_survives_a_restart_of_the_server(dag_test, fake, spark_stand_in, polls, tmp_path):
    fake(events=15)
    polls += [(tmp_path / "truth.json").unlink, lambda: None, lambda: fake(events=25)]
    assert dag_test(waiting("restart", deferrable=True)).state == DagRunState.SUCCESS
    assert polls == []


def test_a_deferred_sensor_raises_the_typed_error_without_retries(dag_test, fake, spark_stand_in, polls, capfd):
    fake(events=15)
    polls += [lambda: fake(events=15, password="secret-password")]
    run = dag_test(waiting("refused", deferrable=True, retries=2, retry_delay=timedelta(0)))
    ti = run.get_task_instance("ready")
    assert (ti.state, ti.try_number) == (TaskInstanceState.FAILED, 1)
    assert "AuthenticationFailed" in capfd.readouterr().out


@pytest.mark.parametrize("deferrable", [False, True])
def test_soft_fail_skips(dag_test, fake, spark_stand_in, deferrable):
    fake(events=15, password="secret-password")
    run = dag_test(waiting(f"soft_{deferrable}", deferrable=deferrable, soft_fail=True))
    assert run.get_task_instance("ready").state == TaskInstanceState.SKIPPED


def test_a_worker_waits_out_a_restart_too(dag_test, fake, spark_stand_in, monkeypatch):
    from airflow_provider_streams.errors import SystemUnavailable

    answers = [SystemUnavailable("the fake server", "restarting"), None]
    ask = WindowReadySensor.ask

    def flaky(self, context):
        if failure := answers.pop(0):
            raise failure
        return ask(self, context)

    monkeypatch.setattr(WindowReadySensor, "ask", flaky)
    assert dag_test(waiting("worker_restart", deferrable=False)).state == DagRunState.SUCCESS
    assert answers == []


def test_a_worker_stops_waiting_at_the_timeout(dag_test, fake, spark_stand_in):
    fake(events=15)
    run = dag_test(waiting("timeout", deferrable=False, timeout=0.05))
    assert run.get_task_instance("ready").state == TaskInstanceState.FAILED
