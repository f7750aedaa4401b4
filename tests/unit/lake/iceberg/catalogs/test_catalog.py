"""Which catalog it is, is known before the first request."""

from __future__ import annotations

import gc
import os
import re
import sqlite3
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import boto3
import pyarrow as pa
import pytest
from pyiceberg.catalog import dynamodb
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.locations import SimpleLocationProvider
from pyiceberg.utils.config import Config
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import InvalidRequest, RedirectRefused, SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import _close, catalog_of
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.catalogs.dynamodb import CheckedDynamoDbCatalog
from airflow_provider_streams.lake.iceberg.catalogs.glue import BoundedGlueCatalog
from airflow_provider_streams.lake.iceberg.catalogs.hive import BoundedHiveCatalog
from airflow_provider_streams.lake.iceberg.catalogs.rest import BoundedRestCatalog
from airflow_provider_streams.lake.iceberg.catalogs.sql import SharedSqlCatalog
from airflow_provider_streams.lake.iceberg.files.file_io import StoreFileIO, VendedCredentialsFileIO
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from stream_servers.certificates import Certificates
from tests.unit.lake.iceberg.rest_servers import serving

SINK = IcebergSink("shop.orders", conn_id="lake")


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"type": "nessie", "uri": "http://127.0.0.1:1"}, "no catalog of type 'nessie': type is one of rest, hive, "),
        ({"warehouse": "s3://lake"}, "nothing says where the catalog 'lake' is: .*; known types: rest, "),
        ({"type": "hive", "warehouse": "s3://lake"}, "nothing says where the catalog 'lake' is"),
        ({"type": "REST", "warehouse": "s3://lake"}, "nothing says where the catalog 'lake' is"),
    ],
)
def test_an_unknown_catalog_is_refused_with_the_known_ones(properties, said):
    with given("lake", properties), pytest.raises(SinkError, match=f"lake:shop.orders: .*{said}") as caught:
        catalog_of(SINK)
    assert not caught.value.retryable


def test_a_type_that_is_said_counts_more_than_an_address(tmp_path):
    """Also where it needs none."""
    with given("lake", {"type": "in-memory", "warehouse": f"file://{tmp_path}"}):
        assert type(catalog_of(SINK)).__name__ == "InMemoryCatalog"


@pytest.fixture
def database(tmp_path):
    """Of a catalog that waits shortly."""
    file = tmp_path / "catalog.db"
    where = {"type": "sql", "uri": f"sqlite:///{file}?timeout=0.05", "warehouse": f"file://{tmp_path}"}
    with given("lake", where):
        yield file


def test_no_reader_sees_what_a_database_has_not_committed(database):
    """SQLite leaves a transaction open whose commit failed, and the pool lends its connection again."""
    catalog = catalog_of(SINK)
    catalog.create_namespace("shop")
    table = catalog.create_table(SINK.table, schema=pa.schema([("id", pa.int64())]))
    with closing(sqlite3.connect(database)) as another:
        another.execute("BEGIN")
        another.execute("SELECT * FROM iceberg_tables").fetchall()
        with pytest.raises(OperationalError, match="locked"), table.transaction() as change:
            change.set_properties(never="came")
    assert "never" not in catalog.load_table(SINK.table).properties


def test_a_database_that_is_opened_read_only_fails_for_good(database):
    catalog_of(SINK).create_namespace("shop")
    where = {"type": "sql", "uri": f"sqlite:///file:{database}?mode=ro&uri=true", "init_catalog_tables": "false"}
    with given("readonly", where):
        sink = IcebergSink("shop.orders", conn_id="readonly")
        catalog = catalog_of(sink)
        with pytest.raises(SinkError, match=r"readonly database.*Let this user write") as caught, errors_of(sink):
            catalog.create_namespace("other")
    assert not caught.value.retryable


def test_a_dropped_catalog_leaves_no_connection(database):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        catalog_of(SINK).create_namespace("shop")
        gc.collect()
    assert not [one for one in said if "unclosed" in str(one.message)]


