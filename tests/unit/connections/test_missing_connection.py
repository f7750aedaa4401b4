"""The suggestion for a connection that does not exist: only one that would do."""

from __future__ import annotations

import re

import pytest

from airflow_provider_streams.airflow_runtime.spark_launch import launcher_for
from airflow_provider_streams.connections import missing_connection
from airflow_provider_streams.connections.journal import aopen_journal, journal_url, open_journal
from airflow_provider_streams.connections.missing_connection import no_connection
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.pravega import PravegaHook


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_SHOP", '{"conn_type": "pulsar", "host": "127.0.0.1"}')
    monkeypatch.setenv("AIRFLOW_CONN_PRAVEGA_SHOP", "pravega://127.0.0.1:9090")
    monkeypatch.setenv("AIRFLOW_CONN_CONNECT_SHOP", "spark-connect://127.0.0.1:15002")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_SHOP", '{"conn_type": "aws"}')
    monkeypatch.setenv("AIRFLOW_CONN_TORN_SHOP", "{")
    monkeypatch.setenv("AIRFLOW_CONN_PLAIN_SHOP", '{"host": "127.0.0.1"}')


def refusal(ask) -> str:
    with pytest.raises(InvalidRequest) as caught:
        ask()
    return str(caught.value)


def test_a_connection_of_the_same_type_is_suggested() -> None:
    assert "did you mean 'pravega_shop'?" in refusal(PravegaHook("pravega_shpo").options)


@pytest.mark.parametrize("conn_id", ["pulsar_shpo", "connect_shpo", "lake_shpo"])
def test_a_connection_of_another_type_is_not(conn_id: str) -> None:
    assert f"did you mean '{conn_id[:-2]}op'" not in refusal(PravegaHook(conn_id).options)


def test_a_hook_takes_a_connection_without_a_type() -> None:
    assert "did you mean 'plain_shop'?" in refusal(PravegaHook("plain_shpo").options)


def test_spark_suggests_a_spark() -> None:
    assert "did you mean 'connect_shop'?" in refusal(lambda: launcher_for("connect_shpo"))
    assert "did you mean 'pulsar_shop'?" not in refusal(lambda: launcher_for("pulsar_shpo"))


def test_a_table_suggests_a_store_or_a_catalog() -> None:
    assert "did you mean 'lake_shop'?" in refusal(lambda: properties_of("lake_shpo"))
    assert "did you mean 'pulsar_shop'?" not in refusal(lambda: properties_of("pulsar_shpo"))


def test_types_in_the_database_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    monkeypatch.setattr(missing_connection, "_of_database", lambda: [("north_events", "pulsar"), ("south", "pravega")])
    assert "did you mean" not in str(no_connection("north_event", ("pravega",), "add it"))
    assert "did you mean 'north_events'?" in str(no_connection("north_event", ("pulsar",), "add it"))


UNREADABLE = [
    ("pravega://u:canary/81@c:9090", "Percent-encode / [?] # @"),
    ("pravega://u:canary[81@c:9090", "Percent-encode"),
    ("pravega://u:p@c:canary81", "Percent-encode"),
    ("pravega://a:9090,b:9090", "ports of several hosts"),
    ("pravega://tls://c:9090/?rest_url=https://canary81", "percent-encode the addresses after the"),
    ('{"conn_type": "pravega", "host": "canary81"', "it is not JSON"),
    ('{"conn_type": "pravega", "hots": "canary81"}', "it has 'hots', and may only have conn_type, .*host"),
    ('{"conn_type": "pravega", "port": "canary81"}', "its port must be a whole number"),
]


@pytest.mark.parametrize(("text", "problem"), UNREADABLE)
def test_a_connection_that_airflow_cannot_read_is_there_and_its_problem_is_named(monkeypatch, text, problem) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TORN", text)
    asked = [PravegaHook("torn").options, lambda: launcher_for("torn"), lambda: properties_of("torn")]
    for ask in (*asked, lambda: journal_url("torn"), lambda: open_journal("torn")):
        said = refusal(ask)
        assert re.search(f"'torn': Airflow cannot read the environment variable AIRFLOW_CONN_TORN: .*{problem}", said)
        assert "canary" not in said


async def test_an_event_loop_does_not_take_another_journal(monkeypatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TORN", "postgres://me:canary/81@db/streams")
    with pytest.raises(InvalidRequest, match="cannot read the environment variable AIRFLOW_CONN_TORN"):
        await aopen_journal("torn")


def test_a_scheme_as_type_is_suggested_like_the_system(monkeypatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NORTH_SHOP", "tls://127.0.0.1:9090")
    assert "did you mean 'north_shop'?" in refusal(PravegaHook("north_shpo").options)


@pytest.mark.parametrize("variable", ["AIRFLOW__SECRETS__BACKEND", "AIRFLOW__WORKERS__SECRETS_BACKEND"])
def test_a_secrets_backend_may_hold_what_airflow_cannot_read(monkeypatch, variable) -> None:
    assert "could not read it" not in refusal(PravegaHook("nowhere").options)
    monkeypatch.setenv(variable, "airflow.secrets.local_filesystem.LocalFilesystemBackend")
    assert "the secrets backend LocalFilesystemBackend holds it" in str(no_connection("nowhere", (), "add it"))
