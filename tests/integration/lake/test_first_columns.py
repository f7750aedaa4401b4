"""A table that a run made and nothing landed in: its columns are those of the first window that lands."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.delta.column_types import columns_of_table
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.commit import Replacement
from airflow_provider_streams.lake.iceberg.files.table_files import storage_of
from airflow_provider_streams.model.sinks.landing import TableMark
from tests.integration.lake.iceberg_reading import rows_by_duckdb, stored_files, table_of
from tests.integration.lake.kept_tables import new_iceberg, table_in
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, land, rows_of

pytestmark = pytest.mark.lake

OTHER = pa.schema(
    [
        ("id", pa.int64()),
        ("value", pa.int32()),
        ("place", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
        ("local", pa.timestamp("us")),
    ]
)
"""Of `SCHEMA`'s columns one stays, one has another type, one is gone; the others need what the table does not say."""
ROW = {"id": 7, "value": 1, "place": {"x": 0.5, "tags": ["a", "b"]}, "local": None}


def other(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist([{**ROW, "id": number} for number in numbers], OTHER)


@pytest.fixture(params=["delta", "sql", "rest"])
def table(request, tmp_path):
    if request.param != "rest":
        with table_in("iceberg" if request.param == "sql" else "delta", tmp_path, widen=False) as table:
            yield table
        return
    with given("iceberg_test", request.getfixturevalue("seaweed_server").catalog_properties):
        yield new_iceberg(widen=False)


def fail(sink, rows, **terms):
    """A run that ends before it lands."""
    Attempt(sink, hour(0), rows, replace(TERMS, **terms)).write().writer.discard()


def is_delta(sink):
    return isinstance(sink, DeltaSink)


def columns(sink):
    arrow = (
        pa.schema(DeltaTable(sink.path).schema().to_arrow()) if is_delta(sink) else table_of(sink).schema().as_arrow()
    )
    return set(arrow.names) - set(WINDOW_COLUMNS)


def rows(sink):
    """As another reader finds them."""
    found = DeltaTable(sink.path).to_pyarrow_table().to_pylist() if is_delta(sink) else rows_by_duckdb(sink)
    return sorted(({name: one[name] for name in columns(sink)} for one in found), key=lambda one: one["id"])


@pytest.mark.parametrize("widen", [False, True])
def test_the_columns_of_runs_that_failed_give_way(table, widen):
    sink = replace(table.sink, widen=widen)
    fail(sink, rows_of(0, 2))
    fail(sink, pa.table({"id": ["no number"], "unheard": [1]}))
    fail(sink, other(7))
    land(sink, hour(0), other(7))
    land(sink, hour(1), other(9))
    assert columns(sink) == set(OTHER.names)
    assert rows(sink) == [ROW, {**ROW, "id": 9}]
    with pytest.raises(SinkError, match="value"):
        land(sink, hour(2), rows_of(0, 2))


def test_their_columns_are_there_until_something_lands(table):
    fail(table.sink, rows_of(0, 2))
    fail(table.sink, other(7))
    assert columns(table.sink) == set(SCHEMA.names)


def test_rows_that_the_table_can_hold_leave_it_as_it_is(table):
    fail(table.sink, rows_of(0, 2))
    land(table.sink, hour(0), pa.table({"id": [3]}))
    assert rows(table.sink) == [{"id": 3, "value": None, "at": None}]


def test_a_window_without_rows_also_decides(table):
    fail(table.sink, rows_of(0, 2))
    land(table.sink, hour(0), other())
    assert columns(table.sink) == set(OTHER.names)
    with pytest.raises(SinkError, match="value"):
        land(table.sink, hour(1), rows_of(0, 2))


def test_so_it_is_after_a_full_refresh_meanwhile(table):
    fail(table.sink, rows_of(0, 2))
    renewed = {"mark": TableMark("b" * 32, TERMS.mark.source, TERMS.mark.reader), "earlier": (TERMS.mark.id,)}
    land(table.sink, hour(0), other(7), **renewed)
    assert rows(table.sink) == [ROW]


@pytest.mark.slow_except("delta-0", "rest-1")
@pytest.mark.parametrize("first", [0, 1])
def test_of_two_first_runs_at_once_the_one_that_lands_first_decides(table, first):
    fail(table.sink, pa.table({"id": ["no number"]}))
    attempts = [Attempt(table.sink, hour(0), rows_of(7, 1)).write(), Attempt(table.sink, hour(1), other(7)).write()]
    attempts[first].commit()
    held = rows(table.sink)
    late = attempts[1 - first]
    with pytest.raises(SinkError):
        late.commit()
    late.writer.discard()
    with pytest.raises(SinkError, match="value"):
        late.land()
    assert rows(table.sink) == held
    assert [one["value"] for one in held] == [["value 0"], [1]][first]


def test_two_first_runs_of_the_same_columns_both_land(table):
    fail(table.sink, rows_of(0, 2))
    attempts = [Attempt(table.sink, hour(number), other(number)).write() for number in range(3)]
    for attempt in attempts:
        attempt.commit()
    assert rows(table.sink) == [{**ROW, "id": number} for number in range(3)]


@pytest.fixture
def between(table, monkeypatch):
    """Between the judgement of the next landing and its commit, this happens."""
    owner, names = (DeltaVersion, ("begin", "replace")) if is_delta(table.sink) else (Replacement, ("_change",))

    def happen(event):
        for name in names:
            act = getattr(owner, name)

            def changed(self, *arguments, act=act):
                monkeypatch.undo()
                if owner is DeltaVersion:
                    event()
                    return act(self, *arguments)
                prepared = act(self, *arguments)
                event()
                return prepared

            monkeypatch.setattr(owner, name, changed)

    return happen


@pytest.mark.slow_except("delta-old", "rest-the same")
@pytest.mark.parametrize("rival", [rows_of(5, 1), rows_of(0, 0), other(5)], ids=["old", "no rows", "the same"])
def test_what_lands_between_the_judgement_and_the_commit_stays(table, between, rival):
    fail(table.sink, rows_of(0, 2))
    between(lambda: land(table.sink, hour(1), rival))
    if rival.schema == OTHER:
        land(table.sink, hour(0), other(7))
        assert rows(table.sink) == [{**ROW, "id": 5}, ROW]
        return
    with pytest.raises(SinkError):
        land(table.sink, hour(0), other(7))
    assert columns(table.sink) == set(SCHEMA.names)
    assert rows(table.sink) == rival.to_pylist()


def test_a_run_of_the_old_columns_does_not_land_in_the_new_ones(table, between):
    """It has judged the table before they changed: its rows would be nulls to every reader, or of another type."""
    fail(table.sink, rows_of(0, 2))
    between(lambda: land(table.sink, hour(1), other(7)))
    with pytest.raises(SinkError):
        land(table.sink, hour(0), rows_of(5, 1))
    assert rows(table.sink) == [ROW]


def test_the_files_of_the_first_window_have_the_field_ids_of_its_columns(table):
    if is_delta(table.sink):
        return
    fail(table.sink, rows_of(0, 2))
    land(table.sink, hour(0), other(7))
    made = table_of(table.sink)
    system, root = storage_of(made).open()
    (path,) = stored_files(table.sink)
    with system.open_input_file(f"{root}/{path}") as file:
        found = {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in pq.ParquetFile(file).schema_arrow}
    assert found == {one.name: one.field_id for one in made.schema().fields}


# Tables that keep their columns


def refused(sink, **terms):
    before = columns(sink)
    with pytest.raises(SinkError, match="value"):
        land(sink, hour(0), other(7), **terms)
    assert columns(sink) == before


@pytest.mark.parametrize("count", [0, 2])
def test_once_something_landed_columns_stay_though_all_its_rows_are_gone(table, count):
    land(table.sink, hour(0), rows_of(0, count))
    if is_delta(table.sink):
        DeltaTable(table.sink.path).delete()
    elif count:
        table_of(table.sink).delete()
    assert rows(table.sink) == []
    refused(table.sink)


def test_a_table_that_the_journal_knows_columns_of_keeps_them(table):
    fail(table.sink, rows_of(0, 2))
    refused(table.sink, columns=(("id", "bigint"),))


def test_a_table_that_was_made_by_hand_keeps_its_columns(table):
    whole = columns_of_table(pa.schema([*list(SCHEMA)[:2], ("at", pa.timestamp("us", "UTC"))]))
    if is_delta(table.sink):
        DeltaTable.create(table.sink.path, whole, partition_by=list(WINDOW_COLUMNS))
    else:
        catalog = catalog_of(table.sink)
        catalog.create_namespace(table.sink.table.split(".")[0])
        catalog.create_table(table.sink.table, whole)
    fail(table.sink, rows_of(0, 2))
    refused(table.sink)
