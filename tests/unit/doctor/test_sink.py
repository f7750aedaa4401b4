"""The table, its owner and its room; and a file of ours that leaves nothing."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import contextmanager

import pyarrow as pa
import pytest

from airflow_provider_streams.doctor import sink as sinks
from airflow_provider_streams.doctor.disk_space import SpaceNeed
from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import InvalidRequest, StorageFull
from airflow_provider_streams.lake import write_probe
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.sinks.landing import TableMark, TableState
from airflow_provider_streams.model.sinks.sink import IcebergSink, ParquetSink
from airflow_provider_streams.testing.fake import FakeSource
from tests.unit.read_only import read_only


@contextmanager
def no_file_beyond(size):
    """Of this process: what a full disk says, no mount needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def setup_of(path, **more):
    return Setup("fake", "fake_default", sink=ParquetSink(str(path)), **more)


def checked(setup):
    return {one.check: one for one in sinks.check_sink(setup, None)}


def test_a_table_that_does_not_exist_is_not_made_by_looking(tmp_path):
    found = checked(setup_of(tmp_path / "orders"))
    assert found["table"].level == "ok"
    assert "neither owner nor rows" in found["table"].says
    assert found["columns"].level == "skipped"
    assert found["write"].level == "skipped"
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_leaves_nothing(tmp_path):
    found = checked(setup_of(tmp_path / "orders", write=True))
    assert found["write"].level == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_leaves_what_was_there(tmp_path):
    folder = tmp_path / "orders"
    folder.mkdir()
    write_probe.write_probe(Storage(f"file://{folder}"))
    assert list(tmp_path.rglob("*")) == [folder]


def test_a_full_disk_is_named(tmp_path):
    with no_file_beyond(1000):
        found = checked(setup_of(tmp_path / "orders", write=True))
    assert found["write"].level == "error"
    assert "full" in found["write"].says
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(("free", "level"), [(0, "error"), (100 * 1024**2, "warning"), (10 * 1024**3, "ok")])
def test_little_room_is_named_before_it_is_used_up(free, level):
    notes = Notes("sink")
    SpaceNeed(8 * 1024**2, 1024**3, "Free some").judge(notes, "file:///lake", free)
    assert notes.findings[0].level == level
    if level == "error":
        says = f"only {free:,} bytes are free on the file system of file:///lake, and at least 8,388,608 are needed"
        assert notes.findings[0].says == says


def test_a_folder_that_may_not_be_written_is_an_error(tmp_path, monkeypatch):
    def refuse(_storage):
        raise StorageFull("lake", "no room")

    monkeypatch.setattr(write_probe, "write_probe", refuse)
    assert checked(setup_of(tmp_path / "orders", write=True))["write"].next_step.startswith("Free some")


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("table", [".", "orders"])
def test_a_read_only_folder_is_an_error_whether_or_not_a_file_is_to_be_written(tmp_path, table, write):
    with read_only(tmp_path) as cause:
        found = checked(setup_of(tmp_path / table, write=write))["write"]
    assert (found.level, found.next_step) == ("error", "Let this user write there, or name another folder")
    assert found.says.startswith(cause)
    assert str(tmp_path) in found.says
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A set-up of an Iceberg table in a catalog of SQLite, and the catalog's folder."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    where = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    monkeypatch.setattr(sinks.connections, "resolve_by", lambda _: None)
    with given("lake", where):
        yield IcebergSink("shop.orders", conn_id="lake"), folder


def test_a_read_only_catalog_is_an_error(lake):
    sink, folder = lake
    setup = Setup("fake", "fake_default", sink=sink)
    catalog_of(sink)
    assert "catalog" not in checked(setup)
    with read_only(folder) as cause:
        found = checked(setup)
    assert (found["catalog"].level, found["table"].level) == ("error", "ok")
    assert cause in found["catalog"].says
    assert f"{folder}/catalog.db" in found["catalog"].says


def test_a_catalog_that_is_not_there_is_not_made_by_looking(lake, tmp_path):
    sink, folder = lake
    found = checked(Setup("fake", "fake_default", sink=sink, write=True))
    assert "is not there yet, and the first read makes it" in found["table"].says
    assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == [folder]
    with sqlite3.connect(folder / "catalog.db") as database:
        database.execute("CREATE TABLE other (x)")
    assert "is not there yet" in checked(Setup("fake", "fake_default", sink=sink))["table"].says
    with sqlite3.connect(folder / "catalog.db") as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("other",)]
    database.close()


@pytest.mark.parametrize("has_location", [False, True])
def test_the_place_of_a_table_to_come_is_looked_at_and_written(lake, tmp_path, has_location):
    sink, _ = lake
    if has_location:
        catalog_of(sink).create_namespace("shop", {"location": f"file://{tmp_path}/elsewhere"})
    found = checked(Setup("fake", "fake_default", sink=sink, write=True))
    place = f"file://{tmp_path}/{'elsewhere' if has_location else 'lake/shop'}/orders/data"
    assert (found["free space"].level, found["write"].level) == ("ok", "ok")
    assert found["free space"].says.endswith(place)
    assert not (tmp_path / "lake").exists()
    with no_file_beyond(1000):
        assert checked(Setup("fake", "fake_default", sink=sink, write=True))["write"].level == "error"


def test_a_table_whose_disk_is_not_mounted_is_an_error(tmp_path):
    found = checked(setup_of(tmp_path / "not" / "mounted"))
    assert found["table"].level == "error"
    assert "connection" not in found["table"].next_step
    assert found["store"].level == "skipped"


def test_a_table_with_data_and_no_owner_is_no_question_of_its_connection(lake):
    sink, _ = lake
    catalog = catalog_of(sink)
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1]})
    catalog.create_table(sink.table, rows.schema).append(rows)
    found = checked(Setup("fake", "fake_default", sink=sink))["table"]
    assert (found.level, found.next_step) == ("error", "Land in another table")


@pytest.mark.parametrize(
    ("source", "reader", "level"),
    [
        (None, None, "ok"),
        ("numbers", None, "warning"),
        ("numbers", "nightly", "ok"),
        ("numbers", "b", "error"),
        ("x", None, "error"),
    ],
)
def test_a_table_has_one_owner(tmp_path, source, reader, level):
    mark = TableMark("1", FakeSource("numbers").key, "nightly")
    notes = Notes("sink")
    setup = setup_of(tmp_path, source=FakeSource(source) if source else None, reader=reader)
    sinks.judge_state(notes, setup, TableState(mark, frozenset()))
    assert notes.findings[0].level == level


def test_nothing_is_written_without_a_sink():
    with pytest.raises(InvalidRequest, match="name the sink"):
        Setup("fake", "fake_default", write=True)
