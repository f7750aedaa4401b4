"""Iceberg tables whose columns and partitions other programs alter after windows landed in them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import TimestamptzType

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg import commit
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.column_types import columns_of_table
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from tests.integration.lake.iceberg_reading import ids, new_table, rows_by_duckdb, stored_files, table_of
from tests.integration.lake.landing import SCHEMA, TERMS, Attempt, hour, land, rows_of

pytestmark = pytest.mark.lake

WITH_REGION = pa.schema([*SCHEMA, ("region", pa.string())])
FIRST, OTHER = hour(0), hour(1)


@pytest.fixture(autouse=True)
def catalog(tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", properties):
        yield


def by_hand(version="2"):
    """A table that a user made, with a column for regions."""
    sink = new_table(partition_by=None)
    catalog_of(sink).create_namespace(sink.table.split(".")[0])
    columns = pa.schema([one.with_nullable(True) for one in columns_of_table(WITH_REGION)])
    catalog_of(sink).create_table(sink.table, columns, properties={"format-version": version})
    return sink


def by_day(version):
    """The same, partitioned by the day."""
    sink = by_hand(version)
    alter_spec(sink, lambda spec: spec.add_field("window_start", DayTransform(), "day"))
    return sink


def alter_spec(sink, change):
    with table_of(sink).update_spec() as spec:
        change(spec)


def alter_columns(sink, *changes):
    for change in changes:
        with table_of(sink).update_schema(allow_incompatible_changes=True) as schema:
            change(schema)


def add_region(sink):
    alter_spec(sink, lambda spec: spec.add_field("region", IdentityTransform(), "region"))


def remove_region(sink):
    alter_spec(sink, lambda spec: spec.remove_field("region"))


def drop_region(sink):
    alter_columns(sink, lambda schema: schema.delete_column("region"))


def others_row(sink, number, window=None, **more):
    """A row that another program appends."""
    schema = table_of(sink).schema().as_arrow()
    values = {"id": number, **more}
    if window is not None:
        values |= {"window_start": window.start, "window_end": window.end}
    table_of(sink).append(pa.Table.from_pylist([values], schema))


def refused(sink, said):
    """Landings are refused, before anything is read and when they write; nothing changes."""
    before, files = table_of(sink).metadata, stored_files(sink)
    with pytest.raises(SinkError, match=said):
        IcebergWriter.check_rows(sink, SCHEMA, TERMS)
    with pytest.raises(SinkError, match=said):
        land(sink, OTHER, rows_of(10, 2))
    assert (table_of(sink).metadata, stored_files(sink)) == (before, files)


def test_a_void_partition_field_whose_column_is_gone_is_refused():
    sink = by_day("1")
    land(sink, FIRST, rows_of(0, 3))
    add_region(sink)
    remove_region(sink)
    late = Attempt(sink, OTHER, rows_of(10, 2)).write()
    drop_region(sink)
    with pytest.raises(SinkError, match="region is void of a column that was dropped"):
        late.commit()
    late.writer.discard()
    refused(sink, "region is void of a column that was dropped")
    with pytest.raises(SinkError, match="region is void"):
        IcebergWriter.compactable(sink, TERMS.mark).contents()
    assert ids(sink) == ids(sink, rows_by_duckdb(sink)) == {FIRST: [0, 1, 2]}
    with table_of(sink).transaction() as change:  # what the error says
        change.upgrade_table_version(2)
    remove_region(sink)
    land(sink, OTHER, rows_of(10, 2))
    land(sink, FIRST, rows_of(20, 1))
    assert ids(sink) == ids(sink, rows_by_duckdb(sink)) == {FIRST: [20], OTHER: [10, 11]}


@pytest.mark.parametrize("version", ["1", "2"])
def test_files_of_old_partitions_whose_column_is_gone_are_refused(version):
    """Two manifests of an old partition spec are merged, whatever the new rows are."""
    sink = by_day(version)
    land(sink, FIRST, rows_of(0, 3))
    add_region(sink)
    for number in (100, 101):
        others_row(sink, number)
    remove_region(sink)
    drop_region(sink)
    refused(sink, "region" if version == "1" else "files that are partitioned by region")
    assert len(rows_by_duckdb(sink)) == 5


def test_partitions_that_hold_no_files_may_lose_their_column():
    sink = by_day("2")
    land(sink, FIRST, rows_of(0, 3))
    add_region(sink)
    remove_region(sink)
    drop_region(sink)
    for window in (FIRST, OTHER):
        land(sink, window, rows_of(10, 2))
    assert ids(sink) == ids(sink, rows_by_duckdb(sink)) == {FIRST: [10, 11], OTHER: [10, 11]}


def at(micros):
    """A moment that Python's calendar may not have."""
    return pa.array([micros], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (FIRST.start_us, FIRST.start_us, "window_start 2026-11-20T12:00:00Z and window_end 2026-11-20T12:00:00Z"),
        (FIRST.end_us, FIRST.start_us, "window_start 2026-11-20T13:00:00Z and window_end 2026-11-20T12:00:00Z"),
        (FIRST.start_us, 316_541_347_200_000_000, "window_end 316541347200000000 microseconds after 1970"),
        (-65_000_000_000_000_000, FIRST.start_us, "window_start -65000000000000000 microseconds after 1970"),
    ],
)
def test_a_row_whose_values_are_no_window_is_named(start, end, said):
    sink = new_table(partition_by=None)
    land(sink, FIRST, rows_of(0, 3))
    with table_of(sink).transaction() as change:  # pyiceberg has no bounds outside of the calendar
        change.set_properties({"write.metadata.metrics.default": "none" if "after 1970" in said else "full"})
    schema = table_of(sink).schema().as_arrow()
    values = {"id": pa.array([100]), "window_start": at(start), "window_end": at(end)}
    row = [values.get(one.name, pa.nulls(1, one.type)) for one in schema]
    table_of(sink).append(pa.Table.from_arrays(row, schema=schema))
    said = rf"iceberg_test:{sink.table}: a row has .*{said}.* no window: .* Delete or correct such rows"
    for look in (IcebergWriter.read_state, lambda sink: IcebergWriter.read_state_near(sink, FIRST)):
        with pytest.raises(SinkError, match=said):
            look(sink)
    with pytest.raises(SinkError, match=said):
        land(sink, FIRST, rows_of(10, 2))
    table_of(sink).delete("id = 100")
    land(sink, FIRST, rows_of(10, 2))
    assert ids(sink) == ids(sink, rows_by_duckdb(sink)) == {FIRST: [10, 11]}


