"""Sensors whose trigger the scheduler itself creates: no worker is taken before their window is complete."""

from __future__ import annotations

import pytest

from airflow_provider_streams.airflow_features import Feature
from airflow_provider_streams.testing.fake import dump
from tests.airflow.stack.acts import Dag, connect, start_backfill
from tests.airflow_versions import needs

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

TEN, ELEVEN, TWELVE = (f"2026-11-20T{hour}:00:00Z" for hour in (10, 11, 12))


@pytest.fixture(scope="module")
def truth(airflow_stack):
    """What the connection `fake_from_trigger` holds is in this file."""
    path = airflow_stack.home / "from_trigger.json"
    connect(airflow_stack, "fake_from_trigger", "fake", truth=str(path))
    return path


@needs(Feature.START_FROM_TRIGGER)
def test_no_worker_is_taken_before_the_runs_own_window_is_complete(airflow_stack, truth):
    stack = airflow_stack
    partitions, intervals = Dag(stack, "from_trigger_partitions"), Dag(stack, "from_trigger_intervals")
    dump(truth, events=90, interval_ms=60_000)
    with partitions.unpaused(), intervals.unpaused():
        span = {"from_date": ELEVEN, "to_date": ELEVEN, "max_active_runs": 1}
        start_backfill(stack, partitions.name, **span)
        start_backfill(stack, intervals.name, **span)
        waiting = {}
        for dag in (partitions, intervals):
            (run,) = dag.until("no run", lambda dag=dag: dag.runs("backfill"))
            waiting[dag] = run["dag_run_id"]
            task = dag.deferred(waiting[dag], "ready")
            assert (task["try_number"], task["pid"], task["hostname"]) == (1, None, ""), "no worker had it"
            dag.until(
                "its trigger says nothing", lambda dag=dag: "events are known only until" in dag.log(waiting[dag])
            )
            assert all(".trigger." in log.name for log in dag.log_files(waiting[dag])), "only the triggerer spoke"

        dump(truth, events=120, interval_ms=60_000)
        for dag, rule in ((partitions, "partition"), (intervals, "data_interval")):
            run = waiting[dag]
            dag.succeed(run)
            assert dag.xcom(run, "ready") == {"window": {"start": ELEVEN, "end": TWELVE}}, "a value, not its text"
            plan = dag.xcom(run, "plan")
            assert (plan["window"], plan["window_rule"]) == (dag.xcom(run, "ready")["window"], rule)
            assert dag.task(run, "ready")["try_number"] == 1
            assert f"from the run's {rule}" in dag.log(run, "ready"), "it resolved the window as the read does"


def test_an_explicit_window_that_is_complete_ends_the_wait_and_a_wrong_one_fails_typed(airflow_stack, truth):
    dag = Dag(airflow_stack, "from_trigger_explicit")
    dump(truth, events=120, interval_ms=60_000)
    with dag.unpaused():
        good, wrong = (dag.start({"window": window}) for window in (f"{TEN}/{ELEVEN}", f"{ELEVEN}/{TEN}"))
        dag.succeed(good)
        assert dag.xcom(good, "ready") == {"window": {"start": TEN, "end": ELEVEN}}
        assert "Waiting" not in dag.log(good, "ready")

        assert dag.end(wrong) == "failed"
        task = dag.task(wrong, "ready")
        assert (task["state"], task["try_number"]) == ("failed", 1), "retries cannot help"
        assert "InvalidWindow" in dag.log(wrong, "ready")
