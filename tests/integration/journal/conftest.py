from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range, SourceRef, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window

SHARD = "persistent://shop/orders/events"
T10 = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Databases: SQLite and Postgres, and MySQL for modules about what only a server decides.

    Of a module that says `MYSQL_IS_SLOW`, what counts are the statements, and Postgres stands for both in `make test`.
    """
    if "url" in metafunc.fixturenames and not hasattr(metafunc.module, "url"):
        databases: list[object] = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
        if getattr(metafunc.module, "ALSO_ON_MYSQL", False):
            slow = [pytest.mark.slow] if getattr(metafunc.module, "MYSQL_IS_SLOW", False) else []
            databases.append(pytest.param("mysql", marks=[pytest.mark.postgres, *slow]))
        metafunc.parametrize("url", databases, indirect=True)


@pytest.fixture
def url(request, tmp_path) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'journal.db'}"
        return
    if request.param == "postgres":
        database = request.getfixturevalue("postgres_database")
        yield database
        with _connected(database) as execute:
            execute(_END_OTHERS)
            execute("DROP SCHEMA public CASCADE")
            execute("CREATE SCHEMA public")
        return
    server = request.getfixturevalue("mariadb_url")
    name = f"journal_{abs(hash(str(tmp_path))):x}"
    with _connected(server) as execute:
        execute(f"CREATE DATABASE {name}")
    yield _named(server, name)
    with _connected(server) as execute:
        execute(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def postgres_database(postgres_url: str) -> str:
    """One for all tests, each of which leaves it empty: to make one is more work than most of them."""
    with _connected(postgres_url) as execute:
        execute("CREATE DATABASE journals")
    return _named(postgres_url, "journals")


_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@contextmanager
def _connected(url: str) -> Iterator[Callable[[str], object]]:
    """Executes statements, each for itself."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield lambda statement: connection.execute(text(statement))


def _named(server: str, database: str) -> str:
    return make_url(server).set(database=database).render_as_string(hide_password=False)


@pytest.fixture
def journal(url) -> Iterator[Journal]:
    with Journal.open(url) as journal:
        yield journal


@pytest.fixture
def hour() -> Callable[[int], Window]:
    """The n-th hour after 10:00."""
    return lambda number=0: Window(T10 + number * HOUR, T10 + (number + 1) * HOUR)


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """A plan that reads entries `[first, end)` of one ledger."""

    def make(window: Window, first: int = 0, end: int = 10, reader: str = "dag.read") -> Plan:
        start, stop = Position.of(7, first, -1), Position.of(7, end, -1)
        return Plan(
            reader=reader,
            source=SourceRef("pulsar", "test", (SHARD,)),
            window=window,
            basis="publish",
            filter=None,
            start_cut=Cut({SHARD: start}),
            end_cut=Cut({SHARD: stop}),
            ranges=(Range(SHARD, start, stop, 1000),),
            splits=(Split(0, SHARD, start, stop, 1000),),
            estimate=Estimate(1000),
            observed_at=T10,
            head=Cut({SHARD: Position.of(7, 0, -1)}),
        )

    return make


@pytest.fixture
def landed_of() -> Callable[..., Landed]:
    """A window of this plan that was read, and agrees with it."""
    return lambda plan, rows=5: Landed(compare(plan, [SplitReceipt(0, rows=rows, bytes=rows * 100)], seconds=1))


@pytest.fixture
def at_once() -> Callable[..., list]:
    """Runs a function in `count` forked processes that leave one barrier together; their answers, by number."""

    def run(count: int, function: Callable[[int], object]) -> list:
        context = multiprocessing.get_context("fork")
        barrier, answers = context.Barrier(count), context.SimpleQueue()

        def body(number: int) -> None:
            barrier.wait(600)
            try:
                answers.put((number, function(number)))
            except BaseException as error:  # noqa: BLE001 - the parent fails on it
                answers.put((number, error))

        processes = [context.Process(target=body, args=(number,)) for number in range(count)]
        for process in processes:
            process.start()
        collected = dict(answers.get() for _ in processes)
        for process in processes:
            process.join(600)
        failures = [answer for answer in collected.values() if isinstance(answer, BaseException)]
        assert not failures, failures
        return [collected[number] for number in range(count)]

    return run


@pytest.fixture
def all_insert_at_once(monkeypatch):
    """Holds inserts into a table back until `count` processes stand before theirs: each has read that none is there."""

    def hold(table, count):
        barrier = multiprocessing.get_context("fork").Barrier(count)
        insert_once = Database.insert_once

        def held(self, *statements):
            if statements[-1].table is table:
                barrier.wait(600)
            return insert_once(self, *statements)

        monkeypatch.setattr(Database, "insert_once", held)

    return hold
