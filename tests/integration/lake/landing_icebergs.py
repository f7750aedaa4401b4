"""Landing windows in an Iceberg table as a job does, without a job; and reading it with another engine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.lake.files import DataFile, WindowFiles
from airflow_provider_streams.lake.iceberg.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.table import storage_of
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.model.landing import TableMark, TableTerms
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sink import IcebergSink
from airflow_provider_streams.model.window import Window
from tests.integration.lake.duck import connect

TERMS = TableTerms(TableMark("a" * 32, "pulsar://shop/orders", "d.read"))
SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.string()), ("at", pa.timestamp("ms", "UTC"))])
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
_numbers = itertools.count()


def new_table(**options: Any) -> IcebergSink:
    return IcebergSink(f"lake{next(_numbers)}.orders", conn_id="iceberg_test", **options)


def hour(number: float, hours: float = 1) -> Window:
    return Window(NOON + timedelta(hours=number), NOON + timedelta(hours=number + hours))


def rows_of(first: int, count: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    made = {"id": range(first, first + count), "value": [f"value {n}" for n in range(count)], "at": [NOON] * count}
    given = {name: made.get(name, [None] * count) for name in schema.names}
    return pa.table({name: pa.array(values, schema.field(name).type) for name, values in given.items()}, schema=schema)


@dataclass
class Attempt:
    """One attempt at a window, stopped where a test wants."""

    sink: IcebergSink
    window: Window
    rows: pa.Table
    terms: TableTerms = TERMS
    files: list[DataFile] = field(default_factory=list)
    begun: datetime = field(init=False)
    """Before anything was written; file systems and their clocks are some milliseconds late."""

    def __post_init__(self) -> None:
        self.begun = datetime.now(UTC) - timedelta(seconds=0.1)
        self.writer = IcebergWriter(self.sink, self.window, self.terms)

    def write(self, tasks: int = 2) -> Attempt:
        self.target = self.writer.open(self.rows.schema)
        return self.write_files(tasks)

    def write_files(self, tasks: int = 2) -> Attempt:
        """What tasks do, with what they are told."""
        target = self.target
        share = -(-len(self.rows) // tasks)
        for number in range(tasks if share else 0):
            task = WindowFiles(type(target).from_json(target.to_json()))
            for batch in self.rows.slice(number * share, share).to_batches():
                task.write(batch)
            self.files += task.finish()
        return self

    def commit(self) -> Attempt:
        report = SplitReceipt(0, rows=len(self.rows))
        self.writer.commit(self.files, Receipt(f"plan of {len(self.rows)}", (report,), 1.0, "complete"))
        return self

    def land(self) -> Attempt:
        try:
            return self.write().commit()
        finally:
            self.writer.discard()


def land(sink: IcebergSink, window: Window, rows: pa.Table, **terms: Any) -> Attempt:
    return Attempt(sink, window, rows, replace(TERMS, **terms)).land()


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
    system, root = storage_of(table_of(sink)).open()
    found = system.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    return {one.path.removeprefix(f"{root}/") for one in found if one.path.endswith(".parquet")}


def rows_by_duckdb(sink: IcebergSink) -> list[dict[str, Any]]:
    """The table as another engine reads it, from its metadata alone."""
    table = table_of(sink)
    with connect(storage_of(table), "avro", "iceberg") as duck:
        location = table.metadata_location.removeprefix("file://")
        found = duck.execute(f"SELECT * FROM iceberg_scan('{location}') ORDER BY ALL")  # noqa: S608
        return found.arrow().read_all().to_pylist()
