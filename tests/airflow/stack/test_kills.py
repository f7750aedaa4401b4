"""kill -9 of each process of Airflow in the middle of its work: every number is in the table exactly once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.journal.runs.run_records import Run
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.testing.fake import FakeSource, dump
from airflow_provider_streams.testing.landing import cover_without_spark
from tests.airflow.stack.acts import Dag, gone

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

LENGTH = timedelta(days=30)
"""Of watched windows, which end by the real time: it is next to never that one ends during a test."""
TEN = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))


@dataclass
class Killed:
    """The DAG `kill_<name>`, the stream it reads, its table and its journal."""

    stack: Any
    name: str
    run_id: str = ""

    @property
    def dag(self) -> Dag:
        return Dag(self.stack, f"kill_{self.name}")

    @property
    def path(self) -> str:
        return self.dag.path

    @property
    def truth(self) -> Path:
        return self.stack.home / "killed.json"

    @property
    def hold(self) -> Path:
        """While it is there, a read that began does not end."""
        return Path(f"{self.truth}.hold")

    def hold_of(self, task: psutil.Process) -> Path:
        """While it is there, what this process reads does not end."""
        return Path(f"{self.truth}.hold.{task.pid}")

    def begin(self, events: int = 60, **truth: object) -> None:
        """A run that begins now; its stream holds so many minutes of each shard."""
        dump(self.truth, events=events, interval_ms=60_000, batch_rows=10, **truth)
        self.stack.until("the DAG was not parsed", lambda: self.stack.call("GET", self.path)["dag_id"])
        self.stack.call("PATCH", self.path, {"is_paused": False})
        body = {"logical_date": None, "conf": {}}
        self.run_id = self.stack.call("POST", f"{self.path}/dagRuns", body)["dag_run_id"]

    def hold_in_the_middle(self, **truth: object) -> psutil.Process:
        """Begin, and wait until the read is at work and held there; the task's process."""
        self.hold.touch()
        self.begin(fault="hold", **truth)
        self.stack.until("no run began", lambda: [run.state for run in self.runs()] == ["running"])
        task = self.stack.until("the task has no process", lambda: self.task("read")["pid"])
        assert self.task("read")["state"] == "running"
        assert self.rows() == []
        return psutil.Process(task)

    def task(self, task_id: str) -> dict[str, Any]:
        return self.stack.call("GET", f"{self.path}/dagRuns/{self.run_id}/taskInstances/{task_id}")

    def until_deferred(self) -> None:
        """Wait until its sensor waits in a triggerer that has taken it up."""
        self.dag.deferred(self.run_id, "ready")

    def triggers(self) -> list[str]:
        """What each of its sensor's triggers logged: one of each triggerer."""
        return [log.read_text() for log in self.dag.log_files(self.run_id, "ready") if ".trigger." in log.name]

    def waiting(self) -> list[str]:
        """Of them, those that asked, got no for an answer, and have not ended."""
        return [said for said in self.triggers() if "Waiting: " in said and "trigger completed" not in said]

    def until_success(self) -> None:
        self.dag.succeed(self.run_id)

    def runs(self) -> tuple[Run, ...]:
        """The journal's runs of the window."""
        with _journal(self.stack) as journal:
            return journal.runs(FakeSource(self.name, "fake_killed").key, f"kill_{self.name}.read", TEN)

    def rows(self) -> list[int]:
        return _rows(self.stack, self.name)

    def assert_exactly_once(self) -> None:
        """The table holds each number of both shards once; the journal covers the window, by one plan."""
        assert self.rows() == sorted([*range(60), *range(60)])
        with _journal(self.stack) as journal:
            source = FakeSource(self.name, "fake_killed").key
            coverage = journal.coverage(source, f"kill_{self.name}.read", TEN.start, TEN.end)
        assert [item.state for item in coverage.windows] == ["covered"]
        assert len({run.fingerprint for run in self.runs()}) == 1, "a retry reads the plan that was pinned"


