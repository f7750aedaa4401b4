from __future__ import annotations

import fcntl
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import traceback

import pytest
from sqlalchemy import insert, select, text

from airflow_provider_streams.errors import (
    InvalidRequest,
    JournalError,
    JournalUnavailable,
    MissingDependency,
    StreamsError,
)
from airflow_provider_streams.journal.database import Database, _sqlite_make
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import digest, sources
from tests.unit.databases_without_tls import mysql, postgres, repeating, serving


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'journal.db'}"


def source(name: str):
    return insert(sources).values(digest=digest(name), source_key=name)


@pytest.mark.parametrize(
    "url",
    [
        "not a url hunter2",
        "",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "sqlite+aiosqlite:////tmp/x.db",
        "postgresql+asyncpg://u:hunter2@h/d",
        "postgresql+psycopg_async://u:hunter2@h/d",
        "oraclette://u:hunter2@h/d",
    ],
)
def test_a_url_that_cannot_hold_a_journal_is_refused_without_its_password(url):
    with pytest.raises(StreamsError) as caught:
        Database(url)
    assert isinstance(caught.value, JournalError | MissingDependency)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_journal_is_its_owners_alone_and_an_older_ones_mode_is_kept(tmp_path, url, mask):
    before = os.umask(mask)
    try:
        database = Database(url)
        with database.writing() as connection:
            connection.execute(source("pulsar:a:b"))
            files = list(tmp_path.iterdir())
            assert {file.name for file in files} >= {"journal.db", "journal.db-wal"}
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        (tmp_path / "journal.db").chmod(0o660)
        with Database(url).reading():
            assert (tmp_path / "journal.db").stat().st_mode & 0o777 == 0o660
    finally:
        os.umask(before)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_server_that_does_not_answer_is_a_passing_error_without_the_password(scheme):
    url = f"{scheme}://me:hunter2@127.0.0.1:1/db?sslpassword=hunter3"
    with pytest.raises(JournalUnavailable) as caught:
        Journal.open(url)
    said = "".join(traceback.format_exception(caught.value))
    assert caught.value.retryable
    assert "postgresql+psycopg://me:***@127.0.0.1:1/db" in said
    assert "hunter2" not in said
    assert "hunter3" not in said
    assert repr(Journal(url)) == "Journal('postgresql+psycopg://me:***@127.0.0.1:1/db')"


@pytest.mark.parametrize(("scheme", "answer"), [("postgres", postgres), ("mysql", mysql)])
def test_a_server_without_tls_gets_no_password(scheme, answer):
    with serving(answer) as server, pytest.raises(JournalError, match=r"Switch TLS on.*sslmode=disable") as caught:
        Journal.open(f"{scheme}://me:hunter2@127.0.0.1:{server.port}/db")
    assert not caught.value.retryable
    assert server.heard == [b""]


def test_a_password_travels_in_clear_if_the_url_says_so():
    with serving(postgres) as server, pytest.raises(JournalUnavailable):
        Journal.open(f"postgres://me:hunter2@127.0.0.1:{server.port}/db?sslmode=prefer")
    assert b"hunter2" in server.heard[1]


def test_the_environment_leads_no_password_elsewhere(monkeypatch):
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")
    with pytest.raises(
        InvalidRequest, match=r"journal postgresql\+psycopg://me:\*\*\*@db/x has .* variable PGHOSTADDR"
    ):
        Database("postgres://me:hunter2@db/x")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("ssl_ca=/nowhere/ca.pem", r"FileNotFoundError.*there is no file ssl_ca=/nowhere/ca\.pem"),
        ("ssl_mode=DISABLED", r"TypeError.*'ssl_mode'.*remove"),
        ("default_file=/nowhere/my.cnf", r"TypeError.*'default_file'"),
        ("connect_timeout=soon", "ValueError.*'soon'"),
        ("connect_timeout=0", "ValueError: connect_timeout should be"),
    ],
)
def test_an_option_that_the_driver_cannot_use_is_named(option, said):
    with serving(mysql) as server, pytest.raises(InvalidRequest, match=f"journal mysql.*{said}") as caught:
        Journal.open(f"mysql://me:hunter2@127.0.0.1:{server.port}/db?{option}")
    assert "hunter2" not in str(caught.value)


