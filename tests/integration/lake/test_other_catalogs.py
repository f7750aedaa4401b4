"""Windows of tables in Hive's metastore and in what stands for Amazon's Glue, by a connection of Airflow's."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest
from airflow.sdk import Connection

from airflow_provider_streams.connections.table_properties import iceberg_properties
from airflow_provider_streams.errors import ConcurrentCommit, SinkError, TableOwnedByOther, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import commit as iceberg_commit
from airflow_provider_streams.lake.iceberg.catalogs import timeouts
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.model.sinks.landing import TableState
from stream_servers.process import LOOPBACK, free_ports
from tests.integration.lake.iceberg_reading import ids, new_table, rows_by_duckdb, table_of
from tests.integration.lake.kept_tables import iceberg_of, now
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, land, rows_of
from tests.integration.lake.other_catalogs import GlueServer, HiveMetastore

pytestmark = [pytest.mark.lake, pytest.mark.slow]

LATER_MARK = replace(TERMS.mark, id="b" * 32)
KEY = "canary-61fe"


@pytest.fixture(scope="module")
def hive():
    with HiveMetastore() as server:
        yield server


@pytest.fixture(scope="module")
def glue():
    with GlueServer() as server:
        yield server


def connection(host: str | None, **extra: str) -> dict[str, str]:
    told = json.dumps(extra)
    return iceberg_properties(Connection(conn_id="iceberg_test", conn_type="iceberg", host=host, extra=told))


def in_hive(uri: str, **more: str) -> dict[str, str]:
    # who finds a table locked would wait for two, four and eight seconds
    return connection(uri, **{"lock-check-max-wait-time": "0.05", "lock-check-retries": "20", **more})


def in_glue(url: str, **more: str) -> dict[str, str]:
    keys = {"glue.access-key-id": "of-the-catalog", "glue.secret-access-key": KEY}
    return connection(None, type="glue", **{"glue.endpoint": url, "glue.region": "eu-west-1", **keys, **more})


def place_of(request, place: str) -> dict[str, str]:
    if place == "folder":
        return {"warehouse": f"file://{request.getfixturevalue('tmp_path')}/ware house"}
    server = request.getfixturevalue("seaweed_server")
    return {"warehouse": f"{server.bucket_url}/test-{secrets.token_hex(4)}", **server.storage_options}


@pytest.fixture(params=["hive in a bucket", "glue in a bucket"])
def sink(request):
    kind, _, place = request.param.partition(" in a ")
    server, where = request.getfixturevalue(kind), place_of(request, place)
    properties = in_hive(server.uri, **where) if kind == "hive" else in_glue(server.url, **where)
    with given("iceberg_test", properties):
        sink = new_table()
        yield sink
        assert where["warehouse"].removeprefix("file://") in table_of(sink).location()


in_all = pytest.mark.parametrize(
    "sink", [f"{kind} in a {place}" for kind in ("hive", "glue") for place in ("bucket", "folder")], indirect=True
)


def held(sink):
    """Each window's ids, as pyiceberg and DuckDB read them; and what the table says of itself agrees."""
    found = ids(sink, rows_by_duckdb(sink))
    assert ids(sink) == found
    assert IcebergWriter.read_state(sink) == TableState(TERMS.mark, frozenset(found), tells_empty=False)
    return found


@in_all
def test_windows_are_landed_replaced_and_emptied(sink):
    assert IcebergWriter.read_state(sink) is None
    for number, rows in [(0, 10), (1, 5), (0, 7), (1, 0)]:
        land(sink, hour(number), rows_of(0, rows))
    assert held(sink) == {hour(0): list(range(7))}


def test_many_at_once_end_with_every_window(sink):
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: land(sink, hour(number), rows_of(10 * number, 2)), range(3)))
    assert held(sink) == {hour(number): [10 * number, 10 * number + 1] for number in range(3)}


def test_of_two_attempts_at_once_one_lands_and_the_other_says_so(sink):
    first, second = (Attempt(sink, hour(0), rows_of(one, 2)).write() for one in (5, 10))
    first.commit()
    with pytest.raises(ConcurrentCommit):
        second.commit()
    assert held(sink) == {hour(0): [5, 6]}


def test_between_the_judgement_and_the_commit_others_are_seen(sink, monkeypatch):
    change = iceberg_commit.Replacement._change

    def meanwhile(self, *arguments):
        prepared = change(self, *arguments)
        monkeypatch.setattr(iceberg_commit.Replacement, "_change", change)
        land(sink, hour(0), rows_of(60, 1))
        return prepared

    attempt = Attempt(sink, hour(0), rows_of(5, 2)).write()
    monkeypatch.setattr(iceberg_commit.Replacement, "_change", meanwhile)
    with pytest.raises(ConcurrentCommit):
        attempt.commit()
    assert held(sink) == {hour(0): [60]}


