from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.landings import NewLanding, insertion
from airflow_provider_streams.journal.reader_overview import (
    ReadingTask,
    activities,
    basis_of,
    overviews,
    rhythm,
    schedule_of,
    tasks_of,
)
from airflow_provider_streams.journal.row_ids import change, claim, ensure_reader
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.window.window import Window

HOUR = timedelta(hours=1)
T0 = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path):
    made = Database(f"sqlite:///{tmp_path / 'journal.db'}")
    yield made
    made.close()


def run(database: Database, reader_id: int, hour: float, state: str, **other: Any) -> None:
    start, hours, dag_id = T0 + hour * HOUR, other.get("hours", 1), other.get("dag_id", "dag")
    values = {
        "reader_id": reader_id,
        "window_start": start,
        "window_end": start + hours * HOUR,
        "state": state,
        "dag_id": dag_id,
        "run_id": "run",
        "task_id": other.get("task_id", "task"),
        "map_index": other.get("map_index", -1),
        "try_number": 1,
        "started_at": start,
        "finished_at": None if state == "running" else start + 2 * HOUR,
        "rows": 0,
        "bytes": 0,
    }
    with database.writing() as connection:
        connection.execute(insert(runs).values(**values))


def test_an_overview_sums_up_the_runs_of_each_dag(database):
    one = ensure_reader(database, "fake:f:n", "r")
    run(database, one, 0, "covered")
    run(database, one, 1, "failed")
    run(database, one, 2, "running", dag_id="other")
    with database.reading() as connection:
        (found,) = overviews(connection)
    assert (found.source_key, found.reader, found.landing) == ("fake:f:n", "r", None)
    mine, other = found.by_dag["dag"], found.by_dag["other"]
    assert (mine.runs, mine.running) == (2, 0)
    assert (mine.first_start, mine.last_end, mine.covered_end) == (T0, T0 + 2 * HOUR, T0 + HOUR)
    assert (other.running, other.covered_end) == (1, None)
    assert (found.covered_end, found.last_end, found.running) == (T0 + HOUR, T0 + 3 * HOUR, 1)
    assert found.of_dags({"other"}).covered_end is None


def test_readers_are_ordered_and_one_can_be_asked_for(database):
    numbers = [ensure_reader(database, "fake:f:n", name) for name in ("z", "a")]
    with database.reading() as connection:
        assert [one.reader for one in overviews(connection)] == ["a", "z"]
        assert [one.reader for one in overviews(connection, numbers[0])] == ["z"]
        assert overviews(connection, 999) == []


def test_the_rhythm_is_the_usual_length_of_the_last_windows(database):
    one = ensure_reader(database, "fake:f:n", "r")
    with database.reading() as connection:
        assert rhythm(connection, one) is None
    for hour in range(5):
        run(database, one, hour, "covered")
    run(database, one, 5, "covered", hours=24)
    with database.reading() as connection:
        assert rhythm(connection, one) == Window(T0 + 4 * HOUR, T0 + 5 * HOUR)


def only(database: Database):
    with database.reading() as connection:
        (found,) = overviews(connection)
        return found


def test_the_basis_is_the_landings_else_the_newest_plans(database):
    one = ensure_reader(database, "fake:f:n", "r")
    with database.reading() as connection:
        assert basis_of(connection, only(database)) is None
    for number, basis in enumerate(("publish", "append")):
        values = {"window_start": T0, "window_end": T0 + HOUR, "generation": number, "fingerprint": "f"}
        with database.writing() as connection:
            connection.execute(
                insert(pins).values(reader_id=one, pinned_at=T0, plan=f'{{"basis": "{basis}"}}', **values)
            )
    with database.reading() as connection:
        assert basis_of(connection, only(database)) == "append"
    with database.writing() as connection:
        connection.execute(insertion(one, NewLanding({"target": None}, "1d Europe/Berlin", "event"), 1))
    with database.reading() as connection:
        assert basis_of(connection, only(database)) == "event"
        assert str(schedule_of(connection, only(database))) == "1d Europe/Berlin"


def test_without_a_landing_the_schedule_goes_through_the_last_windows(database):
    one = ensure_reader(database, "fake:f:n", "r")
    run(database, one, 0.25, "covered")
    with database.reading() as connection:
        assert str(schedule_of(connection, only(database))) == "1h +15m"


def test_the_tasks_that_read_last_come_first_and_each_once(database):
    one = ensure_reader(database, "fake:f:n", "r")
    for hour, task, index in ((3, "read", -1), (0, "each", 2), (1, "read", -1), (2, "each", 2), (4, "fill", -1)):
        run(database, one, hour, "covered", task_id=task, map_index=index)
    with database.reading() as connection:
        found = tasks_of(connection, only(database))
    assert found == [ReadingTask("dag", "fill"), ReadingTask("dag", "each", 2), ReadingTask("dag", "read")]


def test_what_was_done_is_asked_again_only_of_a_reader_that_has_changed(database):
    one, asked = ensure_reader(database, "fake:f:n", "r"), []

    def done(connection, reader):
        asked.append(reader.version)
        return activities(connection, reader)

    for _ in range(2):
        with database.reading() as connection:
            overviews(connection, done=done)
    with database.writing() as connection:
        connection.execute(change(one))
    with database.reading() as connection:
        overviews(connection, done=done)
    assert asked[0] == asked[1] < asked[2]


def test_a_reader_is_claimed_only_as_it_was_seen(database):
    one, before = ensure_reader(database, "fake:f:n", "r"), only(database).version
    with database.writing() as connection:
        assert claim(connection, one, before)
        connection.execute(change(one))
        assert not claim(connection, one, before)
