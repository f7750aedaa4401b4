"""A system that another package brings (`tests/systems/files_system`): nothing of ours knows it, and it works."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState
from files_system.source import FilesSource

import airflow_provider_streams
from airflow_provider_streams import ParquetSink, PublishTime, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import WindowNotReady
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.operators.read import ReadWindowOperator

pytestmark = [
    pytest.mark.dagtest,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SOURCE = FilesSource("orders")
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def _spark() -> Iterator[None]:
    yield
    from airflow_provider_streams.spark.launch.embedded import embedded_session

    embedded_session().stop()


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An hour of events, one a minute, of the connection `files_default`."""
    folder = tmp_path / "streams" / "orders"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / str(number)).write_text(f"order {number}")
        moment = (START + number * MINUTE).timestamp()
        os.utime(folder / str(number), (moment, moment))
    connection = {"conn_type": "files", "extra": {"root": str(folder.parent), "key": "canary-71"}}
    monkeypatch.setenv("AIRFLOW_CONN_FILES_DEFAULT", json.dumps(connection))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    return folder


@pytest.mark.parametrize("small_plan_bytes", [1 << 25, 0], ids=["driver", "tasks"])
def test_its_windows_are_planned_read_and_landed(dag_test, orders, tmp_path, monkeypatch, small_plan_bytes):
    monkeypatch.setenv("AIRFLOW__STREAMS__SMALL_PLAN_BYTES", str(small_plan_bytes))
    windows = [Window(START + 10 * MINUTE, START + 20 * MINUTE), Window(START + 20 * MINUTE, START + 30 * MINUTE)]
    with DAG(f"files_{small_plan_bytes}", schedule=None, start_date=START) as dag:
        for number, window in enumerate(windows):
            ReadWindowOperator(
                task_id=f"read_{number}",
                source=SOURCE,
                window=window,
                reader="orders",
                basis=PublishTime(2 * MINUTE),
                sink=ParquetSink(str(tmp_path / "lake")),
            )
    run = dag_test(dag)
    assert run.state == DagRunState.SUCCESS
    for number in range(2):
        receipt = run.get_task_instance(f"read_{number}").xcom_pull(task_ids=f"read_{number}")
        assert (receipt["rows"], receipt["verdict"]) == (10, "complete"), receipt
    with open_journal() as journal:
        covered = journal.coverage(SOURCE.key, "orders", START, START + 60 * MINUTE).windows
    assert [(one.state, one.window) for one in covered if one.state == "covered"] == [("covered", w) for w in windows]
    rows = ds.dataset(tmp_path / "lake", exclude_invalid_files=True).to_table(columns=["number", "value"]).to_pylist()
    assert sorted((row["number"], row["value"]) for row in rows) == [(n, b"order %d" % n) for n in range(10, 30)]


def test_its_window_that_is_still_written_is_not_ready(orders):
    with closing(hook_for(SOURCE).system()) as system, pytest.raises(WindowNotReady, match="still being written"):
        system.plan(PlanRequest(SOURCE, Window(START, datetime.now(UTC) + MINUTE), "tests"))


def test_it_touches_nothing_beyond_its_folder_but_the_line_that_registers_it():
    package = Path(airflow_provider_streams.__file__).parent
    places = [package, TESTS / "conftest.py", TESTS.parent / "pyproject.toml"]
    files = [file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])]
    lines = [line for file in files for line in file.read_text().splitlines() if "files_system.declaration" in line]
    # the registry's own docstring shows how a package adds one
    assert sorted(line.strip() for line in lines) == [
        '"files": "files_system.declaration:Files",',
        'files = "files_system.declaration:Files"',
    ]