def test_many_open_a_new_database_at_once(tmp_path):
    """One makes its tables."""
    for number in range(10):
        where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/{number}.db", "warehouse": f"file://{tmp_path}"}
        with given("lake", where), ThreadPoolExecutor(4) as pool:
            catalogs = list(pool.map(lambda _: catalog_of(SINK), range(4)))
        assert [one.list_namespaces() for one in catalogs] == [[]] * 4


def test_a_process_that_was_forked_does_not_end_its_parents_connections(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/c.db")
    with engine.connect() as connection:
        kept = connection.connection.dbapi_connection
    _close(engine, os.getpid() + 1)
    assert kept.execute("SELECT 1").fetchall() == [(1,)]
    kept.close()


@pytest.mark.parametrize("kind", ["hive", "glue"])
def test_a_client_that_is_not_installed_is_named(kind, monkeypatch):
    monkeypatch.delitem(sys.modules, f"airflow_provider_streams.lake.iceberg.catalogs.{kind}", raising=False)
    monkeypatch.setitem(sys.modules, f"pyiceberg.catalog.{kind}", None)
    where = {"type": kind, "uri": "thrift://127.0.0.1:1", "warehouse": "s3://lake"}
    with given("lake", where), pytest.raises(SinkError, match=rf"pip install 'pyiceberg\[{kind}\]'"):
        catalog_of(SINK)


def test_the_number_of_tries_of_a_glue_catalog_may_be_text():
    where = {"type": "glue", "glue.region": "eu-west-1", "warehouse": "s3://lake"}
    for more, tries in (({}, 3), ({"glue.max-retries": "7"}, 7)):
        with given("lake", {**where, **more}):
            assert catalog_of(SINK).glue.meta.config.retries["total_max_attempts"] == tries + 1


@pytest.mark.parametrize("service", ["glue", "dynamodb"])
@pytest.mark.parametrize("by", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_{}", "file"])
def test_amazons_client_leads_no_keys_of_a_connection_out_of_tls(service, by, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with serving(Leading, None, target="", gives_token=True) as other:
        address = f"http://127.0.0.1:{other.server_port}"
        if by == "file":
            (tmp_path / "config").write_text(f"[default]\nendpoint_url = {address}\n")
        else:
            monkeypatch.setenv(by.format(service.upper()), address)
        where = {"type": service, "client.region": "eu-west-1", "warehouse": "s3://lake"}
        keys = {"client.access-key-id": "own-key", "client.secret-access-key": "own-secret"}
        with given("lake", {**where, **keys}), pytest.raises(InvalidRequest, match=r"'lake': .* without TLS") as caught:
            catalog_of(SINK)
        assert "own" not in str(caught.value)
        if service == "glue":  # what the connection itself says counts, and without its keys the environment does
            with given("lake", {**where, **keys, "glue.endpoint": "http://127.0.0.1:1"}):
                assert catalog_of(SINK).glue.meta.endpoint_url == "http://127.0.0.1:1"
            with given("lake", where):
                assert catalog_of(SINK).glue.meta.endpoint_url == address
    assert other.asked == []


@pytest.mark.parametrize("service", ["glue", "dynamodb"])
def test_a_profile_of_the_environment_is_not_used_with_keys_of_a_connection(service, tmp_path, monkeypatch):
    (tmp_path / "config").write_text("[profile prod]\nendpoint_url = http://127.0.0.1:1\nregion = eu-west-9\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setattr(dynamodb.DynamoDbCatalog, "_dynamodb_table_exists", lambda _: True)
    where = {"type": service, "client.region": "eu-west-1", "warehouse": "s3://lake"}
    keys = {f"{service}.access-key-id": "own-key", f"{service}.secret-access-key": "own-secret"}
    for profile in ("prod", "none"):
        monkeypatch.setenv("AWS_PROFILE", profile)
        with given("lake", {**where, **keys}):
            catalog = catalog_of(SINK)
        assert getattr(catalog, service).meta.endpoint_url == f"https://{service}.eu-west-1.amazonaws.com"
        assert "botocore_session" not in catalog.properties
    with given("lake", where), pytest.raises(SinkError, match=r"\(none\).*variable AWS_PROFILE"):
        catalog_of(SINK)
    monkeypatch.setenv("AWS_PROFILE", "prod")
    with given("lake", where):
        assert getattr(catalog_of(SINK), service).meta.endpoint_url == "http://127.0.0.1:1"


@pytest.mark.parametrize("family", ["client", "dynamodb"])
def test_a_dynamodb_catalog_makes_its_client_as_pyicebergs_own_does(family, monkeypatch):
    made = []

    class Session(boto3.Session):
        def __init__(self, **given):
            made.append(given)
            super().__init__(**given)

    monkeypatch.setattr(boto3, "Session", Session)
    monkeypatch.setattr(dynamodb.DynamoDbCatalog, "_dynamodb_table_exists", lambda _: True)
    names = ("region", "access-key-id", "secret-access-key", "session-token")
    properties = {f"{family}.{name}": name for name in names}
    for kind in (dynamodb.DynamoDbCatalog, CheckedDynamoDbCatalog):
        assert kind("lake", **properties).dynamodb.meta.region_name == "region"
    assert made[0] == {**made[1], "botocore_session": None}


def test_a_property_that_a_client_ignores_allows_no_address_of_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    keys = {"client.access-key-id": "own-key", "client.secret-access-key": "own-secret"}
    where = {"type": "dynamodb", "client.region": "eu-west-1", "dynamodb.endpoint": "http://127.0.0.1:2"}
    with given("lake", {**where, **keys}), pytest.raises(InvalidRequest, match="without TLS: remove that setting"):
        catalog_of(SINK)


def test_a_table_names_no_code_to_load(database):
    catalog = catalog_of(SINK)
    catalog.create_namespace("shop")
    told = {"py-io-impl": "another.FileIO"}
    table = catalog.create_table(SINK.table, schema=pa.schema([("id", pa.int64())]), properties=told)
    assert table.properties == told
    assert type(catalog.load_table(SINK.table).io) is StoreFileIO


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("after_load", [False, True])
def test_a_table_whose_writes_would_load_code_is_not_written(after_load, monkeypatch):
    """Another writer may set the property between a load and the commit."""
    code = {"write.py-location-provider.impl": "another.Locations"}
    catalog = catalog_of(SINK)
    catalog.create_namespace("shop")
    catalog.create_table(SINK.table, schema=pa.schema([("id", pa.int64())]))
    other = SqlCatalog("lake", **{name: catalog.properties[name] for name in ("uri", "warehouse")})
    change = catalog.load_table(SINK.table).transaction().set_properties({"a": "b"})
    with monkeypatch.context() as another_process:
        another_process.setattr("pyiceberg.catalog.load_location_provider", SimpleLocationProvider)
        other.load_table(SINK.table).transaction().set_properties(code).commit_transaction()
    with pytest.raises(SinkError, match=r"write\.py-location-provider\.impl names code"):
        change.commit_transaction() if after_load else IcebergTable(SINK).load()


def test_no_catalog_of_ours_takes_code_from_its_tables():
    kinds = (BoundedRestCatalog, BoundedHiveCatalog, BoundedGlueCatalog, SharedSqlCatalog, CheckedDynamoDbCatalog)
    assert all(issubclass(kind, VendedCredentialsFileIO) for kind in kinds)


class Leading(BaseHTTPRequestHandler):
    """Gives a token, then leads every question elsewhere; or leads the question for a token there."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(body)
        self.answer(b'{"access_token": "t", "token_type": "bearer", "expires_in": 60}', gives=self.server.gives_token)

    def do_GET(self):
        self.server.asked.append((self.headers["Authorization"] or "").encode())
        self.answer(b"", gives=False)

    def answer(self, body: bytes, *, gives: bool) -> None:
        self.send_response(200 if gives else 307)
        self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", str(len(body) if gives else 0))
        self.end_headers()
        if gives:
            self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


def leading(certificates: Certificates | None, target: str, *, gives_token: bool):
    return serving(Leading, certificates, target=target, gives_token=gives_token)


@pytest.mark.parametrize("gives_token", [True, False])
def test_a_catalog_with_tls_does_not_lead_secrets_out_of_it(tmp_path, monkeypatch, gives_token):
    certificates = Certificates.make(tmp_path / "tls", client="me")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
    with leading(None, "", gives_token=True) as plain:
        target = f"http://127.0.0.1:{plain.server_port}"
        with leading(certificates, target, gives_token=gives_token) as secure:
            uri = f"https://127.0.0.1:{secure.server_port}"
            where = {"type": "rest", "uri": uri, "credential": "me:canary-95"}
            with given("lake", where), pytest.raises(RedirectRefused, match=f"{target}: without TLS") as caught:
                catalog_of(SINK)
    assert "canary" not in str(caught.value)
    assert secure.asked
    assert plain.asked == []


@pytest.mark.parametrize("name", ["my_cat", "my-cat", "Mine", "a_b_c"])
def test_the_environment_variable_that_the_error_names_describes_the_catalog(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    sink = IcebergSink("a.b", catalog=name)
    with pytest.raises(SinkError, match="pyiceberg knows no catalog") as raised:
        catalog_of(sink)
    (variable,) = re.findall("PYICEBERG_CATALOG__[A-Z_]+__URI", str(raised.value))
    monkeypatch.setenv(variable, f"sqlite:///{tmp_path}/catalog.db")
    assert catalog_of(sink).list_namespaces() == []


@pytest.mark.parametrize("name", ["a__b", "_a", "a.b"])
def test_no_environment_variable_is_named_that_cannot_describe_the_catalog(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SinkError, match=r"in ~/\.pyiceberg\.yaml, or give conn_id") as raised:
        catalog_of(IcebergSink("a.b", catalog=name))
    assert "PYICEBERG_CATALOG" not in str(raised.value)


def test_a_catalog_of_the_configuration_file_comes_before_one_of_another_spelling(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("my-cat", "my_cat"):
        with (tmp_path / ".pyiceberg.yaml").open("a") as file:
            file.write(f"{'' if file.tell() else 'catalog:'}\n  {name}:\n    uri: sqlite:///{tmp_path}/{name}.db\n")
    assert str(catalog_of(IcebergSink("a.b", catalog="my_cat")).engine.url).endswith("/my_cat.db")


@pytest.mark.parametrize(
    ("told", "setting"),
    [
        ({"type": "rest", "uri": "https://127.0.0.1:1", "credential": "me:secret"}, "OAUTH2_SERVER_URI"),
        ({"type": "rest", "credential": "me:secret"}, "URI"),
        ({"credential": "me:secret"}, "URI"),
        ({}, "URI"),
        ({"uri": "https://127.0.0.1:1", "token": "secret"}, "TYPE"),
        ({"type": "in-memory"}, "WAREHOUSE"),
    ],
)
@pytest.mark.parametrize("by", ["environment", "file"])
def test_pyicebergs_own_configuration_changes_nothing_of_a_connection(told, setting, by, tmp_path, monkeypatch):
    """It would lead the connection's secret elsewhere: each setting is of a catalog with the connection's name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(Leading, None, target="", gives_token=True) as other:
        value = "sql" if setting == "TYPE" else f"http://127.0.0.1:{other.server_port}"
        if by == "file":
            name = setting.lower().replace("_", "-")
            (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    {name}: {value}\n")
        else:
            monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{setting}", value)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # pyiceberg reads it once for each process
        with given("lake", told):
            if "in-memory" in told.values():
                assert catalog_of(SINK).properties.get("warehouse") != value
            else:
                with pytest.raises(SinkError, match=r"nothing says where|127.0.0.1:1\b"):
                    catalog_of(SINK)
    assert other.asked == []


@pytest.mark.usefixtures("database")
def test_a_catalog_has_the_connections_name():
    """A catalog in a database finds its rows by it."""
    assert catalog_of(SINK).name == "lake"
