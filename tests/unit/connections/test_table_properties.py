"""What connections say of tables: properties by the names of Iceberg, and nothing that loads code."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest
from pyiceberg.catalog import CatalogType

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.iceberg import IcebergHook
from airflow_provider_streams.lake import connections
from airflow_provider_streams.systems.connection.catalog_properties import CATALOG_TYPES, ICEBERG_NAMES


@pytest.fixture
def connection(monkeypatch):
    def is_(**value: object) -> str:
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(value))
        return "lake"

    return is_


def test_an_iceberg_connection_is_a_catalogs_properties(connection):
    extra = {"warehouse": "s3://tables", "s3.endpoint": "http://store", "s3.request-timeout": 5, "s3.anonymous": False}
    given = connection(conn_type="iceberg", host="http://cat:8181/", login="me", password="canary-55", extra=extra)
    assert properties_of(given) == {
        "uri": "http://cat:8181",
        "credential": "me:canary-55",
        "warehouse": "s3://tables",
        "s3.endpoint": "http://store",
        "s3.request-timeout": "5",
        "s3.anonymous": "false",
    }


def test_a_connection_in_parts_is_put_together(connection):
    given = connection(conn_type="iceberg", host="cat", port=8181, schema="http", extra={"uri": "thrift://hive:9083"})
    assert properties_of(given) == {"uri": "thrift://hive:9083"}
    assert properties_of(connection(conn_type="iceberg", host="cat", port=8181)) == {"uri": "https://cat:8181"}


@pytest.mark.parametrize(
    "extra", [{"uri": "postgresql+psycopg://db/x"}, {"uri": "mysql://db/x", "type": "sql"}, {"uri": "thrift://hive:9"}]
)
def test_the_scheme_of_another_catalog_is_known_or_its_type_is(connection, extra):
    assert properties_of(connection(conn_type="iceberg", extra=extra)) == extra


@pytest.mark.parametrize(
    ("uri", "leads_to"),
    [
        ("https://cat", "https://cat:7777"),
        ("HTTPS://cat/api", "https://cat:7777/api"),
        ("https://cat:9", "https://cat:9"),
        ("thrift://one,two:9", "thrift://one:7777,two:9"),
        ("postgresql+psycopg://me:secret@db/x", "postgresql+psycopg://me:secret@db:7777/x"),
    ],
)
def test_the_port_is_that_of_each_host_without_one_in_a_whole_address(connection, uri, leads_to):
    for host in ("", "other"):
        given = connection(conn_type="iceberg", host=host, port=7777, extra={"uri": uri})
        assert properties_of(given) == {"uri": leads_to}


@pytest.mark.parametrize("kind", ["aws", "generic"])
def test_a_store_of_a_connection_is_told_by_its_type(connection, kind):
    given = connection(conn_type=kind, login="key", password="secret", extra={"region_name": "eu-west-1"})
    properties = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "eu-west-1"}
    assert properties_of(given) == properties


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"conn_type": "http"}, r"'http'.*'iceberg'.*'aws' or 'generic'"),
        ({"conn_type": "iceberg", "extra": {"py-io-impl": "os:system"}}, "would load code"),
        (
            {"conn_type": "iceberg", "extra": {"type": "nessie"}},
            "'lake': .* type 'nessie'; known: rest, hive, .*sql",
        ),
        ({"conn_type": "iceberg", "extra": {"s3.endpoint": "http://me:pass@store"}}, "without name and password"),
        ({"conn_type": "iceberg", "extra": {"s3.endpoint": "ftp://store"}}, "another scheme than https://"),
        ({"conn_type": "iceberg", "extra": {"s3.endpoint": "http://store?a"}}, r"address of a store .* has a '\?'"),
        (
            {"conn_type": "iceberg", "extra": {"gcs.service.host": "store:4443"}},
            r"\(gcs\.service\.host\) has no scheme",
        ),
        ({"conn_type": "iceberg", "extra": {"oauth2-server-uri": "x:1"}}, "extra oauth2-server-uri has no scheme"),
        ({"conn_type": "iceberg", "extra": {"oauth2-server-uri": "ftp://x"}}, "oauth2-server-uri has another scheme"),
        (
            {"conn_type": "iceberg", "extra": {"adls.account-host": "x"}},
            "not reached by adls.account-host: give adls.b",
        ),
        ({"conn_type": "iceberg", "extra": {"adls.connection-string": "x"}}, "give adls.account-name with"),
        *(
            ({"conn_type": "iceberg", "host": f"{scheme}://cat", **more}, f"host has the unknown scheme {scheme}://")
            for scheme in ("tls", "ftp", "iceberg")
            for more in ({}, {"login": "me", "password": "pass"}, {"extra": {"type": "rest"}})
        ),
        ({"conn_type": "iceberg", "extra": {"uri": "ftp://cat"}}, "extra uri has the unknown scheme ftp://"),
        *(
            (
                {"conn_type": "iceberg", "extra": {"uri": f"{scheme}://cat", **more}},
                f"unknown scheme {re.escape(scheme)}://",
            )
            for scheme, more in (
                ("httpx", {}),
                ("httpsx", {"type": "rest"}),
                ("thrifty", {}),
                ("thrift+x", {}),
                ("sqliter", {}),
                ("postgresqls", {}),
            )
        ),
        ({"conn_type": "iceberg", "extra": {"verify": False}}, "always checked.*REQUESTS_CA_BUNDLE.* 'verify'"),
        ({"conn_type": "iceberg", "extra": {"ssl_verify": "false"}}, "always checked.* leave out 'ssl_verify'"),
        ({"conn_type": "iceberg", "extra": {"extra__iceberg__uri": "https://cat"}}, "'extra__iceberg__uri'.* 'uri'"),
        *(
            ({"conn_type": "iceberg", "extra": {f"{family}.{half}": "x"}}, f"{family}.{half} is given without")
            for family in ("s3", "client", "glue", "dynamodb")
            for half in ("access-key-id", "secret-access-key", "session-token")
        ),
        ({"conn_type": "iceberg", "extra": {"glue.endpoint": "store:1"}}, r"\(glue\.endpoint\) has no scheme"),
        ({"conn_type": "iceberg", "extra": {"warehouse": {"name": "w"}}}, "warehouse must be a text or a number"),
        (
            {"conn_type": "iceberg", "extra": {"ssl": {"client": {"cert": "/etc/x"}}}},
            "ssl is of .* name files",
        ),
        ({"conn_type": "iceberg", "extra": {"auth": {"type": "custom", "impl": "x.Y"}}}, "auth is of .* load code"),
        ({"conn_type": "iceberg", "extra": {"auth": '{"type": "noop"}'}}, "auth is of .* load code"),
        ({"conn_type": "iceberg", "extra": {"auth.type": "noop"}}, "auth.type is of .* load code"),
    ],
)
def test_other_connections_are_refused(connection, value, said):
    with pytest.raises(InvalidRequest, match=said):
        properties_of(connection(**value))


def test_the_types_of_catalogs_are_those_of_pyiceberg(connection):
    assert sorted(CATALOG_TYPES) == sorted(one.value for one in CatalogType)
    for kind in (*CATALOG_TYPES, "REST", ""):
        assert properties_of(connection(conn_type="iceberg", extra={"type": kind})) == ({"type": kind} if kind else {})


def test_the_known_names_are_those_of_pyiceberg():
    import pyiceberg.io as files
    from pyiceberg.catalog import TOKEN, URI, WAREHOUSE_LOCATION, dynamodb, glue, hive, rest

    stores = ("s3.", "adls.", "gcs.", "hdfs.", "hf.", "client.")
    names = {value for value in vars(files).values() if isinstance(value, str) and value.startswith(stores)}
    names |= {
        value for name, value in vars(glue).items() if name.startswith("GLUE_") and str(value).startswith("glue.")
    }
    names |= {value for value in vars(dynamodb).values() if str(value).startswith("dynamodb.")}
    names |= {value for name, value in vars(hive).items() if name in ("HIVE2_COMPATIBLE", "HIVE_KERBEROS_AUTH")}
    names |= {TOKEN, URI, WAREHOUSE_LOCATION, rest.CREDENTIAL, rest.OAUTH2_SERVER_URI, rest.SIGV4, rest.SIGV4_REGION}
    assert names <= {*ICEBERG_NAMES}


MISTYPED = [
    ("iceberg", "warehose", "warehouse"),
    ("iceberg", "url", "uri"),
    ("iceberg", "s3.endpoit", "s3.endpoint"),
    ("iceberg", "s3.access_key_id", "s3.access-key-id"),
    ("iceberg", "client.regions", "client.region"),
    ("iceberg", "secret-access-key", "s3.secret-access-key"),
    ("aws", "endpoint_ulr", "endpoint_url"),
    ("generic", "s3.regiom", "s3.region"),
    ("wasb", "tenantid", "tenant_id"),
]


@pytest.mark.parametrize(("kind", "name", "meant"), MISTYPED)
def test_a_mistyped_property_is_refused_with_the_name_that_was_meant(connection, kind, name, meant):
    given = connection(conn_type=kind, extra={name: "canary-56"})
    with pytest.raises(
        InvalidRequest, match=f"'lake': extra '{name}' is not known; did you mean '.*{meant}'"
    ) as failed:
        properties_of(given)
    assert "canary-56" not in str(failed.value)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("iceberg", "header.X-Team"),
        ("iceberg", "cache-enabled"),
        ("iceberg", "s3.connection-timeout-ms"),
        ("iceberg", "client.credentials-provider"),
        ("iceberg", "some.new-property"),
        ("aws", "aws_account_id"),
        ("aws", "config_kwargs"),
        ("aws", "botocore_kwargs"),
        ("wasb", "account_name"),
    ],
)
def test_properties_that_this_package_does_not_know_are_no_mistakes(connection, kind, name):
    properties_of(connection(conn_type=kind, extra={name: "value"}))


def test_fields_of_the_form_that_are_empty_are_not_given(connection):
    given = connection(conn_type="iceberg", host="http://cat", extra={"type": None, "warehouse": "", "s3.region": None})
    assert properties_of(given) == {"uri": "http://cat"}


def test_the_connection_test_lists_the_catalogs_namespaces(connection, tmp_path):
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    hook = IcebergHook(connection(conn_type="iceberg", extra=catalog))
    hook.get_conn().create_namespace("shop")
    assert hook.test_connection() == (True, "The catalog at sqlite://.. answers: it has 1 namespace.")
    connection(conn_type="iceberg", host="http://127.0.0.1:1", login="me", password="canary-57")
    works, said = hook.test_connection()
    assert not works
    assert "127.0.0.1" in said
    assert said.startswith("connection 'lake': ")
    assert "namespace.table" not in said
    assert "canary-57" not in said
    connection(conn_type="iceberg", host="http://127.0.0.1:1", extra={"warehose": "x"})
    assert "did you mean 'warehouse'?" in hook.test_connection()[1]


def test_the_connection_test_makes_no_catalog(connection, tmp_path):
    file = tmp_path / "catalog.db"
    catalog = {"type": "sql", "uri": f"sqlite:///{file}", "warehouse": f"file://{tmp_path}"}
    hook = IcebergHook(connection(conn_type="iceberg", extra=catalog))
    absent = (True, "There is no catalog at sqlite://.. yet: the first landing makes it.")
    assert hook.test_connection() == absent
    assert not file.exists()
    with closing(sqlite3.connect(file)) as database:
        database.execute("create table others (number integer)")
        assert hook.test_connection() == absent
        assert database.execute("select name from sqlite_master").fetchall() == [("others",)]
    hook.get_conn()
    assert hook.test_connection() == (True, "The catalog at sqlite://.. answers: it has 0 namespaces.")


def test_whoever_has_the_journal_open_can_ask(connection, airflow_home, monkeypatch):
    monkeypatch.setattr(connections, "_resolvers", [])
    given = connection(conn_type="iceberg", host="http://cat")
    with pytest.raises(InvalidRequest, match="not known here"):
        connections.properties_of(given)
    with open_journal():
        assert connections.properties_of(given) == {"uri": "http://cat"}
