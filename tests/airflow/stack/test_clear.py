"""What a user clears in Airflow runs again, and comes to the same."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from airflow.triggers.base import BaseTrigger

from airflow_provider_streams import Window
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.testing.fake import FakeSource, dump
from tests.airflow.stack.acts import Dag, connect

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

SOURCE = FakeSource("numbers", conn_id="fake_cleared")
WINDOW = Window.parse("2026-11-20T10:00Z/2026-11-20T11:00Z")
CONF = {"window": str(WINDOW)}


@pytest.fixture(scope="module")
def truth(airflow_stack) -> Path:
    """What the connection `fake_cleared` holds is in this file."""
    path = airflow_stack.home / "cleared.json"
    connect(airflow_stack, SOURCE.conn_id, "fake", truth=str(path))
    return path


def triggers(stack: Any) -> set[int]:
    """The triggers that Airflow keeps."""
    with sqlite3.connect(f"file:{stack.home}/airflow.db?mode=ro", uri=True, timeout=30) as database:
        return {row[0] for row in database.execute("select id from trigger")}


def files_of(lake: Path) -> frozenset[str]:
    """The table's files, as a reader lists them: again, if they were being replaced meanwhile."""
    while True:
        found, again = (
            frozenset(str(one.relative_to(lake)) for one in lake.glob("window_start=*/window_end=*/*.parquet"))
            for _ in "12"
        )
        if found == again:
            return found


@contextmanager
def watched(lake: Path) -> Iterator[set[frozenset[str]]]:
    """Every set of files that a reader finds that looks all the time."""
    seen: set[frozenset[str]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            seen.add(files_of(lake))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def rows_of(lake: Path) -> list[tuple[str, int]]:
    table = ds.dataset(lake, partitioning="hive").to_table(["shard", "number"])
    return sorted(zip(table["shard"].to_pylist(), table["number"].to_pylist(), strict=True))


def but_for_time(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "seconds"}


@pytest.mark.slow
def test_sensors_cleared_while_deferred_wait_anew(airflow_stack, truth):
    stack, dag = airflow_stack, Dag(airflow_stack, "cleared_sensors")
    sensors = ("deferred", "from_trigger")
    dump(truth, events=30, interval_ms=60_000)
    with dag.unpaused():
        run = dag.start(CONF)
        first = {name: dag.deferred(run, name)["trigger"]["id"] for name in sensors}
        # they have the greatest ids until the end: SQLite gives the id of a removed trigger to the next one
        other = dag.start(CONF)
        for name in sensors:
            dag.deferred(other, name)
        dag.clear(run, *sensors)

        def deferred_again() -> dict[str, int] | None:
            tasks = {name: dag.deferred(run, name) for name in sensors}
            now = {name: task["trigger"]["id"] for name, task in tasks.items()}
            return now if not set(now.values()) & set(first.values()) else None

        second = dag.until("the sensors were not deferred again", deferred_again)
        for name in sensors if hasattr(BaseTrigger, "on_kill") else ():
            dag.until(
                f"the trigger of {name} was not told",
                lambda name=name: "Trigger cancelled by user action" in dag.log(run, name),
            )
        dag.until("the first triggers stay", lambda: not triggers(stack) & set(first.values()))
        assert set(second.values()) <= triggers(stack)

        dump(truth, events=60, interval_ms=60_000)
        dag.succeed(run)
        dag.succeed(other)
        for name in sensors:
            assert dag.task(run, name)["try_number"] == 2
            assert dag.xcom(run, name) == {"window": WINDOW.to_json()}
            assert "on_kill() raised" not in dag.log(run, name)
        dag.until("the second triggers stay", lambda: not triggers(stack) & set(second.values()))
        assert [dag.task(other, name)["try_number"] for name in sensors] == [1, 1]


@pytest.mark.spark
def test_a_read_cleared_after_success_reads_the_same_positions_into_the_same_place(airflow_stack, truth):
    stack, dag, lake = airflow_stack, Dag(airflow_stack, "cleared_read"), airflow_stack.home / "lake-cleared"
    dump(truth, events=90, interval_ms=60_000)
    with dag.unpaused():
        run = dag.start(CONF)
        dag.succeed(run)
        first, files, rows = dag.xcom(run, "read"), files_of(lake), rows_of(lake)
        assert rows == [(f"numbers-{shard}", number) for shard in (0, 1) for number in range(60)]

        # a plan made now would name a third shard
        dump(truth, events=180, interval_ms=60_000, shards=3)
        with watched(lake) as seen:
            dag.clear(run)
            dag.until("it did not run again", lambda: dag.task(run, "read")["try_number"] == 2)
            dag.succeed(run)

    assert but_for_time(dag.xcom(run, "read")) == but_for_time(first), "the same plan, fingerprint and figures"
    assert rows_of(lake) == rows
    again = files_of(lake)
    assert not again & files, "all files were replaced, none was added"
    assert seen <= {files, again}, "a reader finds the first table or the second, never a part, both or none"
    with Journal.open(f"sqlite:///{stack.home}/streams_journal.db") as journal:
        runs = journal.runs(SOURCE.key, "cleared", WINDOW)
        coverage = journal.coverage(SOURCE.key, "cleared", WINDOW.start, WINDOW.end)
    assert [(one.state, one.ref.run_id, one.ref.try_number) for one in runs] == [
        ("covered", run, 1),
        ("covered", run, 2),
    ]
    (covered,) = coverage.windows
    assert (covered.state, covered.rows, covered.attempts) == ("covered", 120, 2)
    assert coverage.overlaps == ()
