"""Ratios that are no number are found by readers that pass over files and row groups by their bounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.expressions import EqualTo, IsNaN, IsNull, NotEqualTo

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.data_files import FileTarget, WindowFiles
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.storage import Storage
from tests.integration.lake import duck
from tests.integration.lake.iceberg_reading import table_of
from tests.integration.lake.landing import Attempt, hour, land

ROWS = {
    "one number": [1.0, nan, 1.0, 1.0],
    "both zeros": [0.0, -0.0, 0.0, nan],
    "zeros alone": [-0.0, 0.0, -0.0, -0.0],
    "nulls": [None, nan, 1.0, None],
    "nothing": [None, None, None, None],
    "no NaN": [None, inf, 1.0, -inf],
    "no NaN, narrow": [None, 1.0, 2.0**20, inf],
}
QUESTIONS = (
    *("f > 5", "f >= 5", "f <> 1", "f <> 0", "f = 0", "f = 1", "isnan(f)", "NOT (f <= 5)", "f <= 5"),
    *("f IS NULL", "f IS NOT NULL", "f > 1e300", "f < -1e300"),
)


@pytest.fixture(params=ROWS)
def rows(request):
    kind = pa.float32() if "narrow" in request.param else pa.float64()
    return pa.table({"id": range(4), "f": pa.array(ROWS[request.param], kind)})


def asked(engine: duckdb.DuckDBPyConnection, table: str) -> list[list[int]]:
    found = [engine.execute(f"SELECT id FROM {table} WHERE {one} ORDER BY id").fetchall() for one in QUESTIONS]  # noqa: S608
    return [[id_ for (id_,) in ids] for ids in found]


def in_memory(rows: pa.Table) -> list[list[int]]:
    with duckdb.connect() as engine:
        engine.register("given", rows)
        engine.execute("CREATE TABLE kept AS SELECT * FROM given")
        return asked(engine, "kept")


def test_in_files_of_a_folder(rows, tmp_path):
    sink = ParquetSink(str(tmp_path / "orders"))
    land(sink, hour(0), rows)
    with duckdb.connect() as engine:
        assert asked(engine, f"read_parquet('{sink.path}/*/*/*.parquet')") == in_memory(rows)
    dataset = pads.dataset(sink.path)
    for question in (pc.is_nan(pads.field("f")), pads.field("f") != 1, ~(pads.field("f") <= 5), pads.field("f") == 0):
        assert sorted(dataset.to_table(filter=question)["id"].to_pylist()) == rows.filter(question)["id"].to_pylist()


def test_in_delta_tables(rows, tmp_path):
    sink = DeltaSink(str(tmp_path / "orders"))
    land(sink, hour(0), rows)
    engine = QueryBuilder().register("t", DeltaTable(sink.path))
    found = [pa.table(engine.execute(f"SELECT id FROM t WHERE {one} ORDER BY id").read_all()) for one in QUESTIONS]  # noqa: S608
    assert [one["id"].to_pylist() for one in found] == in_memory(rows)


@pytest.fixture
def iceberg(tmp_path):
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", catalog):
        yield IcebergSink("shop.orders", conn_id="iceberg_test")


def test_in_iceberg_tables(rows, iceberg):
    land(iceberg, hour(0), rows)
    table = table_of(iceberg)
    for question, meant in (
        (IsNaN("f"), pc.is_nan(pads.field("f"))),
        (NotEqualTo("f", 1.0), pads.field("f") != 1),
        (NotEqualTo("f", 0.0), pads.field("f") != 0),
        (EqualTo("f", 0.0), pads.field("f") == 0),
        (IsNull("f"), pads.field("f").is_null()),
    ):
        assert table.scan(row_filter=question).to_arrow()["id"].to_pylist() == rows.filter(meant)["id"].to_pylist()


def test_in_iceberg_tables_by_duckdb(rows, iceberg):
    land(iceberg, hour(0), rows)
    with duck.connect(Storage("file:///"), "avro", "iceberg") as engine:
        assert asked(engine, f"iceberg_scan('{table_of(iceberg).metadata_location}')") == in_memory(rows)


UNBOUNDED = {
    "bytes": pa.array([None, b"", b"one", None]),
    "struct": pa.array([None, {"a": None}, {"a": 1}, None]),
    "list": pa.array([None, [], [1.0], None], pa.list_(pa.float64())),
    "map": pa.array([None, [], [("a", 1)], None], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("values", UNBOUNDED.values(), ids=UNBOUNDED)
def test_nulls_of_columns_without_bounds_are_found_in_iceberg_tables(iceberg, values):
    land(iceberg, hour(0), pa.table({"id": range(4), "f": values}))
    table = table_of(iceberg)
    with duck.connect(Storage("file:///"), "avro", "iceberg") as engine:
        found = f"SELECT id FROM iceberg_scan('{table.metadata_location}') WHERE f IS"  # noqa: S608
        ids = [engine.execute(f"{found} {what} ORDER BY id").fetchall() for what in ("NULL", "NOT NULL")]
    assert ids == [[(0,), (3,)], [(1,), (2,)]]
    number = table.schema().find_field("f").field_id
    files = [one.file for one in table.scan().plan_files()]
    assert [sum(one.value_counts[number] for one in files), sum(one.null_value_counts[number] for one in files)] == [
        4,
        2,
    ]


def test_a_file_ends_where_nan_begins_and_only_later_ones_have_no_bounds(tmp_path):
    target = FileTarget(Storage(f"file://{tmp_path}"), "", "a-", pa.schema([("f", pa.float64())]), row_group_bytes=1)
    files = WindowFiles(target)
    for value in (1.0, 2.0, nan, 3.0):
        files.write(pa.record_batch({"f": [value]}))
    written = [pq.ParquetFile(tmp_path / one.path) for one in files.finish()]

    groups = [[file.metadata.row_group(n).column(0) for n in range(file.num_row_groups)] for file in written]
    assert [[one.is_stats_set for one in file] for file in groups] == [[True, True], [False, False]]
    assert [file.read()["f"].to_pylist()[0] for file in written] == [1.0, pytest.approx(nan, nan_ok=True)]


def test_other_writers_of_this_process_get_pyicebergs_own_statistics(tmp_path, iceberg, caplog):
    """Here a writer that adds files of a folder by hand, before, while and after ours lands."""
    rows = pa.table({"id": range(3), "f": pa.array([None, b"one", b""])})
    folder = ParquetSink(str(tmp_path / "orders"))
    land(folder, hour(0), rows)
    files = [f"file://{file}" for file in Path(folder.path).rglob("*.parquet")]
    catalog = catalog_of(iceberg)
    attempts = [Attempt(replace(iceberg, table=f"shop.ours{number}"), hour(0), rows) for number in range(3)]

    def by_hand(name):
        table = catalog_of(iceberg).create_table(f"shop.{name}", schema=rows.schema)
        table.add_files(files)
        return told_of(table)

    catalog.create_namespace("shop")
    alone = by_hand("alone")
    assert len(warned(caplog)) == len(files), "pyiceberg warns of each column without statistics"
    with ThreadPoolExecutor() as threads:
        landing = [threads.submit(one.land) for one in attempts]
        meanwhile = [threads.submit(by_hand, f"next{number}") for number in range(3)]
        assert [one.result() for one in meanwhile] == 3 * [alone]
        assert [one.result() for one in landing] == attempts
    assert by_hand("after") == alone == [{}] * len(files), "it counts no nulls where there are no statistics"
    assert len(warned(caplog)) == 5 * len(files), "it warns of its own files, and of none of ours"
    ours = [told_of(table_of(one.sink)) for one in attempts]
    assert [sum(one.get(2, 0) for one in files) for files in ours] == [1, 1, 1]


def warned(caplog):
    """The warnings of columns without statistics; other tests may have lowered the level of logs."""
    return [one for one in caplog.records if one.getMessage().startswith("PyArrow statistics missing")]


def told_of(table):
    return [
        {number: count for number, count in one.file.null_value_counts.items() if number == 2}
        for one in table.scan().plan_files()
    ]
