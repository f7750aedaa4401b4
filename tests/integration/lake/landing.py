"""Landing windows in a table of any kind as a job does, without a job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.lake.data_files import DataFile, FileTarget, WindowFiles
from airflow_provider_streams.lake.registry import writer_type
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import Window

TERMS = TableTerms(TableMark("a" * 32, "pulsar://shop/orders", "d.read"))
SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.string()), ("at", pa.timestamp("ms", "UTC"))])
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def hour(number: float, hours: float = 1) -> Window:
    return Window(NOON + timedelta(hours=number), NOON + timedelta(hours=number + hours))


def rows_of(first: int, count: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    made = {"id": range(first, first + count), "value": [f"value {n}" for n in range(count)], "at": [NOON] * count}
    given = {name: made.get(name, [None] * count) for name in schema.names}
    return pa.table({name: pa.array(values, schema.field(name).type) for name, values in given.items()}, schema=schema)


@dataclass
class Attempt:
    """One attempt at a window, stopped where a test wants."""

    sink: Sink
    window: Window
    rows: pa.Table
    terms: TableTerms = TERMS
    files: list[DataFile] = field(default_factory=list)
    begun: datetime = field(init=False)
    """Before anything was written; file systems and their clocks are some milliseconds late."""

    def __post_init__(self) -> None:
        self.begun = datetime.now(UTC) - timedelta(seconds=0.1)
        writer = writer_type(self.sink.kind)(self.sink, self.window, self.terms)
        assert isinstance(writer, TableWriter)
        self.writer = writer

    def write(self, tasks: int = 2) -> Attempt:
        self.target: FileTarget = self.writer.open(self.rows.schema)
        return self.write_files(tasks)

    def write_files(self, tasks: int = 2) -> Attempt:
        """What tasks do with their target."""
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


def land(sink: Sink, window: Window, rows: pa.Table, **terms: Any) -> Attempt:
    return Attempt(sink, window, rows, replace(TERMS, **terms)).land()


def stored_files(storage: Storage) -> set[str]:
    """The Parquet files below a folder."""
    system, root = storage.open()
    found = system.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    return {one.path.removeprefix(f"{root}/") for one in found if one.path.endswith(".parquet")}