@pytest.fixture
def killing(airflow_stack: Any) -> Iterator[Callable[[str], Killed]]:
    """`killing(name)`: its DAG. Afterwards nothing is held, all four processes are there, and the DAGs are paused."""
    used: list[Killed] = []

    def killed(name: str) -> Killed:
        used.append(Killed(airflow_stack, name))
        return used[-1]

    try:
        yield killed
    finally:
        for one in used:
            one.hold.unlink(missing_ok=True)
        airflow_stack.revive()
        for one in used:
            airflow_stack.call("PATCH", one.path, {"is_paused": True})


@pytest.mark.slow
def test_a_read_that_outlives_the_scheduler_and_lands_last_changes_nothing(killing):
    orphaned = killing("orphan")
    stack = orphaned.stack
    orphan = orphaned.hold_in_the_middle()
    held = orphaned.hold_of(orphan)
    held.touch()
    stack.kill("scheduler", spare=orphan)
    try:
        assert not gone(orphan)
        assert [run.state for run in orphaned.runs()] == ["running"], "no process could note how it ended"
        assert orphaned.rows() == []

        orphaned.hold.unlink()
        stack.start("scheduler")
        orphaned.until_success()
        orphaned.assert_exactly_once()
        first, *_, last = orphaned.runs()
        assert (first.state, first.error_type, last.state) == ("failed", "Superseded", "covered")
        assert not gone(orphan), "it is held while another lands its window"
    finally:
        held.unlink()
    stack.until("the orphan goes on for ever", lambda: gone(orphan))
    first, *_, last = orphaned.runs()
    assert (first.state, last.state) == ("covered", "covered")
    assert first.ref.finished > last.ref.finished, "it landed last"
    orphaned.assert_exactly_once()


@pytest.mark.spark
def test_a_task_killed_while_spark_reads_leaves_nothing_and_is_retried(killing):
    killed = killing("worker")
    stack = killed.stack
    task = killed.hold_in_the_middle(value_bytes=400_000)  # too many bytes for the driver: Spark's tasks read them

    def reading() -> list[psutil.Process]:
        """Spark's processes, once one of them is held in the middle of a split."""
        spark = task.children(recursive=True)
        return spark if any(Path(f"{killed.truth}.held.{one.pid}").exists() for one in spark) else []

    spark = stack.until("Spark's tasks do not read", reading)
    assert list(stack.home.glob("lake-worker/_staging/*Z-*"))
    os.kill(task.pid, signal.SIGKILL)
    stack.until("the task lives", lambda: gone(task))
    stack.until("Spark outlives its task", lambda: all(map(gone, spark)))
    assert "covered" not in [run.state for run in killed.runs()]
    assert killed.rows() == []

    killed.hold.unlink()
    killed.until_success()
    killed.assert_exactly_once()
    assert killed.task("read")["try_number"] >= 2
    assert [run.state for run in killed.runs()][-1] == "covered"


@pytest.mark.slow
@pytest.mark.spark
def test_a_read_survives_the_api_server_or_is_retried(killing):
    killed = killing("api_server")
    stack = killed.stack
    killed.hold_in_the_middle()
    stack.kill("api-server")
    with pytest.raises(httpx.ConnectError):
        killed.task("read")
    assert [run.state for run in killed.runs()] == ["running"]

    stack.start("api-server")
    stack.until_healthy()
    killed.hold.unlink()
    killed.until_success()
    killed.assert_exactly_once()
    assert [run.state for run in killed.runs()][-1] == "covered"


@pytest.mark.slow
def test_a_run_goes_on_while_the_dag_processor_is_dead_and_new_dags_are_found_after_it(killing):
    killed = killing("dag_processor")
    stack = killed.stack
    killed.begin(events=30)
    killed.until_deferred()
    stack.kill("dag-processor")
    assert killed.task("ready")["state"] == "deferred"
    dump(killed.truth, events=60, interval_ms=60_000)
    killed.until_success()
    assert killed.task("read")["try_number"] == 1

    (stack.home / "dags" / "came_later.py").write_text(
        "from airflow.sdk import DAG\ndag = DAG('came_later', schedule=None)\n"
    )
    stack.start("dag-processor")
    stack.until("no new DAG is found", lambda: stack.call("GET", "/api/v2/dags/came_later")["dag_id"])


