"""Iceberg tables as pyiceberg and another engine read them."""

from __future__ import annotations

import itertools
from typing import Any

from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.files.table_files import storage_of
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.model.window.window import Window
from tests.integration.lake import landing
from tests.integration.lake.duck import connect

_numbers = itertools.count()


def new_table(**options: Any) -> IcebergSink:
    return IcebergSink(f"lake{next(_numbers)}.orders", conn_id="iceberg_test", **options)


def table_of(sink: IcebergSink) -> Any:
    return catalog_of(sink).load_table(sink.table)


def ids(sink: IcebergSink, rows: list[dict[str, Any]] | None = None) -> dict[Window, list[int]]:
    """The rows of each window, as pyiceberg reads them, or as they were read."""
    held: dict[Window, list[int]] = {}
    for row in table_of(sink).scan().to_arrow().to_pylist() if rows is None else rows:
        held.setdefault(Window(row["window_start"], row["window_end"]), []).append(row["id"])
    return {window: sorted(found) for window, found in sorted(held.items())}


def stored_files(sink: IcebergSink) -> set[str]:
    """The Parquet files that lie in the table's folder."""
    return landing.stored_files(storage_of(table_of(sink)))


def rows_by_duckdb(sink: IcebergSink, where: str = "true") -> list[dict[str, Any]]:
    """The table as another engine reads it, from its metadata alone."""
    table = table_of(sink)
    with connect(storage_of(table), "avro", "iceberg") as duck:
        location = table.metadata_location.removeprefix("file://")
        found = duck.execute(f"SELECT * FROM iceberg_scan('{location}') WHERE {where} ORDER BY ALL")  # noqa: S608
        return found.arrow().read_all().to_pylist()
