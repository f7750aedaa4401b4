"""Windows of database changes whose rows have columns that their plans lack are read again with these."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink, IcebergSink
from airflow_provider_streams.errors import UnplannedColumns
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.model.schema.change_payload import Debezium
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems import change_sampling
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, reader

MINUTE = timedelta(minutes=1)
KEY = FakeSource("numbers").key


def minute(number: int) -> Window:
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


@pytest.fixture
def world(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Flattened rows, of which some have columns that come midway, and that no sample shows."""
    world.hold(events=600, records=1)
    more = {30: {"city": "Bonn"}, 31: {"city": "Köln", "zip": 50667}, 95: {"late": True}}

    def record(_truth: Any, shard: str, number: int) -> bytes:
        return json.dumps({"n": number, "shard": shard, **more.get(number, {}), "__op": "u"}).encode()

    monkeypatch.setattr(reader, "record_of", record)
    return world


def rows(world: Any) -> list[dict[str, Any]]:
    import pyarrow.dataset as ds

    return ds.dataset(world.sink().path, partitioning="hive", exclude_invalid_files=True).to_table().to_pylist()


def states(world: Any, number: int) -> list[str]:
    return [run.state for run in world.journal.runs(KEY, "reader", minute(number))]


def test_a_window_lands_once_with_all_columns(world: Any) -> None:
    landed = world.read(minute(0), value=Debezium())
    found = rows(world)
    assert len(found) == landed.receipt.rows == 120
    assert sorted((row["n"], row["city"], row["zip"]) for row in found if row["city"]) == [
        (30, "Bonn", None), (30, "Bonn", None), (31, "Köln", 50667), (31, "Köln", 50667),
    ]  # fmt: skip
    assert states(world, 0)[-1] == "covered"
    assert set(states(world, 0)[:-1]) == {"failed"}


def test_its_pin_keeps_the_columns_so_the_next_run_reads_it_once(world: Any) -> None:
    world.read(minute(0), value=Debezium())
    before = rows(world)
    world.read(minute(0), value=Debezium())
    assert states(world, 0)[-2:] == ["covered", "covered"]
    assert rows(world) == before


def test_the_next_window_knows_the_columns_of_the_former_one(world: Any) -> None:
    world.read(minute(0), value=Debezium())
    world.read(minute(2), value=Debezium())
    assert states(world, 2) == ["covered"]
    assert {"city", "zip"} <= {row.name for row in world.journal.last_changes(KEY, "reader").row.fields}


def test_a_backfill_reads_only_the_windows_again_that_need_it(world: Any) -> None:
    _, outcome = world.backfill(Window(EPOCH, minute(2).end), value=Debezium())
    assert (len(outcome.covered), outcome.rows, dict(outcome.failures)) == (3, 360, {})
    assert len(rows(world)) == 360
    assert states(world, 2) == ["covered"]


def test_after_many_rounds_the_window_fails_and_says_what_to_do(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_streams.windows.run import unplanned_columns

    assert change_sampling.MOST_ROUNDS == 16
    monkeypatch.setattr(unplanned_columns, "MOST_ROUNDS", 0)
    with pytest.raises(UnplannedColumns, match=r"city string.*Plan the window again"):
        world.read(minute(0), value=Debezium())
    assert states(world, 0) == ["failed"]


def test_a_value_of_another_type_than_the_planned_column_is_undecodable(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(_truth: Any, shard: str, number: int) -> bytes:
        return json.dumps({"n": "x" if number == 30 else number, "shard": shard}).encode()

    monkeypatch.setattr(reader, "record_of", record)
    receipt = world.read(minute(0), value=Debezium()).receipt
    assert (receipt.rows, receipt.totals["quarantined"]) == (118, 2)


def test_a_dry_run_shows_the_columns_of_changes(world: Any) -> None:
    world.read(minute(3), value=Debezium(), dry_run=True)
    assert str(world.shown.decoding.changes.row) == "struct<n: long, shard: string>"


@pytest.mark.slow_except("delta")
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_gets_columns_that_come_later_also_within_the_row_before(world: Any, tmp_path: Path, kind: str) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    sinks = {
        "delta": DeltaSink(str(tmp_path / "delta"), widen=True),
        "iceberg": IcebergSink("shop.changes", conn_id="iceberg_test", widen=True),
    }
    world.sink = lambda _name="lake": sinks[kind]
    with given("iceberg_test", catalog):
        world.read(minute(2), value=Debezium(), undecodable=DecodeErrorPolicy())
        world.read(minute(0), value=Debezium(), undecodable=DecodeErrorPolicy())
        world.read(minute(2), value=Debezium(), undecodable=DecodeErrorPolicy())
        if kind == "delta":
            found = DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().to_pylist()
        else:
            found = catalog_of(sinks[kind]).load_table("shop.changes").scan().to_arrow().to_pylist()
    assert len(found) == 240
    assert sorted(row["city"] for row in found if row["city"]) == ["Bonn", "Bonn", "Köln", "Köln"]
    assert {row["_op"] for row in found} == {"u"}