def test_a_commit_is_done_once_though_its_answer_is_lost(sink, monkeypatch):
    attempt = Attempt(sink, hour(0), rows_of(10, 2)).write()
    catalog = type(catalog_of(sink))
    commit, made = catalog.commit_table, []

    def unheard(*arguments):
        made.append(commit(*arguments))
        raise TimeoutError("the answer is lost")

    monkeypatch.setattr(catalog, "commit_table", unheard)
    attempt.commit()
    assert len(made) == 1
    assert held(sink) == {hour(0): [10, 11]}


def test_a_table_gets_columns_and_has_one_owner(sink):
    land(sink, hour(0), rows_of(0, 2))
    wider = pa.schema([*SCHEMA, pa.field("more", pa.struct([("a", pa.int64())]))])
    with pytest.raises(SinkError, match="widen=True"):
        land(sink, hour(1), rows_of(9, 1, wider))
    land(replace(sink, widen=True), hour(1), rows_of(9, 1, wider))
    assert held(sink) == {hour(0): [0, 1], hour(1): [9]}
    with pytest.raises(TableOwnedByOther, match="full_refresh=True"):
        land(sink, hour(0), rows_of(9, 1), mark=LATER_MARK)
    land(sink, hour(0), rows_of(5, 1), mark=LATER_MARK, set_aside=True)
    assert IcebergWriter.read_state(sink) == TableState(LATER_MARK, frozenset({hour(0)}), tells_empty=False)
    assert ids(sink) == {hour(0): [5]}


def test_small_files_become_fewer_and_the_past_goes(sink):
    table = iceberg_of(sink)
    table.land_in_pieces(hour(0), 0, 8, tasks=2)
    table.attempt(hour(1), 100, 5, tasks=1)
    assert table.compact().files_after == 1
    table.expire(now())
    assert held(sink) == {hour(0): list(range(8))}
    assert len(table.files()) == len(table_of(sink).snapshots()) == 1


def test_a_namespace_within_another_is_refused(sink):
    land(sink, hour(0), rows_of(0, 2))
    with pytest.raises(SinkError, match="hierarchical namespaces are not supported"):
        land(replace(sink, table=f"a.{sink.table}"), hour(0), rows_of(0, 2))


def test_a_catalog_that_is_not_there_may_come_back():
    url = f"{LOOPBACK}:{free_ports(1)[0]}"
    for properties in (in_hive(f"thrift://{url}"), in_glue(f"http://{url}", **{"glue.max-retries": "1"})):
        with given("iceberg_test", properties), pytest.raises(TableUnavailable, match=url.partition(":")[2]) as raised:
            IcebergWriter.read_state(new_table())
        assert KEY not in str(raised.value)


def test_a_silent_metastore_is_not_waited_for_for_ever(hive, monkeypatch):
    monkeypatch.setattr(timeouts, "ANSWER_SECONDS", 0.5)
    with given("iceberg_test", in_hive(hive.uri)):
        hive.pause()
        try:
            with pytest.raises(TableUnavailable, match="timeout"):
                IcebergWriter.read_state(new_table())
        finally:
            hive.resume()
        assert IcebergWriter.read_state(new_table()) is None


def test_a_table_that_another_process_keeps_locked_is_as_it_was(hive, tmp_path, monkeypatch):
    """A landing that was killed leaves its lock to the metastore, which lets go of it after a while."""
    from hive_metastore.ttypes import UnlockRequest

    monkeypatch.setattr(iceberg_commit, "_PAUSES_SECONDS", (0.0, 0.05))
    impatient = in_hive(hive.uri, warehouse=tmp_path.as_uri(), **{"lock-check-retries": "1"})
    with given("iceberg_test", impatient):
        sink = new_table()
        land(sink, hour(0), rows_of(0, 2))
        catalog = catalog_of(sink)
        with catalog._client as client:
            lock = client.lock(catalog._create_lock_request(*sink.table.split("."))).lockid
            with pytest.raises(TableUnavailable, match="lock"):
                land(sink, hour(1), rows_of(5, 2))
            assert held(sink) == {hour(0): [0, 1]}
            client.unlock(UnlockRequest(lockid=lock))
        land(sink, hour(1), rows_of(5, 2))
        assert held(sink) == {hour(0): [0, 1], hour(1): [5, 6]}
