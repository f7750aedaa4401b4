from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.names import ensure_reader
from airflow_provider_streams.journal.overview import last_basis, overviews, rhythm
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.window import Window

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
        "task_id": "task",
        "map_index": -1,
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
    assert (found.source_key, found.reader, found.last_pin) == ("fake:f:n", "r", None)
    mine, other = found.by_dag["dag"], found.by_dag["other"]
    assert (mine.runs, mine.running, mine.last_run) == (2, 0, 2)
    assert (mine.first_start, mine.last_end, mine.covered_end) == (T0, T0 + 2 * HOUR, T0 + HOUR)
    assert mine.last_finished == T0 + 3 * HOUR
    assert (other.running, other.last_finished, other.covered_end) == (1, None, None)
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


def test_the_last_basis_is_the_newest_plans(database):
    one = ensure_reader(database, "fake:f:n", "r")
    with database.reading() as connection:
        assert last_basis(connection, one) is None
    for number, basis in enumerate(("publish", "append")):
        values = {"window_start": T0, "window_end": T0 + HOUR, "generation": number, "fingerprint": "f"}
        with database.writing() as connection:
            connection.execute(
                insert(pins).values(reader_id=one, pinned_at=T0, plan=f'{{"basis": "{basis}"}}', **values)
            )
    with database.reading() as connection:
        assert last_basis(connection, one) == "append"