@pytest.mark.spark
def test_what_the_triggerer_waited_for_and_watched_is_not_forgotten(killing, watched):
    killed = killing("triggerer")
    stack = killed.stack
    first, second, third = watched.windows
    watched.complete_until(second)
    killed.begin(events=30)
    killed.until_deferred()
    stack.until("the watched windows are not read", lambda: watched.covered() == [first, second])
    stack.until("the sensor's trigger has not asked", killed.waiting)

    stack.kill("triggerer")
    assert killed.waiting() == killed.triggers(), "it was at work when it was killed"
    dump(killed.truth, events=60, interval_ms=60_000)
    watched.complete_until(third)
    assert killed.task("ready")["state"] == "deferred"
    assert watched.covered() == [first, second]

    stack.start("triggerer")
    killed.until_success()
    killed.assert_exactly_once()
    assert [run.state for run in killed.runs()] == ["covered"], "it was read once"
    assert killed.task("ready")["try_number"] == 1
    assert sorted(said.count("Trigger fired event") for said in killed.triggers()) == [0, 1], "one event, of the second"
    stack.until("the window completed meanwhile is not read", lambda: watched.covered() == watched.windows)
    for window in watched.windows:
        assert [run.state for run in watched.runs(window)].count("covered") == 1, "each was read once"
    assert _rows(stack, "watched") == sorted([*range(240), *range(240)])


@dataclass
class Watched:
    """The stream whose complete windows a watcher announces; the first of four is covered already."""

    stack: Any
    start: datetime

    @property
    def windows(self) -> list[Window]:
        """The three to be read."""
        return [Window(self.start + n * LENGTH, self.start + (n + 1) * LENGTH) for n in (1, 2, 3)]

    def complete_until(self, window: Window) -> None:
        """The stream now holds every event of this window, sixty in each shard, and nothing later."""
        dump(
            self.stack.home / "watched.json",
            epoch=self.start.isoformat(),
            interval_ms=LENGTH // timedelta(milliseconds=60),
            events=(window.end - self.start) // LENGTH * 60,
        )

    def cover_the_first(self) -> None:
        """As if it had been read: the watcher then goes on from its end."""
        first = Window(self.start, self.start + LENGTH)
        self.complete_until(first)
        options = {"truth": str(self.stack.home / "watched.json")}
        with _journal(self.stack) as journal:
            table = ParquetSink(f"{self.stack.home}/lake-watched")
            cover_without_spark(journal, SOURCE, first, "watched", options, sink=table)

    def runs(self, window: Window) -> tuple[Run, ...]:
        with _journal(self.stack) as journal:
            return journal.runs(SOURCE.key, "watched", window)

    def covered(self) -> list[Window]:
        """Which of the three."""
        with _journal(self.stack) as journal:
            coverage = journal.coverage(SOURCE.key, "watched", self.windows[0].start, self.windows[-1].end)
        return [item.window for item in coverage.windows if item.state == "covered"]


@pytest.fixture
def watched(airflow_stack: Any) -> Iterator[Watched]:
    """The watcher of `kill_watcher`, at work during the test."""
    one = Watched(airflow_stack, Every(LENGTH).before(datetime.now(UTC)) - 4 * LENGTH)
    one.cover_the_first()
    dag = "/api/v2/dags/kill_watcher"
    airflow_stack.until("the DAG was not parsed", lambda: airflow_stack.call("GET", dag)["dag_id"])
    airflow_stack.call("PATCH", dag, {"is_paused": False})
    try:
        yield one
    finally:
        airflow_stack.call("PATCH", dag, {"is_paused": True})


SOURCE = FakeSource("watched", "fake_watched")


def _journal(stack: Any) -> Journal:
    return Journal.open(f"sqlite:///{stack.home}/streams_journal.db")


def _rows(stack: Any, name: str) -> list[int]:
    lake = stack.home / f"lake-{name}"
    return sorted(ds.dataset(lake, partitioning="hive").to_table()["number"].to_pylist()) if _landed(lake) else []


def _landed(lake: Path) -> bool:
    return any(lake.glob("window_start=*/window_end=*"))
