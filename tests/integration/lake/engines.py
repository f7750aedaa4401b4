"""The rows of a table of any kind, as engines other than ours read them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder

from airflow_provider_streams import DeltaSink, ParquetSink
from airflow_provider_streams.lake.delta.writer import storage_of
from airflow_provider_streams.lake.storage import Storage
from tests.integration.lake.duck import connect
from tests.integration.lake.iceberg_reading import rows_by_duckdb, table_of


def by_duckdb(sink: Any) -> list[dict[str, Any]]:
    if not isinstance(sink, ParquetSink | DeltaSink):
        return rows_by_duckdb(sink)
    is_delta = isinstance(sink, DeltaSink)
    scan = f"delta_scan('{sink.path}')" if is_delta else f"read_parquet('{sink.path}/window_start=*/*/*.parquet')"
    with connect(storage_of(sink) if is_delta else Storage(sink.asset_uri), *["delta"] * is_delta) as duck:
        return duck.execute(f"SELECT * FROM {scan}").arrow().read_all().to_pylist()  # noqa: S608


def by_its_library(sink: Any) -> list[dict[str, Any]]:
    match sink:
        case ParquetSink():
            return ds.dataset(sink.path, format="parquet", exclude_invalid_files=True).to_table().to_pylist()
        case DeltaSink():
            found: Any = QueryBuilder().register("t", DeltaTable(sink.path)).execute("SELECT * FROM t")
            assert len(DeltaTable(sink.path).to_pyarrow_table()) == len(pa.table(found))
            return DeltaTable(sink.path).to_pyarrow_table().to_pylist()
    return table_of(sink).scan().to_arrow().to_pylist()