def drop_and_add(name):
    return (
        lambda schema: schema.delete_column(name),
        lambda schema: schema.add_column(name, TimestamptzType()),
    )


SWAP = [
    lambda schema, old=old, new=new: schema.rename_column(old, new)
    for old, new in (("window_start", "x"), ("window_end", "window_start"), ("x", "window_end"))
]


def unseen(sink, said):
    """The table's windows cannot be seen, and landings are refused."""
    for look in (IcebergWriter.read_state, lambda sink: IcebergWriter.read_state_near(sink, OTHER)):
        with pytest.raises(SinkError, match=said):
            look(sink)
    refused(sink, said)


@pytest.mark.parametrize("name", ["window_start", "window_end"])
def test_a_window_column_that_was_dropped_and_added_again_is_refused_while_earlier_rows_are_there(name):
    sink = by_hand()
    land(sink, FIRST, rows_of(0, 3))
    alter_columns(sink, *drop_and_add(name))
    unseen(sink, "dropped and added again.*in no window now.*Delete the rows without window")
    table_of(sink).delete(f"{name} is null")
    others_row(sink, 101)
    for first in (20, 30):
        land(sink, FIRST, rows_of(first, 1))
    assert IcebergWriter.read_state(sink).windows == {FIRST}
    assert sorted(row["id"] for row in rows_by_duckdb(sink)) == [30, 101]


def test_a_partitioned_table_whose_window_column_was_dropped_and_added_again_is_refused():
    sink = new_table(partition_by="day")
    land(sink, FIRST, rows_of(0, 3))
    alter_spec(sink, lambda spec: spec.remove_field("window_start_day"))
    alter_columns(sink, *drop_and_add("window_start"))
    for look in (IcebergWriter.read_state, lambda sink: IcebergWriter.read_state_near(sink, OTHER)):
        with pytest.raises(SinkError, match="dropped and added again"):
            look(sink)
    refused(sink, "files that are partitioned by window_start_day")


def test_window_columns_that_swapped_their_names_are_refused():
    sink = new_table(partition_by=None)
    land(sink, FIRST, rows_of(0, 3))
    alter_columns(sink, *SWAP)
    unseen(sink, "a row has window_start 2026-11-20T13:00:00Z and window_end 2026-11-20T12:00:00Z.*undo the renaming")
    alter_columns(sink, *SWAP)
    land(sink, OTHER, rows_of(10, 2))
    assert IcebergWriter.read_state(sink).windows == {FIRST, OTHER}


def test_a_window_column_that_was_renamed_is_not_what_widening_adds():
    sink = new_table(partition_by=None)
    land(sink, FIRST, rows_of(0, 3))
    alter_columns(sink, lambda schema: schema.rename_column("window_end", "until"))
    refused(replace(sink, widen=True), "it has no column window_end")
    unseen(sink, "it has no column window_end")


def test_window_columns_may_be_added_again_before_anything_lands():
    sink = by_hand()
    alter_columns(sink, *drop_and_add("window_start"))
    for first in (0, 10):
        land(sink, FIRST, rows_of(first, 2))
    assert ids(sink) == ids(sink, rows_by_duckdb(sink)) == {FIRST: [10, 11]}


@pytest.mark.parametrize(
    "changes", [drop_and_add("window_start"), (lambda schema: schema.rename_column("window_end", "until"),)]
)
def test_files_with_other_window_columns_than_the_tables_are_not_committed(monkeypatch, changes):
    monkeypatch.setattr(commit, "_PAUSES_SECONDS", (0.0,))
    sink = by_hand()
    late = Attempt(sink, OTHER, rows_of(10, 2)).write()
    alter_columns(sink, *changes)
    with pytest.raises(TableUnavailable, match="columns were dropped, renamed or added"):
        late.commit()
    late.writer.discard()
    assert rows_by_duckdb(sink) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("commit.manifest.target-size-bytes", "8MB"), ("write.metadata.metrics.default", "nonsense")],
)
def test_a_property_that_has_no_such_value_is_named_with_the_next_step(name, value):
    sink = by_hand()
    with table_of(sink).transaction() as change:
        change.set_properties({name: value})
    with pytest.raises(SinkError, match=f"{value}: correct the properties of the table"):
        land(sink, FIRST, rows_of(0, 3))
