"""What tests do with a DAG of the running stack, through Airflow's REST API."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest


@dataclass(frozen=True, eq=False)
class Dag:
    """A DAG of the stack."""

    stack: Any
    name: str
    watches: str = ""
    """The asset whose watchers run while the DAG is unpaused."""

    @property
    def path(self) -> str:
        return f"/api/v2/dags/{self.name}"

    def parsed(self) -> None:
        """Wait until Airflow can start the DAG's runs: it has a serialized version, and is not taken for removed.

        Airflow takes a DAG for removed (`is_stale`) while SQLite lets it store no result of a later parse.
        """
        self.until("was not parsed", lambda: not self.stack.call("GET", f"{self.path}/details")["is_stale"])

    def until(self, what: str, condition: Callable[[], Any]) -> Any:
        """Wait until a condition gives something; what it gave."""
        return self.stack.until(f"{self.name}: {what}", condition)

    @contextmanager
    def unpaused(self) -> Iterator[None]:
        """At work for a while; afterwards none of its runs is, nor any watcher of its assets."""
        self.parsed()
        self.pause(paused=False)
        try:
            yield
        finally:
            self.pause(paused=True)
            for run in self.runs():
                if run["state"] in ("queued", "running"):
                    self.stack.call("PATCH", f"{self.path}/dagRuns/{run['dag_run_id']}", {"state": "failed"})
            if self.watches:
                asset = asset_of(self.stack, self.watches)["id"]
                self.until("its watchers stay", lambda: not _watchers_of(self.stack, asset))

    def pause(self, *, paused: bool) -> None:
        self.stack.call("PATCH", self.path, {"is_paused": paused})

    def start(self, conf: dict[str, Any] | None = None, **more: Any) -> str:
        """Start a run; its id."""
        self.parsed()
        body = {"logical_date": None, "conf": conf or {}, **more}
        return self.stack.call("POST", f"{self.path}/dagRuns", body)["dag_run_id"]

    def runs(self, kind: str = "") -> list[dict[str, Any]]:
        """Every run (of a kind: `backfill`, `asset_triggered`), the oldest first."""
        chosen = f"&run_type={kind}" if kind else ""
        return self.stack.call("GET", f"{self.path}/dagRuns?limit=100&order_by=run_after{chosen}")["dag_runs"]

    def end(self, run_id: str) -> str:
        """Wait until a run is over; `success` or `failed`."""

        def ended() -> str | None:
            state = self.stack.call("GET", f"{self.path}/dagRuns/{run_id}")["state"]
            return state if state in ("success", "failed") else None

        return self.until(f"{run_id} did not end", ended)

    def succeed(self, run_id: str) -> None:
        """Wait until a run is over, in success."""
        if self.end(run_id) != "success":
            pytest.fail(self._why(run_id))

    def _why(self, run_id: str) -> str:
        """The states of a run's tasks, and the ends of what was said about those that failed."""
        tasks = self.stack.call("GET", f"{self.path}/dagRuns/{run_id}/taskInstances")["task_instances"]
        said = [f"{run_id} of {self.name} failed: { {task['task_id']: task['state'] for task in tasks} }"]
        for task in tasks:
            if task["state"] == "failed":
                name = task["task_id"]
                said += [f"== log of {name}", self.log(run_id, name)[-6000:]]
                said += [f"== scheduler about {name}", "\n".join(self.stack.scheduler_says(run_id, name))[-6000:]]
        return "\n".join([*said, self.stack.tail()])

    def task(self, run_id: str, task_id: str) -> dict[str, Any]:
        return self.stack.call("GET", f"{self.path}/dagRuns/{run_id}/taskInstances/{task_id}")

    def deferred(self, run_id: str, task_id: str) -> dict[str, Any]:
        """Wait until a task waits in a triggerer that has taken it up, see `_parked`; the task."""
        return self.until(
            f"{task_id} was not deferred",
            lambda: self._parked(task) if (task := self.task(run_id, task_id))["triggerer_job"] else None,
        )

    def asking(self, run_id: str, task_id: str) -> dict[str, Any]:
        """Wait until a task waits for a person's answer, see `_parked`; the task."""

        def asked() -> dict[str, Any] | None:
            task = self.task(run_id, task_id)
            # before Airflow 3.3, a trigger waits for the answer
            return self._parked(task, "awaiting_input") or (task["triggerer_job"] and self._parked(task))

        return self.until(f"{task_id} asked no one", asked)

    def _parked(self, task: dict[str, Any], state: str = "deferred") -> dict[str, Any] | None:
        """The task, if it waits and the scheduler has done with the worker that left it waiting.

        That may be seconds later. What wakes the task before makes Airflow 3.3 fail it (apache/airflow#67287, #72716):
        the scheduler hears that a worker has ended, and the task, by then queued or running again, did not say so.
        """
        if task["state"] != state:
            return None
        if task["pid"] is None:
            return task  # no worker had it
        # Airflow 3.1 does not tell the task instance's id there
        named = (f"task_id={task['task_id']}, run_id={task['dag_run_id']}, ", f" pid={task['pid']} ")
        return task if self.stack.scheduler_says("TaskInstance Finished", *named) else None

    def answer(self, run_id: str, task_id: str, option: str) -> None:
        """As a person answers a task that asks."""
        path = f"{self.path}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        self.stack.call("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def xcom(self, run_id: str, task_id: str) -> Any:
        path = f"{self.path}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.stack.call("GET", f"{path}?deserialize=true")["value"]

    def log_files(self, run_id: str, task_id: str = "*") -> list[Path]:
        """Logs of tasks (`attempt=1.log`) and of their triggers (`attempt=1.log.trigger.2.log`)."""
        run = f"dag_id={self.name}/run_id={run_id}"
        return sorted((self.stack.home / "logs").glob(f"{run}/task_id={task_id}/attempt=*"))

    def log(self, run_id: str, task_id: str = "*") -> str:
        return "\n".join(log.read_text() for log in self.log_files(run_id, task_id))

    def consumed(self, run_id: str) -> list[dict[str, Any]]:
        """The asset events that started a run, the oldest first."""
        found = _events(self.stack, f"{self.path}/dagRuns/{run_id}/upstreamAssetEvents")
        return sorted(found, key=lambda event: event["timestamp"])

    def clear(self, run_id: str, *task_ids: str) -> None:
        """As a user clears tasks of a run, all or some."""
        body = {"dry_run": False, "dag_run_id": run_id, "only_failed": False, "reset_dag_runs": True}
        chosen = {"task_ids": list(task_ids)} if task_ids else {}
        self.stack.call("POST", f"{self.path}/clearTaskInstances", {**body, **chosen})


