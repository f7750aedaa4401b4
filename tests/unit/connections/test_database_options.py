"""What a connection may let the driver of a database read."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.connections.journal import journal_url
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors import InvalidRequest

FILES = [
    *(("postgresql+psycopg", name) for name in ("passfile", "servicefile", "sslcert", "sslkey")),
    *(("mysql+pymysql", name) for name in ("read_default_file", "ssl_cert", "ssl_key", "option_files", "default_file")),
]


@pytest.fixture
def with_option(monkeypatch):
    """What opens a catalog and a journal whose address has an option."""

    def of(scheme: str, name: str, value: str) -> list:
        uri = f"{scheme}://me@db/lake?{name}={value}"
        catalog = {"conn_type": "iceberg", "extra": {"type": "sql", "uri": uri}}
        journal = {"conn_type": scheme.partition("+")[0], "host": "db", "extra": {name: value}}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(catalog))
        monkeypatch.setenv("AIRFLOW_CONN_JOURNAL", json.dumps(journal))
        return [lambda: properties_of("lake"), lambda: journal_url("journal")]

    return of


@pytest.mark.parametrize(("scheme", "name"), FILES)
def test_a_file_with_credentials_is_read_only_where_the_deployment_allows_it(with_option, scheme, name, monkeypatch):
    for open_it in with_option(scheme, name, "/run/canary/file"):
        monkeypatch.delenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", raising=False)
        with pytest.raises(InvalidRequest, match=rf"option {name} names a file .*\[streams\] credential_f") as caught:
            open_it()
        assert "canary" not in str(caught.value)
        monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", "/run/canary")
        assert open_it()


def test_every_file_of_an_option_that_is_given_twice_is_checked(monkeypatch):
    monkeypatch.setenv("AIRFLOW__STREAMS__CREDENTIAL_FOLDERS", "/run/allowed")
    uri = "mysql+mysqlconnector://db/x?option_files=/etc/my.cnf&option_files=/run/allowed/my.cnf"
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({"conn_type": "iceberg", "extra": {"type": "sql", "uri": uri}}))
    with pytest.raises(InvalidRequest, match="option option_files names a file"):
        properties_of("lake")


def test_no_server_may_ask_for_files(with_option):
    for open_it in with_option("mysql+pymysql", "local_infile", "1"):
        with pytest.raises(InvalidRequest, match="local_infile would let the server read files"):
            open_it()


@pytest.mark.parametrize("option", ["sslrootcert", "ssl_ca", "sslmode", "connect_timeout"])
def test_other_options_are_free(with_option, option):
    for open_it in with_option("postgresql+psycopg", option, "/etc/ca.pem"):
        assert open_it()
