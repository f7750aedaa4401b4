"""A migrated metadata database, in-memory DAGs run by `dag.test()`, and a Spark that needs no JVM."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from airflow_provider_streams.airflow_features import Feature, core_timetable, dag_bags, has
from airflow_provider_streams.systems.rest.server_date import ServerClock
from airflow_provider_streams.testing.landing import run_without_spark
from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable
from tests.airflow.shop import AHEAD, PUBLISHED, TO_BE_PUBLISHED, TORN, Topic, open_shop, take_orders

BUNDLE = "testing"


@pytest.fixture(scope="session")
def migrated_database(airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A freshly migrated SQLite metadata database: copy it, do not use it."""
    from airflow.utils.db import initdb

    initdb()  # what `airflow db migrate` does to a new database, without another interpreter that imports Airflow
    template = tmp_path_factory.mktemp("metadata") / "airflow.db"
    with closing(sqlite3.connect(airflow_home / "airflow.db")) as made, closing(sqlite3.connect(template)) as copy:
        made.backup(copy)
    return template


def forget_older_versions(dag_id: str) -> None:
    """What Airflow stored of a DAG for other tests: `dag.test` cannot replace a run of a DAG that has two versions."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        latest = SerializedDagModel.get(dag_id, session=session)
        older = (SerializedDagModel.dag_id == dag_id, SerializedDagModel.id != latest.id)
        session.execute(delete(SerializedDagModel).where(*older))


def key_of_partition(dag: Any, partition: datetime) -> str:
    """As the DAG's own timetable writes it, or as most do."""
    import pendulum

    by_timetable = getattr(core_timetable(dag.timetable), "_format_key", None)
    return by_timetable(pendulum.instance(partition)) if by_timetable else f"{partition:%Y-%m-%dT%H:%M:%S}"


@pytest.fixture
def dag_test(migrated_database: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a DAG in this process: `dag_test(dag, **arguments of dag.test)` gives the run.

    With `partition=<its start>`, the run belongs to a partition, as the scheduler makes it.
    """
    from airflow.models import dagrun
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session
    from sqlalchemy import update

    make = dagrun.get_or_create_dagrun

    def run(dag: Any, *, partition: datetime | None = None, **arguments: Any) -> Any:
        with create_session() as session:
            if session.get(DagBundleModel, BUNDLE) is None:
                session.add(DagBundleModel(name=BUNDLE))
        bag = dag_bags().DagBag(dag_folder="/dev/null")
        bag.bag_dag(dag)
        dag_bags().sync_bag_to_db(bag, BUNDLE, None)
        forget_older_versions(dag.dag_id)
        if partition is None:
            return dag.test(**{"logical_date": datetime.now(UTC), **arguments})
        if not has(Feature.PARTITIONED_RUNS):
            # the run that the scheduler makes at the end of that data interval
            cells = schedule_of_timetable(dag.timetable)
            assert cells is not None
            return dag.test(logical_date=cells.after(partition), **arguments)

        def of_partition(*, session: Any, **how: Any) -> Any:
            # `dag.test` deletes the DAG's other run without a logical date
            other = (dagrun.DagRun.dag_id == dag.dag_id, dagrun.DagRun.logical_date.is_(None))
            session.execute(update(dagrun.DagRun).where(*other).values(logical_date=datetime.now(UTC)))
            made = make(session=session, **how)
            made.partition_date, made.partition_key = partition, key_of_partition(dag, partition)
            session.commit()
            return made

        monkeypatch.setattr(dagrun, "get_or_create_dagrun", of_partition)
        try:
            return dag.test(logical_date=None, **arguments)
        finally:
            monkeypatch.setattr(dagrun, "get_or_create_dagrun", make)

    return run


@pytest.fixture(scope="module")
def shop_orders(request: pytest.FixtureRequest, pulsar_server: Any) -> Iterator[Topic]:
    """`shop/orders/events`, the topic of the examples: orders of a day, or of hours to come, see `clock_ahead`."""
    open_shop(pulsar_server, "shop/orders")
    past = "airflow_stack" in request.fixturenames
    torn = {} if past else {"torn": TORN}
    yield take_orders(pulsar_server, "shop/orders/events", PUBLISHED if past else TO_BE_PUBLISHED, **torn)
    pulsar_server.delete_namespace("shop/orders")


@pytest.fixture
def clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides whether a window is over takes it to be some hours later."""
    from airflow_provider_streams.hooks import base
    from airflow_provider_streams.systems.pulsar.planning import planner

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + AHEAD

    for module in (base, planner):
        monkeypatch.setattr(module, "datetime", Later)
    monkeypatch.setattr(ServerClock, "latest", lambda _: Later.now(UTC))


@pytest.fixture
def pulsar(pulsar_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the examples' Pulsar connections lead; the journal is empty. The folder of their tables."""
    extra = {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}
    for name in ("DEFAULT", "DEMO"):
        monkeypatch.setenv(f"AIRFLOW_CONN_PULSAR_{name}", json.dumps({"conn_type": "pulsar", "extra": extra}))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    return tmp_path / "lake"


@pytest.fixture
def pravega(pravega_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the examples' Pravega connections lead."""
    told = {"conn_type": "pravega", "extra": {"controller": pravega_server.controller_uri}}
    for name in ("DEFAULT", "DEMO"):
        monkeypatch.setenv(f"AIRFLOW_CONN_PRAVEGA_{name}", json.dumps(told))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Sets what the fake server of the connection `fake_default` holds: `fake(events=10, ..)`."""
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
    jobs: list[Any] = field(default_factory=list)
    cancelled: int = 0
    settings: list[tuple[Any, ...]] = field(default_factory=list)
    """Connection, and the user's settings, of each launch."""
    tamper: Callable[[list[Any]], list[Any]] = lambda receipts: receipts
    before: Callable[[Any], None] = lambda _spec: None
    """Called with each spec, before it is read."""


@pytest.fixture
def spark_stand_in(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """Runs each job in this process, without Spark, and keeps what it was told and has read."""
    from airflow_provider_streams.airflow_runtime import spark_launch
    from airflow_provider_streams.spark.job import plan_reading

    launches, read_table = Launches(), plan_reading.read_table

    def launch(job: Any, *spark: Any) -> Any:
        launches.settings.append(spark)
        launches.jobs.append(job)
        launches.specs.extend(job.specs)
        return run_without_spark(job)

    def read(spec: Any, systems: Any, progress: Any = None) -> Any:
        launches.before(spec)
        table, receipts = read_table(spec, systems, progress)
        launches.tables.append(table.to_pylist())
        return table, launches.tamper(receipts)

    monkeypatch.setattr(spark_launch, "launch", launch)
    monkeypatch.setattr(plan_reading, "read_table", read)
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