def start_backfill(stack: Any, dag_id: str, **body: object) -> dict[str, Any]:
    """Start a backfill of Airflow's own; what Airflow says of it.

    Airflow 3.1 and 3.2 store a backfill before its runs. Where SQLite refuses the runs, a backfill without any stays,
    and forbids others: it is cancelled, and started again.
    """
    path = "/api/v2/backfills"

    def started() -> dict[str, Any] | None:
        try:
            return stack.call("POST", path, {"dag_id": dag_id, **body})
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.CONFLICT:
                raise
        cancel_backfills(stack, dag_id)
        return None

    return stack.until(f"no backfill of {dag_id} was started", started)


def cancel_backfills(stack: Any, dag_id: str) -> None:
    """Cancel those that are not over, until all are."""

    def over() -> bool:
        found = stack.call("GET", f"/api/v2/backfills?dag_id={dag_id}")["backfills"]
        left = [one["id"] for one in found if one["completed_at"] is None]
        for number in left:
            stack.call("PUT", f"/api/v2/backfills/{number}/cancel")
        return not left

    stack.until(f"backfills of {dag_id} stay", over)


def connect(stack: Any, conn_id: str, conn_type: str, **extra: object) -> None:
    """Add a connection to Airflow's database."""
    body = {"connection_id": conn_id, "conn_type": conn_type, "extra": json.dumps(extra)}
    stack.call("POST", "/api/v2/connections", body)


def asset_of(stack: Any, name: str) -> dict[str, Any]:
    """An asset and its watchers."""
    found = stack.call("GET", f"/api/v2/assets?name_pattern={name}")["assets"]
    (asset,) = [one for one in found if one["name"] == name]
    return asset


def _watchers_of(stack: Any, asset_id: int) -> int:
    """How many triggers Airflow keeps for an asset's watchers; the API of 3.1 does not tell."""
    with closing(sqlite3.connect(f"file:{stack.home}/airflow.db?mode=ro", uri=True, timeout=30)) as database:
        tables = {row[0] for row in database.execute("select name from sqlite_master")}
        if "asset_watcher" in tables:
            count = database.execute("select count(*) from asset_watcher where asset_id = ?", (asset_id,))
        else:
            count = database.execute("select count(*) from asset_trigger where asset_id = ?", (asset_id,))
        return int(count.fetchone()[0])


def events_of(stack: Any, asset: str) -> list[dict[str, Any]]:
    """Every event of an asset, the oldest first."""
    number = asset_of(stack, asset)["id"]
    return _events(stack, f"/api/v2/assets/events?asset_id={number}&order_by=timestamp&limit=100")


def _events(stack: Any, path: str) -> list[dict[str, Any]]:
    """Again while Airflow 3.3 answers 500: as long as a run that one of the events started is still queued."""
    (events,) = stack.until("there are no events", lambda: (stack.call("GET", path)["asset_events"],))
    return events


def gone(process: psutil.Process) -> bool:
    """It has ended; so has an unburied one (of a parent that does not wait)."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
