"""Reads and writes tables that this package landed, as a program that does not have it: `leaver.py KIND FOLDER`.

Neither this package nor Airflow can be imported here. It prints what each engine reads, before and after it writes.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

OWN = 1000
"""The id of the row that another writer adds."""
LATER = datetime.now(UTC) + timedelta(minutes=1)


def duck() -> Any:
    """DuckDB with its extensions, from where the tests have them."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    spec = importlib.util.find_spec("duckdb_ext")
    for name in ("httpfs", "avro", "iceberg", "delta"):
        (file,) = Path((spec.submodule_search_locations or [])[0]).rglob(f"{name}.duckdb_extension")
        connection.load_extension(str(file))
    return connection


def ids(query: str) -> list[int]:
    return [row[0] for row in duck().execute(f"SELECT id FROM {query} ORDER BY id").fetchall()]  # noqa: S608


def one_more(like: pa.Table) -> pa.Table:
    """A row of the table's own shape."""
    row = like.slice(0, 1).to_pylist()[0]
    return pa.Table.from_pylist([{**row, "id": OWN}], like.schema)


class Iceberg:
    """pyiceberg, with the catalog alone."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("iceberg_test", type="sql", uri=f"sqlite:///{folder}/c.db")
        self.table = catalog.load_table("lake.orders")

    def read(self) -> dict[str, list[int]]:
        self.table.refresh()
        metadata = self.table.metadata_location.removeprefix("file://")
        native = sorted(self.table.scan().to_arrow()["id"].to_pylist())
        return {"pyiceberg": native, "duckdb": ids(f"iceberg_scan('{metadata}')")}

    def write(self) -> None:
        with self.table.transaction() as change:
            change.remove_properties("streams.table-id", "streams.source", "streams.reader")
        with self.table.update_spec() as change:
            change.remove_field("window_start")
        with self.table.update_schema() as change:
            change.make_column_optional("window_start")
            change.make_column_optional("window_end")
        without_window = one_more(self.table.scan().to_arrow()).drop_columns(["window_start", "window_end"])
        self.table.append(without_window)
        self.table.maintenance.expire_snapshots().older_than(LATER).commit()
        assert len(self.table.refresh().snapshots()) == 1
        assert not [name for name in self.table.properties if name.startswith("streams.")]


class Delta:
    """delta-rs, with the folder alone."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "orders")

    def read(self) -> dict[str, list[int]]:
        from deltalake import DeltaTable

        native = pa.table(DeltaTable(self.path).to_pyarrow_table())["id"].to_pylist()
        return {"deltalake": sorted(native), "duckdb": ids(f"delta_scan('{self.path}')")}

    def write(self) -> None:
        from deltalake import DeltaTable, write_deltalake

        table = DeltaTable(self.path)
        more = one_more(table.to_pyarrow_table())
        for name in ("window_start", "window_end"):
            more = more.set_column(more.schema.get_field_index(name), name, pa.nulls(1, more.schema.field(name).type))
        write_deltalake(table, more, mode="append")
        table.update_incremental()
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


class Parquet:
    """Any reader of folders."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "orders"

    def read(self) -> dict[str, list[int]]:
        native = ds.dataset(self.path, exclude_invalid_files=True).to_table(columns=["id"])["id"].to_pylist()
        return {"pyarrow": sorted(native), "duckdb": ids(f"read_parquet('{self.path}/**/*.parquet')")}

    def write(self) -> None:
        (file, *_) = sorted(self.path.rglob("*.parquet"))
        pq.write_table(one_more(pq.ParquetFile(file).read()), file.with_name("mine.parquet"))
        for remains in [*self.path.rglob("_receipt.json"), *self.path.glob("_*")]:
            shutil.rmtree(remains) if remains.is_dir() else remains.unlink()


KINDS = {"iceberg": Iceberg, "delta": Delta, "parquet": Parquet}

if __name__ == "__main__":
    for package in ("airflow_provider_streams", "airflow"):
        sys.modules[package] = None  # type: ignore[assignment]  # as if it were not installed
    table = KINDS[sys.argv[1]](Path(sys.argv[2]))
    before = table.read()
    table.write()
    print(json.dumps({"before": before, "after": table.read()}))
