"""Airflow's four processes on loopback, with their own home and a copy of the migrated database."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from stream_servers.waiting import wait_until
from tests.plain_http import NO_AUTHORITIES

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
HEALTH = ("metadatabase", "scheduler", "triggerer", "dag_processor")
BEATING = {"scheduler": "scheduler", "triggerer": "triggerer", "dag-processor": "dag_processor"}
"""Component to its name in the answer about health, which also tells its last heartbeat."""
LOCKED = "database is locked"
DAGS = Path(__file__).parent / "dags"
EXAMPLES = ("backfill_approved", "daily_from_hours", "pulsar_new_windows")
"""Those of `dags_examples` that need all four processes."""


@dataclass
class AirflowStack:
    """A running Airflow."""

    home: Path
    port: int
    truth: Path
    log_ports: tuple[int, int] = field(default_factory=lambda: (_free_port(), _free_port()))
    """Where the triggerer's and the workers' logs are served."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    token: str = ""
    started: dict[str, datetime] = field(default_factory=dict)
    say: Callable[[str], None] = print

    def start(self, component: str) -> None:
        """Start one of the four processes; what it says is added to `<component>.out`."""
        self.started[component] = datetime.now(UTC)
        with self._log(component).open("ab") as out:
            self.processes[component] = subprocess.Popen(
                [sys.executable, "-m", "airflow", component],
                env=_environment(self),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def kill(self, component: str, *, spare: psutil.Process | None = None) -> None:
        """Kill a process and everything it started at once, as a machine that goes down does.

        What is spared lives on as an orphan, with all it started: a task that the scheduler's workers run.
        """
        process = self.processes.pop(component)
        assert process.poll() is None, f"{component} had ended by itself"
        root = psutil.Process(process.pid)
        spared = {spare, *spare.children(recursive=True)} if spare else set()
        under = [child for child in root.children(recursive=True) if child not in spared]
        for one in (root, *under):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        assert process.wait(600) == -signal.SIGKILL

    def supervise(self) -> None:
        """Start again what ended by itself, as a supervisor does, and say so; what was killed here stays dead."""
        for component, process in list(self.processes.items()):
            if process.poll() is not None:
                log = self._log(component).read_text().splitlines()
                self.say(f"Airflow's {component} ended itself ({process.returncode}), and is started again: {log[-1:]}")
                self.start(component)

    def revive(self) -> None:
        """Start what is dead, and wait until all four answer."""
        self.supervise()
        for component in COMPONENTS:
            if component not in self.processes:
                self.start(component)
        self.until_healthy()

    def until_healthy(self, seconds: float = 1200) -> None:
        """Wait until all four answer: those that were started last, not the ones they took over from."""
        self.until("the components are not healthy", lambda: _healthy(self), seconds)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call of the REST API; again where SQLite, which has one writer, let no one else write for too long."""
        deadline = time.monotonic() + 600
        while True:
            said = self.api_server_said()
            answer = httpx.request(
                method,
                f"http://localhost:{self.port}{path}",
                json=body,
                headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
                timeout=180,  # longer than Airflow waits for that writer
                verify=NO_AUTHORITIES,
            )
            if not self.was_locked(answer.status_code, answer.text, said) or time.monotonic() > deadline:
                answer.raise_for_status()
                return answer.json()
            time.sleep(0.2)

    def api_server_said(self) -> int:
        """How many bytes the api-server has logged so far."""
        return self._log("api-server").stat().st_size

    def was_locked(self, status: int, text: str, said: int) -> bool:
        """Whether SQLite's other writer is why a call failed: some calls answer 503 for that, others 500.

        Airflow 3.1 and 3.2 answer 500 without a reason, and then log it: after the first `said` bytes.
        """
        if status != httpx.codes.INTERNAL_SERVER_ERROR:
            return status == httpx.codes.SERVICE_UNAVAILABLE
        if LOCKED in text:
            return True
        deadline = time.monotonic() + 5
        while LOCKED.encode() not in self._log("api-server").read_bytes()[said:]:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def until(self, what: str, condition: Callable[[], Any], seconds: float = 1200) -> Any:
        """Wait until a condition gives something; what it gave.

        The time is for hangs alone: a run of two tasks takes minutes on a busy machine.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.supervise()
            with contextlib.suppress(httpx.HTTPError, KeyError):
                if found := condition():
                    return found
            time.sleep(0.5)
        pytest.fail(f"after {seconds} s: {what}\n{self.tail()}")

    def tail(self) -> str:
        """The end of what the components said."""
        logs = sorted(self.home.glob("*.out"))
        return "\n".join(f"== {log.name}\n" + "\n".join(log.read_text().splitlines()[-15:])[-6000:] for log in logs)

    def scheduler_says(self, *words: str) -> list[str]:
        """The scheduler's lines with all of these words."""
        return self._says("scheduler", words)

    def triggerer_says(self, *words: str) -> list[str]:
        """The triggerer's lines with all of these words."""
        return self._says("triggerer", words)

    def _says(self, component: str, words: tuple[str, ...]) -> list[str]:
        with self._log(component).open(errors="replace") as log:
            return [line.rstrip("\n") for line in log if all(word in line for word in words)]

    def _log(self, component: str) -> Path:
        return self.home / f"{component}.out"

    def task_logs(self) -> str:
        """Every task's and trigger's log."""
        return "\n".join(log.read_text() for log in (self.home / "logs").rglob("*.log*") if log.is_file())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The stack is at work even when no one asks it for anything: its tests come last, after all others are done."""
    items.sort(key=lambda item: "airflow_stack" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def airflow_stack(
    migrated_database: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[AirflowStack]:
    """api-server, scheduler, dag-processor and triggerer, healthy; the DAGs of `dags/`; stopped afterwards."""
    home = tmp_path_factory.mktemp("airflow-stack")
    shutil.copy(migrated_database, home / "airflow.db")
    _give_no_trigger_id_twice(home / "airflow.db")
    shutil.copytree(DAGS, home / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    for example in EXAMPLES:
        shutil.copy(DAGS.parents[3] / "dags_examples" / f"{example}.py", home / "dags")
    stack = AirflowStack(home, _free_port(), home / "truth.json", say=_saying(pytestconfig))
    try:
        for component in COMPONENTS:
            stack.start(component)
        stack.until_healthy()
        stack.token = stack.call("GET", "/auth/token")["access_token"]
        yield stack
    finally:
        _stop(list(stack.processes.values()))


def _give_no_trigger_id_twice(database: Path) -> None:
    """Let SQLite number triggers as every other database does.

    Airflow's table gives the id of a removed trigger to the next one. A triggerer that has not seen the first one go
    takes the second one for it, and never starts it.
    """
    with contextlib.closing(sqlite3.connect(database)) as connection:
        query = "select sql from sqlite_master where tbl_name = 'trigger' and sql is not null order by type desc"
        table, *indexes = (sql for (sql,) in connection.execute(query))
        table = re.sub(r",\s*CONSTRAINT trigger_pkey PRIMARY KEY \(id\)", "", table)
        table = table.replace("id INTEGER NOT NULL", "id INTEGER PRIMARY KEY AUTOINCREMENT", 1)
        connection.execute('DROP TABLE "trigger"')
        for sql in (table, *indexes):
            connection.execute(sql)
        connection.commit()


def _saying(config: pytest.Config) -> Callable[[str], None]:
    """What writes a line between pytest's dots."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def say(line: str) -> None:
        reporter.ensure_newline()
        reporter.write_line(line, yellow=True)

    return say if reporter else print


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _healthy(stack: AirflowStack) -> bool:
    health = stack.call("GET", "/api/v2/monitor/health")
    return all(health[name]["status"] == "healthy" for name in HEALTH) and all(
        datetime.fromisoformat(health[name][f"latest_{name}_heartbeat"]) > stack.started[component]
        for component, name in BEATING.items()
    )


def _environment(stack: AirflowStack) -> dict[str, str]:
    fake = {"conn_type": "fake", "extra": {"truth": str(stack.truth), "token": CANARY}}
    killed, watched = (
        {"conn_type": "fake", "extra": {"truth": str(stack.home / f"{name}.json")}} for name in ("killed", "watched")
    )
    return {
        **os.environ,
        "AIRFLOW_HOME": str(stack.home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(stack.home / "dags"),
        # SQLite has one writer. Where five seconds do not do, Airflow takes back a backfill that it has half made, and
        # a scheduler that has begun its runs ends itself (StaleDataError)
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{stack.home}/airflow.db?timeout=60",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API__PORT": str(stack.port),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__EXPOSE_STACKTRACE": "True",  # an answer names the database's error
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{stack.port}/execution/",
        "AIRFLOW__API_AUTH__JWT_SECRET": "one secret for all four components",
        # else each of the four makes up its own in a race, and cannot read the others' triggers and connections
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(b"one key for all four components!").decode(),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(stack.log_ports[0]),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(stack.log_ports[1]),
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
        "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "3",
        # a new file is found after this; to read all others as often would keep a processor busy
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        # the death of a process is noticed after some ten seconds, not after minutes
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "3",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "2",
        "AIRFLOW_CONN_FAKE_DEFAULT": json.dumps(fake),
        "AIRFLOW_CONN_FAKE_KILLED": json.dumps(killed),
        "AIRFLOW_CONN_FAKE_WATCHED": json.dumps(watched),
        "STREAMS_TEST_LAKE": str(stack.home / "lake"),
        "LAKE": str(stack.home / "lake-of-examples"),
    }


CANARY = "canary-7b1e5c20"


@pytest.fixture(scope="session")
def canary() -> str:
    """The token of the connection `fake_default`."""
    return CANARY


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End components of Airflow, together."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            wait_until(partial(_has_ended, process), "a component ends")
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has, after some seconds; if not, tell it again.

    Its handler of the signal raises SystemExit, which gets lost if Python runs a callback just then.
    """
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.terminate()
        return False
    return True