def test_a_database_that_repeats_the_machines_password_is_quoted_without_it(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "canary-2291")
    monkeypatch.setenv("PGSSLMODE", "disable")
    with serving(repeating) as server, pytest.raises(JournalUnavailable, match=r"you said \*\*\*") as caught:
        Journal.open(f"postgres://me@127.0.0.1:{server.port}/db")
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_a_url_with_letters_that_are_not_escaped_is_refused_without_being_shown():
    with pytest.raises(JournalError, match="%40 for '@'") as caught:
        Database("postgres://me:p@hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(MissingDependency, match=r"airflow-provider-streams\[mysql\]"):
        Database("mysql://me@host/db")


def test_a_folder_that_does_not_exist_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(JournalError, match=r"nowhere/journal\.db"):
        Journal.open(f"sqlite:///{tmp_path}/nowhere/journal.db")


def test_a_file_that_is_no_database_is_an_error(tmp_path):
    (tmp_path / "journal.db").write_text("no database at all" * 1000)
    with pytest.raises(JournalError, match="not a database"):
        Journal.open(f"sqlite:///{tmp_path}/journal.db")


def test_errors_show_neither_statements_nor_values(url):
    database = Database(url)
    with pytest.raises(JournalError) as caught, database.writing() as connection:
        connection.execute(text("INSERT INTO nowhere VALUES (:value)"), {"value": "a whole plan"})
    said = "".join(traceback.format_exception(caught.value))
    assert "no such table: nowhere" in said
    assert "a whole plan" not in said


def test_making_a_journal_touches_nothing_and_its_first_use_makes_the_tables(tmp_path, url):
    journal = Journal(url)
    assert list(tmp_path.iterdir()) == []
    assert journal.sources() == []


def test_a_transaction_that_fails_leaves_nothing(url):
    database = Database(url)

    def half():
        with database.writing() as connection:
            connection.execute(source("half"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    with database.reading() as connection:
        assert connection.execute(select(sources)).all() == []


def test_a_row_is_inserted_once(url):
    database = Database(url)
    assert database.insert_once(source("a"))
    assert not database.insert_once(source("a"))


def test_a_refused_row_that_nobody_has_is_an_error_and_not_an_endless_wait(url):
    database = Database(url)
    database.insert_once(source("a"))
    with pytest.raises(JournalError, match="refused"):
        database.winner(lambda _: None, lambda: source("a"))


def test_readers_do_not_wait_for_a_writer_and_see_only_what_is_committed(url):
    database = Database(url)
    with database.writing() as connection:
        connection.execute(source("a"))
        with database.reading() as other:
            assert other.execute(select(sources)).all() == []
    with database.reading() as other:
        assert len(other.execute(select(sources)).all()) == 1


def test_writers_take_turns(url):
    database = Database(url)
    database.prepare()
    inside, entered = threading.Event(), threading.Event()

    def second():
        inside.wait(600)
        with database.writing() as connection:
            entered.set()
            connection.execute(source("second"))

    thread = threading.Thread(target=second)
    thread.start()
    with database.writing() as connection:
        inside.set()
        assert not entered.wait(0.3)
        connection.execute(source("first"))
    thread.join(600)
    with database.reading() as connection:
        assert connection.execute(select(sources.c.source_key).order_by(sources.c.id)).scalars().all() == [
            "first",
            "second",
        ]


def test_a_writer_that_waits_too_long_gets_a_passing_error(url, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.journal.database.BUSY_SECONDS", 0.1)
    database = Database(url)
    with database.writing(), pytest.raises(JournalUnavailable, match="locked"), database.writing():
        pass


def test_a_fork_uses_connections_of_its_own(url):
    database = Database(url)
    database.insert_once(source("parent"))
    child = multiprocessing.get_context("fork").Process(target=database.insert_once, args=(source("child"),))
    with database.reading() as connection:
        child.start()
        child.join(600)
        assert connection.execute(select(sources.c.source_key)).scalars().all() == ["parent", "child"]
    assert child.exitcode == 0


def test_journals_of_one_url_share_an_engine_and_one_that_closes_leaves_the_others(url, tmp_path):
    first, second, other = Database(url), Database(url), Database(f"sqlite:///{tmp_path / 'other.db'}")
    assert first._engine is second._engine
    assert first._engine is not other._engine
    with first.writing() as connection:
        connection.execute(source("a"))
        second.close()
        connection.execute(source("b"))
    first.close()
    with second.reading() as connection:
        assert connection.execute(select(sources.c.source_key)).scalars().all() == ["a", "b"]
    with other.reading() as connection:
        assert connection.execute(select(sources.c.source_key)).scalars().all() == []


def test_journal_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(JournalUnavailable("journal.db: locked")))  # noqa: S301
    assert (type(error), str(error), error.retryable) == (JournalUnavailable, "journal.db: locked", True)


_IS_LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(3)
"""


def test_to_connect_takes_no_lock_away_that_another_thread_has_on_the_file(tmp_path):
    path = tmp_path / "journal.db"
    Journal.open(f"sqlite:///{path}").close()
    with path.open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        _sqlite_make(None, None, [str(path)], None)
        asked = subprocess.run([sys.executable, "-c", _IS_LOCKED, str(path)], check=False)
    assert asked.returncode == 3
