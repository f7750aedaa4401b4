"""A table's files are where every program finds them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.files.locations import check_places
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, rows_of
from tests.unit.lake.iceberg.rest_servers import catalog_serving

SINK = IcebergSink("shop.orders", conn_id="lake")
STORE = "s3://lake/orders"


def table(location, metadata="", **properties):
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return SimpleNamespace(location=lambda: location, metadata_location=metadata, properties=names)


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize("location", [STORE, "abfss://lake@a.dfs.core.windows.net/o", "gs://lake/o", "hdfs://h/o"])
@pytest.mark.parametrize("path", ["file:///srv/x", "/srv/x", "file:/srv/x", "FILE:///srv/x", "file://host/x"])
def test_a_table_in_a_store_puts_no_files_on_one_machine(name, location, path):
    found = table(location, **{name.replace(".", "_"): path})
    with pytest.raises(SinkError, match=rf"lake:t: the table is at .*, but its {name} is '{path}'.*'{name}'\)\)$"):
        check_places("lake:t", found)


@pytest.mark.parametrize("path", ["orders", "../orders", "file:orders", "./orders", ""])
def test_a_relative_path_is_refused(path):
    found = table(path) if path == "orders" else table("file:///lake/orders", write_data_path=path or "data")
    with pytest.raises(SinkError, match="begins at a folder of its own"):
        check_places("lake:t", found)


@pytest.mark.parametrize("path", ["s3://lake/orders/../x", "file:///lake/..", "/lake/../x"])
def test_a_path_that_goes_up_is_refused(path):
    with pytest.raises(SinkError, match=r"programs read '\.\.' differently"):
        check_places("lake:t", table("/lake/orders", write_data_path=path))


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (table(STORE, write_data_path="http://lake/orders"), "write.data.path is 'http://lake/orders'"),
        (table("oss://lake/orders"), "location is 'oss://lake/orders/data'"),
    ],
)
def test_an_address_of_no_known_file_system_names_the_table_and_the_property(found, name):
    with pytest.raises(SinkError, match=f"^lake:t: the table's {name}, for which no file system is known"):
        check_places("lake:t", found)


def test_the_metadata_of_a_table_in_a_store_are_in_one_too():
    with pytest.raises(SinkError, match=r"its metadata file is 'file:///srv/1.json'"):
        check_places("lake:t", table(STORE, "file:///srv/1.json"))


@pytest.mark.parametrize(
    "found",
    [
        table(STORE, f"{STORE}/metadata/1.json"),
        table(STORE, write_data_path="s3://other/orders", write_metadata_path="s3a://lake/m..x/..y"),
        table("file:///lake/orders", "/lake/orders/metadata/1.json", write_data_path="/elsewhere/orders"),
        table("/lake/orders", write_data_path="file:///elsewhere"),
        table("/lake/orders", write_data_path=STORE),
    ],
)
def test_what_all_programs_read_alike_is_taken(found):
    check_places("lake:t", found)


@pytest.fixture
def server(tmp_path):
    with catalog_serving(tmp_path) as server, given("lake", server.connection):
        yield server


def moved(answer):
    """A table in a store."""
    answer["metadata"]["location"] = STORE
    answer["metadata-location"] = f"{STORE}/metadata/1.json"


def test_a_dry_run_refuses_a_table_that_sends_rows_to_one_machine(server, tmp_path):
    Attempt(SINK, hour(0), rows_of(0, 2)).land()

    def bend(answer):
        moved(answer)
        answer["metadata"]["properties"]["write.data.path"] = f"file://{tmp_path}/data"

    server.bend = bend
    with pytest.raises(SinkError, match=r"write\.data\.path is"):
        IcebergWriter.check_rows(SINK, SCHEMA, TERMS)
    with pytest.raises(SinkError, match=r"write\.data\.path is"):
        Attempt(SINK, hour(1), rows_of(0, 2)).write()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("conflict", [False, True])
def test_a_commit_refuses_a_path_that_came_meanwhile(server, conflict):
    """Before the commit, or while another commit comes first."""
    attempt = Attempt(SINK, hour(0), rows_of(0, 2)).write()
    looks = [False] * conflict + [True]
    server.commits += [409] * conflict

    def bend(answer):
        if looks.pop(0) if len(looks) > 1 else looks[0]:
            answer["metadata"]["properties"]["write.data.path"] = "data"

    server.bend = bend
    with pytest.raises(SinkError, match=r"write\.data\.path is 'data'"):
        attempt.commit()


@pytest.mark.parametrize("list_", ["file:///etc/passwd", "/etc/passwd", "file:/etc/passwd"])
def test_no_file_of_this_machine_is_opened_for_a_table_in_a_store(server, list_):
    Attempt(SINK, hour(0), rows_of(0, 2)).land()

    def bend(answer):
        moved(answer)
        for one in answer["metadata"]["snapshots"]:
            one["manifest-list"] = list_

    server.bend = bend
    with pytest.raises(SinkError, match=rf"{list_}: the metadata of a table at {STORE}.*not opened"):
        IcebergTable(SINK).state()
    with pytest.raises(SinkError, match="not opened"):
        catalog_of(SINK).load_table(SINK.table).io.new_output("/srv/x")
