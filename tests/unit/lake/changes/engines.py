"""The engines under one face, on tables in a folder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_streams.lake.changes.landed_changes import ChangeWindow
from airflow_provider_streams.lake.changes.marker_files import read_list
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.sink import DeltaSink, IcebergSink
from airflow_provider_streams.model.window.window import Window

MARK = TableMark("id", "pulsar://test/changes", "reader")
TERMS = TableTerms(MARK)
START = datetime(2026, 11, 1, tzinfo=UTC)
ENGINES = ("iceberg", "delta")
COMMITS = {
    "iceberg": ("pyiceberg.table", "Transaction", "commit_transaction"),
    "delta": ("deltalake", "DeltaTable", "create_write_transaction"),
}
"""What sends the commit: module, class, method."""


def hour(number: int) -> Window:
    return Window(START + timedelta(hours=number), START + timedelta(hours=number + 1))


class Engine:
    """Applies windows to a table, and reads it."""

    def __init__(self, kind: str, folder: Path, rules: Rules, *, widen: bool = False, range_bytes: int = 4000) -> None:
        self.kind, self.folder, self.rules, self.range_bytes = kind, folder, rules, range_bytes
        self.terms = TERMS
        self.options = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }
        self.sink: Any = (
            IcebergSink("lake.rows", conn_id="changes", widen=widen)
            if kind == "iceberg"
            else DeltaSink(f"{folder}/table", widen=widen)
        )

    def apply(self, number: int, *changes: pa.Table, **facts: Any) -> None:
        with given("changes", self.options):
            self.applier().apply(ChangeWindow(hour(number), f"plan {number}", **facts), changes)

    def applier(self) -> Any:
        if self.kind == "iceberg":
            from airflow_provider_streams.lake.iceberg.change_applier import IcebergChangeApplier

            return IcebergChangeApplier(self.sink, self.terms, self.rules, self.range_bytes)
        from airflow_provider_streams.lake.delta.change_applier import DeltaChangeApplier

        return DeltaChangeApplier(self.sink, self.terms, self.rules, self.range_bytes)

    def table(self) -> Any:
        """As the format's own library has it; None: there is none."""
        if self.kind == "iceberg":
            from airflow_provider_streams.lake.iceberg.table import IcebergTable

            with given("changes", self.options):
                return IcebergTable(self.sink).load()
        from deltalake import DeltaTable

        return DeltaTable(self.sink.path) if DeltaTable.is_deltatable(self.sink.path) else None

    def rows(self) -> pa.Table:
        """As the format's own library reads them."""
        table = self.table()
        if self.kind == "iceberg":
            return table.scan().to_arrow()
        return pa.table(table.to_pyarrow_table())

    def landed(self) -> set[Window]:
        """The windows whose marks the table's commits bear."""
        table = self.table()
        if table is None:
            return set()
        if self.kind == "iceberg":
            facts = [one.summary.additional_properties for one in table.snapshots()]
        else:
            facts = table.history()
        return {Window.parse(one["streams.window"]) for one in facts if "streams.window" in one}

    def data_files(self) -> set[str]:
        table = self.table()
        if self.kind == "iceberg":
            return {task.file.file_path for task in table.scan().plan_files()}
        return set(table.file_uris())

    def marker_count(self) -> int:
        """How many markers the table has."""
        return sum(len(pa.parquet.read_table(path)) for path in self.marker_files())  # type: ignore[attr-defined]

    def marker_files(self) -> list[str]:
        root = self.folder / ("warehouse/lake/rows/data" if self.kind == "iceberg" else "table")
        table = self.table()
        number = (
            table.properties["streams.markers"]
            if self.kind == "iceberg"
            else table.transaction_version("streams.markers")
        )
        held = read_list(Storage(f"file://{root}"), int(number), MARK.id)
        return [str(root / path) for path in held.files]
