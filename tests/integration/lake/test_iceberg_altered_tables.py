"""Iceberg tables whose columns and partitions other programs alter after windows landed in them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.transforms import DayTransform, IdentityTransform

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalog import catalog_of
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


def by_day(version):
    """A table that a user made, partitioned by the day, with a column for regions."""
    sink = new_table()
    catalog_of(sink).create_namespace(sink.table.split(".")[0])
    columns = pa.schema([one.with_nullable(True) for one in columns_of_table(WITH_REGION)])
    catalog_of(sink).create_table(sink.table, columns, properties={"format-version": version})
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
