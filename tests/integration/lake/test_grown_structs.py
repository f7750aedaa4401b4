"""Structs that got more fields, at any depth: wider rows into a table, and then narrower ones."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink, ParquetSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.delta.writer import storage_of
from airflow_provider_streams.lake.storage import Storage
from tests.integration.lake.duck import connect
from tests.integration.lake.iceberg_reading import rows_by_duckdb, table_of
from tests.integration.lake.kept_tables import table_in
from tests.integration.lake.landing import Attempt, hour, land

pytestmark = pytest.mark.lake


def columns(*more: tuple[str, pa.DataType]) -> pa.Schema:
    """The same struct as a column, and in a list, a map and another struct."""
    inner = pa.struct([*more[:1], ("city", pa.string()), *more[1:]])
    return pa.schema(
        [
            ("id", pa.int64()),
            ("to", inner),
            ("stops", pa.list_(inner)),
            ("by_name", pa.map_(pa.string(), inner)),
            ("deep", pa.struct([("a", pa.list_(pa.struct([("at", inner)])))])),
        ]
    )


NARROW = columns()
WIDE = columns(("area", pa.list_(pa.int32())), ("zip", pa.string()))
EMPTY = {"area": None, "zip": None}


def row(number: int, **more: Any) -> dict[str, Any]:
    inner = {"city": f"city {number}", **more}
    return {
        "id": number,
        "to": inner,
        "stops": [inner, None, inner],
        "by_name": [("k", inner), ("none", None)],
        "deep": {"a": [{"at": inner}, {"at": None}]},
    }


def without(number: int) -> dict[str, Any]:
    return {"id": number, "to": None, "stops": [], "by_name": [], "deep": {"a": []}}


def rows_of(schema: pa.Schema, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema)


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def table(request, tmp_path):
    with table_in(request.param, tmp_path) as table:
        yield table


def widened(sink: Any) -> Any:
    return sink if isinstance(sink, ParquetSink) else replace(sink, widen=True)


def by_duckdb(sink: Any) -> list[dict[str, Any]]:
    if isinstance(sink, ParquetSink | DeltaSink):
        delta = isinstance(sink, DeltaSink)
        storage = storage_of(sink) if delta else Storage(sink.asset_uri)
        scan = f"delta_scan('{sink.path}')"
        if not delta:
            scan = f"read_parquet('{sink.path}/window_start=*/*/*.parquet', union_by_name=true)"
        with connect(storage, *(["delta"] if delta else [])) as duck:
            return duck.execute(f"SELECT * FROM {scan}").arrow().read_all().to_pylist()  # noqa: S608
    return rows_by_duckdb(sink)


def by_its_library(sink: Any) -> list[dict[str, Any]]:
    match sink:
        case ParquetSink():
            return by_duckdb(sink)
        case DeltaSink():
            return DeltaTable(sink.path).to_pyarrow_table().to_pylist()
    return table_of(sink).scan().to_arrow().to_pylist()


def check(sink: Any, *expected: dict[str, Any]) -> None:
    for read in (by_duckdb, by_its_library):
        found = sorted(read(sink), key=lambda row: row["id"])
        told = [
            {name: dict(value) if name == "by_name" and value else value for name, value in one.items()}
            for one in found
        ]
        wanted = [{**one, "by_name": dict(one["by_name"]) or []} for one in expected]
        assert [{name: one[name] for name in NARROW.names} for one in told] == wanted, read.__name__


def test_wider_rows_go_in_if_they_may_and_then_narrower_ones(table):
    sink = table.sink
    land(sink, hour(0), rows_of(NARROW, row(0), without(1)))
    with nullcontext() if isinstance(sink, ParquetSink) else pytest.raises(SinkError, match=r"zip.*widen=True"):
        land(sink, hour(1), rows_of(WIDE, row(2, area=[7, None], zip="z")))
    land(widened(sink), hour(1), rows_of(WIDE, row(2, area=[7, None], zip="z"), without(3)))
    land(sink, hour(2), rows_of(NARROW, row(4)))
    land(sink, hour(0), rows_of(NARROW, row(0), without(1)))
    check(sink, row(0, **EMPTY), without(1), row(2, area=[7, None], zip="z"), without(3), row(4, **EMPTY))


def test_compacted_they_hold_the_same(table):
    if isinstance(table.sink, ParquetSink):
        return
    sink = widened(table.sink)
    Attempt(sink, hour(0), rows_of(NARROW, *map(row, range(4)))).write(tasks=4).commit()
    Attempt(sink, hour(1), rows_of(WIDE, row(4, area=[], zip="z"), row(5, area=None, zip=None))).write(tasks=2).commit()
    Attempt(sink, hour(2), rows_of(NARROW, row(6), without(7))).write(tasks=2).commit()
    before = sorted(by_duckdb(sink), key=lambda row: row["id"])
    assert table.compact().windows == [hour(0), hour(1), hour(2)]
    assert sorted(by_duckdb(sink), key=lambda row: row["id"]) == before
    narrow = [row(number, **EMPTY) for number in range(4)]
    check(sink, *narrow, row(4, area=[], zip="z"), row(5, **EMPTY), row(6, **EMPTY), without(7))
