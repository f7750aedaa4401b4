"""A migrated metadata database, in-memory DAGs run by `dag.test()`, and a Spark that needs no JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from airflow_provider_streams.testing.landing import run_without_spark

BUNDLE = "testing"


@pytest.fixture(scope="session")
def migrated_database(airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A freshly migrated SQLite metadata database: copy it, do not use it."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    template = tmp_path_factory.mktemp("metadata") / "airflow.db"
    shutil.copy(airflow_home / "airflow.db", template)
    return template


@pytest.fixture
def dag_test(migrated_database: Path) -> Callable[..., Any]:
    """Runs a DAG in this process: `dag_test(dag, **arguments of dag.test)` gives the run."""
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    def run(dag: Any, **arguments: Any) -> Any:
        with create_session() as session:
            if session.get(DagBundleModel, BUNDLE) is None:
                session.add(DagBundleModel(name=BUNDLE))
        bag = DagBag(dag_folder="/dev/null")
        bag.bag_dag(dag)
        sync_bag_to_db(bag, BUNDLE, None)
        return dag.test(**{"logical_date": datetime.now(UTC), **arguments})

    return run


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Sets what the fake server behind the connection `fake_default` holds: `fake(events=10, ..)`."""
    from airflow_provider_streams.testing.fake import dump

    truth = tmp_path / "truth.json"
    connection = {"conn_type": "fake", "password": "", "extra": {"truth": str(truth)}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    monkeypatch.setenv(
        "AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "journal.db")})
    )

    def hold(**what: object) -> Path:
        return dump(truth, **what)

    hold()
    return hold


@dataclass
class Launches:
    """What was given to Spark."""

    specs: list[Any] = field(default_factory=list)
    tables: list[list[dict[str, Any]]] = field(default_factory=list)
    chunks: list[Any] = field(default_factory=list)
    cancelled: int = 0
    settings: list[tuple[Any, ...]] = field(default_factory=list)
    """Connection, and the user's settings, of each launch."""
    tamper: Callable[[list[Any]], list[Any]] = lambda receipts: receipts
    before: Callable[[Any], None] = lambda _spec: None
    """Called with each spec, before it is read."""


@pytest.fixture
def spark_stand_in(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """Runs each job in this process, without Spark, and keeps what it was told and has read."""
    from airflow_provider_streams.hooks import spark
    from airflow_provider_streams.spark import reading

    launches, read_table = Launches(), reading.read_table

    def launch(spec: Any, *spark: Any) -> Any:
        launches.settings.append(spark)
        launches.specs.append(spec)
        return run_without_spark(spec)

    def launch_chunk(chunk: Any, *spark: Any) -> Any:
        launches.settings.append(spark)
        launches.chunks.append(chunk)
        launches.specs.extend(chunk.specs)
        return run_without_spark(chunk)

    def read(spec: Any) -> Any:
        launches.before(spec)
        table, receipts = read_table(spec)
        launches.tables.append(table.to_pylist())
        return table, launches.tamper(receipts)

    monkeypatch.setattr(spark, "launch", launch)
    monkeypatch.setattr(spark, "launch_chunk", launch_chunk)
    monkeypatch.setattr(reading, "read_table", read)
    return launches


@dataclass
class Fragile:
    """A transform that lets all rows through, and can be told to fail in the middle of a job."""

    folder: Path
    name: str = field(default_factory=lambda: f"fragile_{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        code = f"""
            from pathlib import Path

            def through(df):
                if Path({str(self._flag)!r}).exists():
                    raise RuntimeError("told to fail")
                return df
            """
        (self.folder / f"{self.name}.py").write_text(dedent(code))

    @property
    def path(self) -> str:
        """As operators take it."""
        return f"{self.name}:through"

    @property
    def _flag(self) -> Path:
        return self.folder / f"{self.name}.fails"

    @contextmanager
    def failing(self) -> Iterator[None]:
        self._flag.touch()
        yield
        self._flag.unlink()


@pytest.fixture
def fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fragile:
    monkeypatch.syspath_prepend(tmp_path)
    return Fragile(tmp_path)


@pytest.fixture(autouse=True)
def _no_secret_from_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("STREAMS_"):
            monkeypatch.delenv(name)
