"""Airflow's own backfill, on its real scheduler: each run reads its own window, whichever way Airflow makes the run."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_streams.airflow_features import Feature
from airflow_provider_streams.testing.fake import dump
from tests.airflow.stack.acts import start_backfill
from tests.airflow_versions import needs

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

TEN, ELEVEN = "2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"


def backfill(stack: Any, dag_id: str, reprocess: str, **more: Any) -> list[dict[str, Any]]:
    """Backfill two hours, wait until it is over; every backfill run of the DAG so far, by the time it began."""
    body = {"from_date": TEN, "to_date": ELEVEN, "reprocess_behavior": reprocess, "max_active_runs": 2}
    one = start_backfill(stack, dag_id, **{**body, **more})
    stack.until(
        f"the backfill of {dag_id} did not end",
        lambda: stack.call("GET", f"/api/v2/backfills/{one['id']}")["completed_at"],
    )
    runs = stack.call("GET", f"/api/v2/dags/{dag_id}/dagRuns?run_type=backfill&limit=50")["dag_runs"]
    return sorted(runs, key=lambda run: run["start_date"])


def plan_of(stack: Any, dag_id: str, run: dict[str, Any]) -> dict[str, Any]:
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run['dag_run_id']}/taskInstances/plan/xcomEntries/return_value"
    return stack.call("GET", f"{path}?deserialize=true")["value"]


def unpaused(stack: Any, dag_id: str) -> None:
    stack.until("the DAG was not parsed", lambda: stack.call("GET", f"/api/v2/dags/{dag_id}")["dag_id"])
    stack.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})


@pytest.mark.slow
@needs(Feature.PARTITIONED_RUNS)
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


@pytest.mark.slow
def test_data_intervals_are_backfilled(airflow_stack, canary):
    stack, dag_id = airflow_stack, "hourly_intervals"
    dump(stack.truth, events=180, interval_ms=60_000, password=canary)
    unpaused(stack, dag_id)
    runs = backfill(stack, dag_id, "none")
    plans = [plan_of(stack, dag_id, run) for run in runs]
    assert {plan["window_rule"] for plan in plans} == {"data_interval"}
    assert sorted(plan["window"]["start"] for plan in plans) == [TEN, ELEVEN]
