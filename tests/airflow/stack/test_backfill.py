"""Airflow's own backfill, on its real scheduler: each run reads its own window, whichever way Airflow makes the run."""

from __future__ import annotations

from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.testing.fake import dump
from tests.airflow.stack.acts import Dag

pytestmark = [pytest.mark.stack, pytest.mark.timeout(420)]

TEN, ELEVEN = "2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"


def backfill(stack: Any, dag_id: str, reprocess: str, **more: Any) -> list[dict[str, Any]]:
    """Backfill two hours, wait until it is over; every backfill run of the DAG so far, by the time it began."""
    body = {
        "dag_id": dag_id,
        "from_date": TEN,
        "to_date": ELEVEN,
        "reprocess_behavior": reprocess,
        "max_active_runs": 2,
    }
    one = stack.call("POST", "/api/v2/backfills", {**body, **more})
    stack.until(
        f"the backfill of {dag_id} did not end",
        lambda: stack.call("GET", f"/api/v2/backfills/{one['id']}")["completed_at"],
        seconds=240,
    )
    runs = stack.call("GET", f"/api/v2/dags/{dag_id}/dagRuns?run_type=backfill&limit=50")["dag_runs"]
    return sorted(runs, key=lambda run: run["start_date"])


def plan_of(stack: Any, dag_id: str, run: dict[str, Any]) -> dict[str, Any]:
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run['dag_run_id']}/taskInstances/plan/xcomEntries/return_value"
    return stack.call("GET", f"{path}?deserialize=true")["value"]


def unpaused(stack: Any, dag_id: str) -> None:
    stack.until("the DAG was not parsed", lambda: stack.call("GET", f"/api/v2/dags/{dag_id}")["dag_id"])
    stack.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})


def test_partitions_are_backfilled_backwards_and_reprocessed_as_asked(airflow_stack, canary):
    stack, dag_id = airflow_stack, "hourly_partitions"
    dump(stack.truth, events=60, interval_ms=60_000, password=canary)
    unpaused(stack, dag_id)

    first = backfill(stack, dag_id, "none", run_backwards=True, max_active_runs=1)
    assert [run["state"] for run in first] == ["failed", "success"], "eleven o'clock comes first, and is not over yet"
    ten = plan_of(stack, dag_id, first[1])
    assert (ten["window"]["start"], ten["window_rule"]) == (TEN, "partition")

    dump(stack.truth, events=180, interval_ms=60_000, password=canary)
    assert len(backfill(stack, dag_id, "none")) == 2, "there is a run of each hour"

    failed = backfill(stack, dag_id, "failed")
    assert [run["state"] for run in failed] == ["failed", "success", "success"]
    eleven = plan_of(stack, dag_id, failed[-1])
    assert eleven["window"]["start"] == ELEVEN

    again = backfill(stack, dag_id, "completed")[3:]
    plans = [plan_of(stack, dag_id, run) for run in again]
    assert {plan["window"]["start"]: plan["fingerprint"] for plan in plans} == {
        TEN: ten["fingerprint"],
        ELEVEN: eleven["fingerprint"],
    }, "a run of the same hour reads the pinned plan"


def test_data_intervals_are_backfilled(airflow_stack, canary):
    stack, dag_id = airflow_stack, "hourly_intervals"
    dump(stack.truth, events=180, interval_ms=60_000, password=canary)
    unpaused(stack, dag_id)
    runs = backfill(stack, dag_id, "none")
    plans = [plan_of(stack, dag_id, run) for run in runs]
    assert {plan["window_rule"] for plan in plans} == {"data_interval"}
    assert sorted(plan["window"]["start"] for plan in plans) == [TEN, ELEVEN]


@pytest.mark.spark
def test_a_backfill_that_a_person_allows_fills_hours_in_one_spark_job_and_so_completes_their_day(airflow_stack, canary):
    stack, fill, day = airflow_stack, Dag(airflow_stack, "approved_fill"), Dag(airflow_stack, "approved_day")
    # the stream begins at 10:00: the day's first hours are empty
    dump(stack.truth, events=840, interval_ms=60_000, password=canary)
    unpaused(stack, fill.name)
    unpaused(stack, day.name)
    run = fill.start()
    fill.asking(run, "approve")
    asked = stack.call("GET", f"{fill.path}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails")
    assert asked["body"] == "24 windows"
    assert not (stack.home / "lake-approved").exists(), "a preview reads nothing"
    fill.answer(run, "approve", "Approve")
    fill.succeed(run)
    got = fill.xcom(run, "fill")
    assert (got["rows"], got["jobs"], len(got["covered"]), got["verdict"]) == (1680, 1, 24, "complete")
    landed = ds.dataset(stack.home / "lake-approved", partitioning="hive").to_table()
    assert sorted(landed["number"].to_pylist()) == sorted([*range(840), *range(840)])
    assert len(set(landed["window_start"].to_pylist())) == 14
    assert len(list((stack.home / "lake-approved").glob("window_start=*/window_end=*"))) == 24

    (one,) = day.until("no run", day.runs)
    assert one["partition_key"] == "2026-11-20", "its hours' events completed the day"
    assert canary not in stack.task_logs()
