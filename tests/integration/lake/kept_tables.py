"""Tables of all kinds that are kept in order: how they are landed in, and what another reader finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.lake.compaction import CompactableTable, Compacted, compact
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta.writer import storage_of
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.lake.registry import table_state, writer_type
from airflow_provider_streams.lake.snapshot_expiry import Expired
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.window.window import Window
from tests.integration.lake import delta_reading, iceberg_reading
from tests.integration.lake.landing import TERMS, Attempt, land, rows_of, stored_files

MEGABYTE = 1 << 20
Ids = dict[Window, list[int]]


@dataclass
class KeptTable:
    """One table."""

    sink: Any
    ids: Callable[[], Ids]
    """The rows of its windows, as another reader finds them."""
    files: Callable[[], set[str]]
    """The Parquet files in its folder."""

    def land(self, window: Window, first: int, count: int, **terms: Any) -> None:
        land(self.sink, window, rows_of(first, count), **terms)

    def attempt(self, window: Window, first: int, count: int, tasks: int = 2) -> Any:
        """Files are written, and not committed."""
        return Attempt(self.sink, window, rows_of(first, count)).write(tasks)

    def land_in_pieces(self, window: Window, first: int, count: int, tasks: int) -> None:
        self.attempt(window, first, count, tasks).commit()

    def compact(self, file_bytes: int = MEGABYTE, **options: Any) -> Compacted:
        rows = {window: len(found) for window, found in self.ids().items()}
        return compact(compactable(self.sink, TERMS.mark), rows, file_bytes, **options)

    def expire(self, before: datetime, **options: Any) -> Expired:
        return writer_type(self.sink.kind).expire(self.sink, TERMS.mark, before, **options)

    def windows(self) -> set[Window]:
        """Those that it says it holds."""
        state = table_state(self.sink)
        return set() if state is None else set(state.windows)


def compactable(sink: Any, mark: TableMark) -> CompactableTable:
    return writer_type(sink.kind).compactable(sink, mark)


def delta_in(folder: str, conn_id: str | None = None, **options: Any) -> KeptTable:
    sink = DeltaSink(folder, conn_id, **options)

    def ids() -> Ids:
        found = delta_reading.windows(storage_of(sink))
        return {window: sorted(row["id"] for row in rows) for window, rows in sorted(found.items())}

    return KeptTable(sink, ids, lambda: stored_files(storage_of(sink)))


def new_iceberg(**options: Any) -> KeptTable:
    return iceberg_of(iceberg_reading.new_table(**options))


def iceberg_of(sink: IcebergSink) -> KeptTable:
    rows = lambda: iceberg_reading.rows_by_duckdb(sink)  # noqa: E731
    return KeptTable(sink, lambda: iceberg_reading.ids(sink, rows()), lambda: iceberg_reading.stored_files(sink))


def parquet_in(folder: str) -> KeptTable:
    sink = ParquetSink(folder)

    def ids() -> Ids:
        table = ParquetTable(folder)
        found = {window: sorted(table.folder_of(window).glob("*.parquet")) for window in sorted(table.windows())}
        return {
            window: sorted(number for file in files for number in pq.read_table(file)["id"].to_pylist())
            for window, files in found.items()
        }

    return KeptTable(sink, ids, lambda: stored_files(Storage(sink.asset_uri)))


@contextmanager
def table_in(kind: str, folder: Path, **options: Any) -> Iterator[KeptTable]:
    """The table below a folder of this machine."""
    if kind == "parquet":
        yield parquet_in(str(folder / "orders"), **options)
        return
    if kind == "delta":
        yield delta_in(str(folder / "orders"), **options)
        return
    where = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/ware house"}
    with given("iceberg_test", where):
        yield iceberg_of(IcebergSink("lake.orders", conn_id="iceberg_test", **options))


def now(ahead: timedelta = timedelta(seconds=5)) -> datetime:
    """A moment after all writes."""
    return datetime.now(UTC) + ahead
