"""A `kill -9` at each step of landing: the table has the old window or the new one, and the next run settles it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta.writer import storage_of as delta_storage
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.files.table_files import storage_of as iceberg_storage
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.sinks.sink import Sink
from tests.integration.lake import delta_reading
from tests.integration.lake.engines import by_duckdb
from tests.integration.lake.killed_landing import STEPS, land
from tests.integration.lake.landing import hour, stored_files

ROOT = Path(__file__).parents[3]
OLD, NEW, AGAIN = [1, 2, 3], [7, 8, 9, 10], [11]
LONG = [2**40, 2**41]


@dataclass
class Iceberg:
    name: str

    @property
    def sink(self) -> IcebergSink:
        return IcebergSink(f"{self.name}.orders", conn_id="store", widen=True)

    def _table(self) -> Any:
        return catalog_of(self.sink).load_table(self.sink.table)

    def ids(self) -> list[int]:
        return sorted(self._table().scan().to_arrow()["id"].to_pylist())

    def orphans(self) -> set[str]:
        table = self._table()
        scans = [table.scan(snapshot_id=one.snapshot_id) for one in table.snapshots()]  # what was replaced is no orphan
        named = {Path(task.file.file_path).name for scan in scans for task in scan.plan_files()}
        return files_below(iceberg_storage(table)) - named


@dataclass
class Delta:
    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir()

    @property
    def sink(self) -> DeltaSink:
        return DeltaSink(str(self.folder / "orders"), widen=True)

    def ids(self) -> list[int]:
        return sorted(row["id"] for rows in delta_reading.windows(delta_storage(self.sink)).values() for row in rows)

    def orphans(self) -> set[str]:
        storage = delta_storage(self.sink)
        added = {
            Path(one["add"]["path"]).name for commit in delta_reading.commits(storage) for one in commit if "add" in one
        }
        return files_below(storage) - added


@dataclass
class Parquet:
    folder: Path

    @property
    def sink(self) -> ParquetSink:
        return ParquetSink(str(self.folder / "orders"))

    def ids(self) -> list[int]:
        return sorted(ds.dataset(self.sink.path, partitioning="hive").to_table()["id"].to_pylist())

    def orphans(self) -> set[str]:
        files = [file for file in self.folder.rglob("part-*") if "window_start=" not in str(file)]
        return {file.name for file in files}


def files_below(storage: Storage) -> set[str]:
    return {Path(file).name for file in stored_files(storage)}


def killed(jobs: list[tuple[Sink, str]], options: dict[str, str], **changed: Any) -> None:
    told = {"options": options, "window": [0], "ids": NEW, "terms": {}, **changed}
    words = json.dumps([{"sink": sink.to_json(), "step": step, **told} for sink, step in jobs])
    command = [sys.executable, "-m", "tests.integration.lake.killed_landing", words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


def check(tables: dict[str, Any], options: dict[str, str], left: tuple[str, ...]) -> None:
    """At each step, with the leftovers that no reader sees."""
    for table in tables.values():
        land(table.sink, hour(0), OLD)
    killed([(table.sink, step) for step, table in tables.items()], options)
    assert {step: table.ids() for step, table in tables.items()} == {**dict.fromkeys(STEPS, OLD), "committed": NEW}
    assert tuple(step for step, table in tables.items() if table.orphans()) == left
    for table in tables.values():
        land(table.sink, hour(0), AGAIN)
        assert table.ids() == AGAIN


@pytest.mark.lake
def test_of_an_iceberg_table_on_a_store(seaweed_server, tmp_path):
    options = seaweed_server.catalog_properties
    with given("store", options):  # an upload that was not ended is no file of a bucket
        check({step: Iceberg(f"killed_{step}") for step in STEPS}, options, ("committing",))


@pytest.mark.parametrize("kind", [Delta, Parquet])
def test_of_a_table_in_a_folder(kind, tmp_path):
    check({step: kind(tmp_path / step) for step in STEPS}, {}, ("writing", "committing"))


def check_promotion(tables: dict[str, Any], options: dict[str, str], committed: list[int]) -> None:
    """Of an `int` to a `long`, while the table holds two windows: engines find the same rows after each kill."""
    for table in tables.values():
        for number, ids in enumerate((OLD, [4])):
            land(table.sink, hour(number), ids, "int32")
    killed([(table.sink, step) for step, table in tables.items()], options, window=[2], ids=LONG)
    left = {**{step: [*OLD, 4] for step in STEPS}, "committed": committed}
    for step, table in tables.items():
        assert [table.ids(), ids_by_duckdb(table.sink)] == [left[step]] * 2, step
        land(table.sink, hour(2), LONG)
        land(table.sink, hour(1), [5], "int32")  # as an older plan has it
        assert [table.ids(), ids_by_duckdb(table.sink)] == [[*OLD, 5, *LONG]] * 2, step


def ids_by_duckdb(sink: Any) -> list[int]:
    return sorted(row["id"] for row in by_duckdb(sink))


@pytest.mark.lake
def test_while_numbers_of_an_iceberg_table_become_wider(seaweed_server, tmp_path):
    """Its first commit promotes the column."""
    options = seaweed_server.catalog_properties
    with given("store", options):
        check_promotion({step: Iceberg(f"promoted_{step}") for step in STEPS}, options, [*OLD, 4])


@pytest.mark.parametrize(("kind", "committed"), [(Delta, [*OLD, 4, *LONG]), (Parquet, [*OLD, 4])])
def test_while_numbers_of_a_folder_become_wider(kind, committed, tmp_path):
    """A folder first exchanges an older window: this kill leaves windows of both types."""
    check_promotion({step: kind(tmp_path / step) for step in STEPS}, {}, committed)


@pytest.mark.parametrize(("step", "now"), [("committing", [1, 2, 3, 4]), ("committed", NEW)])
def test_windows_that_made_room_when_it_ended_are_back_with_the_next_run_of_any_hour(step, now, tmp_path):
    table = Parquet(tmp_path / "wide")
    land(table.sink, hour(0), OLD)
    land(table.sink, hour(1), [4])
    killed([(table.sink, step)], {}, window=[0, 2], terms={"replace_overlaps": True})
    land(table.sink, hour(5), AGAIN)
    assert table.ids() == sorted(now + AGAIN)
    assert not list((Path(table.sink.path) / "_staging").glob("*.replaced-*"))
