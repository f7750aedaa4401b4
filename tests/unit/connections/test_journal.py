from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from time import monotonic

import pytest
from sqlalchemy import make_url

from airflow_provider_streams.connections.journal import journal_url, open_journal
from airflow_provider_streams.errors import InvalidRequest, JournalError, JournalUnavailable


@pytest.fixture
def connection(monkeypatch):
    def is_(value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", text)

    return is_


def test_without_its_connection_the_journal_lies_in_airflows_home(airflow_home, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_STREAMS_JOURNAL", raising=False)
    assert journal_url("streams_journal") == f"sqlite:///{airflow_home / 'streams_journal.db'}"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"conn_type": "sqlite", "host": "/data/journal.db"}, "sqlite:////data/journal.db"),
        (
            {
                "conn_type": "postgres",
                "host": "db",
                "port": 5433,
                "login": "me",
                "password": "p/@:",
                "schema": "streams",
            },
            "postgresql+psycopg://me:p%2F%40%3A@db:5433/streams",
        ),
        (
            {"conn_type": "postgres", "host": "db", "schema": "s", "extra": {"sslmode": "require"}},
            "postgresql+psycopg://db/s?sslmode=require",
        ),
        (
            {"conn_type": "postgres", "host": "db", "extra": {"a": None, "connect_timeout": 2.5}},
            "postgresql+psycopg://db?connect_timeout=2.5",
        ),
        ("mysql://me:secret@db/streams", "mysql+pymysql://me:secret@db/streams"),
        ("mariadb://me:secret@db/streams", "mysql+pymysql://me:secret@db/streams"),
        ("sqlite:////data/journal.db?timeout=60", "sqlite:////data/journal.db?timeout=60"),
    ],
)
def test_a_connection_is_an_sqlalchemy_url(connection, given, url):
    connection(given)
    assert journal_url("streams_journal") == url


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"conn_type": "postgres", "host": "/run/pg"}, {"host": "/run/pg"}),
        ({"conn_type": "postgres", "host": "/run/pg", "port": 5433}, {"host": "/run/pg", "port": "5433"}),
        ("postgres://me:secret@%2Frun%2Fpg/streams", {"host": "/run/pg"}),
        ({"conn_type": "mysql", "host": "/run/my.sock", "port": 3306}, {"unix_socket": "/run/my.sock"}),
        ({"conn_type": "mysql", "host": "/s", "extra": {"unix_socket": "/s"}}, {"unix_socket": "/s"}),
    ],
)
def test_a_host_that_is_a_path_is_a_socket(connection, given, options):
    connection(given)
    url = make_url(journal_url("streams_journal"))
    assert (url.host, url.port, dict(url.query)) == (None, None, options)


def test_two_sockets_are_refused(connection):
    connection({"conn_type": "postgres", "host": "/run/pg", "extra": {"host": "/run/other"}})
    with pytest.raises(InvalidRequest, match=r"host is the socket /run/pg, and its extra names another host"):
        journal_url("streams_journal")


@pytest.mark.parametrize("name", ["j?a.db", "j#b.db", "100%41.db", "j%3Fa.db", "with space.db"])
def test_a_sqlite_journal_is_the_file_that_is_written_or_none(connection, tmp_path, name):
    connection({"conn_type": "sqlite", "host": str(tmp_path / name)})
    refused = False
    try:
        with open_journal() as journal:
            journal.prune(timedelta(days=1))
    except InvalidRequest:  # SQLAlchemy before 2.1
        refused = True
    assert [one.name for one in tmp_path.iterdir()] == ([] if refused else [name])
    assert not refused or "%" in name or "?" in name


@pytest.mark.parametrize(("extra", "said"), [({"tmeout": "60"}, "no option 'tmeout'"), ({"timeout": "long"}, "long")])
def test_an_option_of_a_sqlite_journal_that_cannot_be_used_is_refused(connection, tmp_path, extra, said):
    connection({"conn_type": "sqlite", "host": str(tmp_path / "j.db"), "extra": extra})
    with pytest.raises(InvalidRequest, match=said):
        open_journal()


def test_a_sqlite_journal_waits_as_long_as_its_connection_says(connection, tmp_path):
    connection({"conn_type": "sqlite", "host": str(tmp_path / "j.db"), "extra": {"timeout": 0.2}})
    with closing(sqlite3.connect(tmp_path / "j.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = monotonic()
        with pytest.raises(JournalUnavailable, match="locked"), open_journal() as journal:
            journal.prune(timedelta(days=1))
        assert monotonic() - began < 20, "it would be 30 s"


def test_a_connection_that_is_no_database_is_refused_without_its_secrets(connection):
    connection({"conn_type": "http", "host": "h", "password": "canary-5512"})
    with pytest.raises(JournalError, match="has the type 'http'") as caught:
        journal_url("streams_journal")
    assert "canary" not in str(caught.value)


def test_the_setting_names_the_connection(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__STREAMS__JOURNAL_CONN_ID", "ours")
    monkeypatch.setenv("AIRFLOW_CONN_OURS", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "ours.db")}))
    with open_journal() as journal:
        assert journal.sources() == []
    assert (tmp_path / "ours.db").exists()


@pytest.mark.parametrize(("text", "keep"), [("", None), (" ", None), ("90d", timedelta(days=90))])
def test_how_long_history_is_kept_is_a_setting(tmp_path, connection, monkeypatch, text, keep):
    connection({"conn_type": "sqlite", "host": str(tmp_path / "journal.db")})
    monkeypatch.setenv("AIRFLOW__STREAMS__JOURNAL_KEEP", text)
    with open_journal() as journal:
        assert journal._keep == keep


@pytest.mark.parametrize("text", ["soon", "1h"])
def test_a_setting_that_would_keep_too_little_is_refused(tmp_path, connection, monkeypatch, text):
    connection({"conn_type": "sqlite", "host": str(tmp_path / "journal.db")})
    monkeypatch.setenv("AIRFLOW__STREAMS__JOURNAL_KEEP", text)
    with pytest.raises(InvalidRequest, match=rf"\[streams\] journal_keep = {text}: "):
        open_journal()


@pytest.mark.parametrize(
    ("host", "port", "shown"),
    [
        ("::1", 5433, "[::1]:5433"),
        ("[::1]", 5433, "[::1]:5433"),
        ("db:5433", None, "db:5433"),
        ("db:5433", 5433, "db:5433"),
    ],
)
def test_a_host_may_say_its_port(connection, host, port, shown):
    connection({"conn_type": "postgres", "host": host, "port": port, "schema": "s"})
    assert journal_url("streams_journal") == f"postgresql+psycopg://{shown}/s"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": "db", "password": "canary-5513"}, "password is given without login"),
        ({"host": "db:5432", "port": 5433}, "host says port 5432, and port says 5433"),
        ({"host": "postgres://db"}, "host holds something that is no host"),
        ({"host": "me:canary-5513@db"}, "host holds something that is no host"),
        ({"host": "db", "extra": {"sslmode": ["disable"]}}, "option 'sslmode' in its extra is a list"),
        ({"host": "db", "extra": {"ssl": {"ca": "canary-5513"}}}, "option 'ssl' in its extra is a dict"),
    ],
)
def test_what_would_be_dropped_or_is_no_host_is_refused(connection, given, said):
    connection({"conn_type": "postgres", "schema": "s", **given})
    with pytest.raises(InvalidRequest, match=f"'streams_journal'.*{said}") as caught:
        journal_url("streams_journal")
    assert "canary" not in str(caught.value)
