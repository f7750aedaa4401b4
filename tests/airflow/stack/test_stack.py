"""What `dag.test()` cannot show: partitioned runs, a real triggerer, masked logs, a Spark in a worker."""

from __future__ import annotations

import sqlite3
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.testing.fake import dump
from tests.airflow.stack.acts import Dag

pytestmark = [pytest.mark.stack, pytest.mark.spark, pytest.mark.timeout(420)]

DAG = "/api/v2/dags/hourly_numbers"


def test_a_partition_is_awaited_in_the_triggerer_and_read_once_it_is_complete(airflow_stack, canary):
    stack = airflow_stack
    dump(stack.truth, events=30, interval_ms=60_000, password=canary)
    stack.until("the DAG was not parsed", lambda: stack.call("GET", DAG)["dag_id"])
    stack.call("PATCH", DAG, {"is_paused": False})
    window = {"from_date": "2026-11-20T10:00:00Z", "to_date": "2026-11-20T10:00:00Z"}
    stack.call("POST", "/api/v2/backfills", {"dag_id": "hourly_numbers", "max_active_runs": 1, **window})
    run_id = stack.until("the backfill made no run", lambda: _backfilled(stack))

    dag = Dag(stack, "hourly_numbers")
    dag.deferred(run_id, "ready")
    dump(stack.truth, events=120, interval_ms=60_000, password=canary)
    dag.succeed(run_id)

    xcom = stack.call("GET", f"{DAG}/dagRuns/{run_id}/taskInstances/read/xcomEntries/return_value?deserialize=true")
    got = xcom["value"]
    assert (got["window_rule"], got["rows"], got["verdict"]) == ("partition", 120, "complete")
    assert got["window"] == {"start": "2026-11-20T10:00:00Z", "end": "2026-11-20T11:00:00Z"}
    landed = ds.dataset(stack.home / "lake", partitioning="hive").to_table()
    assert sorted(landed["number"].to_pylist()) == sorted([*range(60), *range(60)])

    (event,) = stack.call("GET", "/api/v2/assets/events?source_dag_id=hourly_numbers")["asset_events"]
    assert event["extra"]["fingerprint"] == got["fingerprint"]
    assert event["partition_key"] == "2026-11-20T10:00:00"

    logs = stack.task_logs()
    assert got["fingerprint"][:12] in logs, "the plan's table is logged"
    assert "events are known only until" in logs, "the triggerer says what it waits for"
    assert canary not in logs
    assert canary not in stack.tail()
    with sqlite3.connect(stack.home / "airflow.db") as database:
        assert canary not in "\n".join(database.iterdump())
    assert canary.encode() not in (stack.home / "streams_journal.db").read_bytes()


def _backfilled(stack: Any) -> str | None:
    runs = stack.call("GET", f"{DAG}/dagRuns?run_type=backfill")["dag_runs"]
    return runs[0]["dag_run_id"] if runs else None
