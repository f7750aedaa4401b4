from __future__ import annotations

import json
from datetime import timedelta

import pytest

from airflow_provider_streams.connections.journal import journal_url, open_journal
from airflow_provider_streams.errors import InvalidRequest, JournalError


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
    ],
)
def test_a_connection_is_an_sqlalchemy_url(connection, given, url):
    connection(given)
    assert journal_url("streams_journal") == url


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
