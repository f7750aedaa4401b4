"""Ratios that are no number are found by readers that pass over files and row groups by their bounds."""

from __future__ import annotations

from math import nan

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.expressions import EqualTo, IsNaN, NotEqualTo

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.lake.connections import given
from tests.integration.lake.iceberg_reading import table_of
from tests.integration.lake.landing import hour, land

ROWS = {"one number": [1.0, nan, 1.0, 1.0], "both zeros": [0.0, -0.0, 0.0, nan]}
QUESTIONS = ("f > 5", "f >= 5", "f <> 1", "f <> 0", "f = 0", "f = 1", "isnan(f)", "NOT (f <= 5)", "f <= 5")


@pytest.fixture(params=ROWS)
def rows(request):
    return pa.table({"id": range(4), "f": pa.array(ROWS[request.param], pa.float64())})


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


def test_in_iceberg_tables(rows, tmp_path):
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", catalog):
        sink = IcebergSink("shop.orders", conn_id="iceberg_test")
        land(sink, hour(0), rows)
        table = table_of(sink)
        for question, meant in (
            (IsNaN("f"), pc.is_nan(pads.field("f"))),
            (NotEqualTo("f", 1.0), pads.field("f") != 1),
            (NotEqualTo("f", 0.0), pads.field("f") != 0),
            (EqualTo("f", 0.0), pads.field("f") == 0),
        ):
            assert table.scan(row_filter=question).to_arrow()["id"].to_pylist() == rows.filter(meant)["id"].to_pylist()
