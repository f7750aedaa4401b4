"""Iceberg tables whose properties switch statistics off, cut or round them: what lands is what is asked for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    YearTransform,
)
from pyiceberg.typedef import Record

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.compaction import compact
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.column_types import columns_of_table
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.lake.table_properties import WINDOW
from airflow_provider_streams.model.sinks.landing import TableState
from tests.integration.lake.iceberg_reading import ids, new_table, rows_by_duckdb, stored_files, table_of
from tests.integration.lake.landing import SCHEMA, TERMS, hour, land, rows_of

pytestmark = pytest.mark.lake

DEFAULT, OF_START = "write.metadata.metrics.default", "write.metadata.metrics.column.window_start"
NONE = {DEFAULT: "none"}
MODES = [
    *({DEFAULT: mode} for mode in ("none", "counts", "truncate(16)", "full")),
    {OF_START: "none"},
    {OF_START: "counts"},
    {OF_START: "truncate(1)", "write.metadata.metrics.column.window_end": "none"},
]
TRANSFORMS = [
    IdentityTransform(),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    BucketTransform(4),
]
FIRST, OTHER = hour(0), hour(1)


def said(mode):
    """A mode as the name of a case."""
    return ",".join(f"{name.rpartition('.')[2]}={value}" for name, value in mode.items())


@pytest.fixture(autouse=True)
def catalog(tmp_path):
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", properties):
        yield


def by_hand(properties, *fields, version="2"):
    """A table that a user made, partitioned by transforms of window columns."""
    sink = new_table()
    catalog_of(sink).create_namespace(sink.table.split(".")[0])
    columns = pa.schema([one.with_nullable(True) for one in columns_of_table(SCHEMA)])  # as Spark makes them
    catalog_of(sink).create_table(sink.table, columns, properties={"format-version": version})
    with table_of(sink).update_spec() as spec:
        for number, (column, transform) in enumerate(fields):
            spec.add_field(column, transform, f"part{number}")
    set_properties(sink, properties)
    return sink


def set_properties(sink, properties):
    with table_of(sink).transaction() as change:
        change.set_properties(properties)


def land_three_times(sink):
    for count in (4, 3, 2):
        land(sink, FIRST, rows_of(0, count))


def held(sink):
    """Each window's ids, as pyiceberg and DuckDB read them, whole and by filters; the table's state agrees."""
    found = ids(sink)
    assert ids(sink, rows_by_duckdb(sink)) == found
    for window, numbers in found.items():
        start = window.start.isoformat()
        for rows in (
            EqualTo("window_start", start),
            And(GreaterThanOrEqual("window_start", start), LessThan("window_start", window.end.isoformat())),
        ):
            assert sorted(table_of(sink).scan(row_filter=rows).to_arrow()["id"].to_pylist()) == numbers
        assert [row["id"] for row in rows_by_duckdb(sink, f"window_start = '{start}'")] == numbers
    assert IcebergWriter.read_state(sink) == TableState(TERMS.mark, frozenset(found), tells_empty=False)
    return found


def partitions(sink):
    return {str(task.file.partition) for task in table_of(sink).scan().plan_files()}


@pytest.mark.slow_except("default=none", "window_start=counts")
@pytest.mark.parametrize("mode", MODES, ids=said)
def test_a_window_that_lands_again_is_replaced_whatever_statistics_the_table_wants(mode):
    sink = by_hand(mode, ("window_start", IdentityTransform()))
    land_three_times(sink)
    land(sink, OTHER, rows_of(100, 2))
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}
    land(sink, FIRST, rows_of(0, 0))
    assert held(sink) == {OTHER: [100, 101]}


@pytest.mark.slow_except("month-default=none", "bucket[4]-default=counts")
@pytest.mark.parametrize("mode", MODES[:2], ids=said)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
def test_the_partition_of_a_file_is_that_of_its_window(mode, transform):
    """Another writer, which derives partitions from the rows, puts the same rows in the same partition."""
    sink = by_hand(mode, ("window_start", transform), ("window_end", DayTransform()))
    land_three_times(sink)
    land(sink, OTHER, rows_of(100, 2))
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}
    twin = by_hand({}, ("window_start", transform), ("window_end", DayTransform()))
    table_of(twin).append(table_of(sink).scan().to_arrow())
    assert partitions(sink) == partitions(twin)


@pytest.mark.slow_except("window-default=none", "day-default=counts")
@pytest.mark.parametrize("mode", MODES[:3], ids=said)
@pytest.mark.parametrize("partition_by", [None, "window", "day"])
def test_statistics_may_be_switched_off_between_landings(mode, partition_by):
    sink = new_table(partition_by=partition_by)
    land(sink, FIRST, rows_of(0, 5))
    set_properties(sink, mode)
    land_three_times(sink)
    land(sink, OTHER, rows_of(100, 2))
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}
    set_properties(sink, {DEFAULT: "full"})
    land_three_times(sink)
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}


def test_the_properties_hold_for_all_other_columns():
    sink = by_hand(NONE, ("window_start", DayTransform()))
    land_three_times(sink)
    (file,) = [task.file for task in table_of(sink).scan().plan_files()][:1]
    schema = table_of(sink).schema()
    assert {schema.find_column_name(number) for number in file.lower_bounds} == {"window_start", "window_end"}


@pytest.mark.slow_except("window")
@pytest.mark.parametrize("partition_by", [None, "window", "hour"])
def test_rows_that_another_engine_wrote_without_statistics_are_replaced(partition_by):
    sink = new_table(partition_by=partition_by)
    land(sink, FIRST, rows_of(0, 3))
    land(sink, OTHER, rows_of(100, 2))
    set_properties(sink, {**NONE, OF_START: "none", "write.metadata.metrics.column.window_end": "none"})
    rows = table_of(sink).scan().to_arrow()
    table_of(sink).overwrite(rows)  # as a compaction does: the same rows in files without bounds
    assert all(not task.file.lower_bounds for task in table_of(sink).scan().plan_files())
    assert held(sink) == {FIRST: [0, 1, 2], OTHER: [100, 101]}
    land_three_times(sink)
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}


def test_a_file_of_two_windows_without_statistics_is_taken_apart():
    sink = new_table(partition_by=None)
    land(sink, FIRST, rows_of(0, 3))
    land(sink, OTHER, rows_of(100, 2))
    set_properties(sink, NONE)
    table_of(sink).overwrite(table_of(sink).scan().to_arrow())
    assert len(list(table_of(sink).scan().plan_files())) == 1
    land(sink, FIRST, rows_of(0, 1))
    assert held(sink) == {FIRST: [0], OTHER: [100, 101]}


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("transform", [IdentityTransform(), DayTransform()], ids=str)
def test_files_that_were_landed_without_a_partition_are_found_and_replaced(transform, is_known):
    """As earlier versions landed them while the properties switched the bounds off."""
    sink = by_hand(NONE, ("window_start", transform))
    land(sink, FIRST, rows_of(0, 3))
    land(sink, OTHER, rows_of(100, 2))
    table = table_of(sink)
    (*_, lost) = (task.file for task in table.scan(row_filter="id < 100").plan_files())
    facts = {WINDOW: str(FIRST)} if is_known else {}
    with table.transaction() as change, change.update_snapshot(snapshot_properties=facts).fast_append() as append:
        lost[3] = Record(None)
        lost.lower_bounds.clear()
        append.append_data_file(lost)
    assert len(table_of(sink).scan().to_arrow()) > len([0, 1, 2, 100, 101])
    land(sink, OTHER, rows_of(100, 2))
    land(sink, FIRST, rows_of(0, 1))
    assert held(sink) == {FIRST: [0], OTHER: [100, 101]}


@pytest.mark.parametrize("transform", [IdentityTransform(), HourTransform()], ids=str)
@pytest.mark.parametrize("lacking", WINDOW_COLUMNS)
def test_rows_of_no_window_in_no_partition_are_not_in_the_way(transform, lacking):
    sink = by_hand(NONE, (lacking, transform))
    land(sink, FIRST, rows_of(0, 3))
    table = table_of(sink)
    row = {"id": 7, "window_start": FIRST.start, "window_end": FIRST.end, lacking: None}
    table.append(pa.Table.from_pylist([row], table.schema().as_arrow()))
    for count in (4, 3, 2):
        land(sink, FIRST, rows_of(0, count))
        land(sink, OTHER, rows_of(100, 2))
    found = sorted((row["id"], row[lacking]) for row in table_of(sink).scan().to_arrow().to_pylist())
    starts = {FIRST: getattr(FIRST, lacking.removeprefix("window_")), OTHER: getattr(OTHER, lacking[7:])}
    assert found == [(0, starts[FIRST]), (1, starts[FIRST]), (7, None), (100, starts[OTHER]), (101, starts[OTHER])]


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("transform", [IdentityTransform(), DayTransform()], ids=str)
def test_a_file_of_two_windows_in_no_partition_is_taken_apart(transform, statistics, tmp_path):
    """`add_files` leaves the partition empty, where it finds no bounds."""
    sink = by_hand(NONE, ("window_start", transform))
    land(sink, hour(5), rows_of(0, 1))
    rows = [
        {"id": number, "window_start": window.start, "window_end": window.end}
        for window, numbers in ((FIRST, [0, 1, 2]), (OTHER, [100, 101]))
        for number in numbers
    ]
    file = str(tmp_path / "lake" / "added.parquet")
    columns = pa.schema([one.remove_metadata() for one in table_of(sink).schema().as_arrow()])
    pq.write_table(pa.Table.from_pylist(rows, columns), file, write_statistics=statistics)
    table_of(sink).add_files([file])
    land(sink, hour(6), rows_of(0, 1))
    for count in (4, 3, 2):
        land(sink, FIRST, rows_of(0, count))
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101], hour(5): [0], hour(6): [0]}


def test_a_table_of_format_version_1_may_have_had_other_partitions():
    sink = by_hand({}, ("id", IdentityTransform()), ("window_start", DayTransform()), version="1")
    with pytest.raises(SinkError, match=r"partitioned by part0, which is identity of id: .*by window_start"):
        land(sink, FIRST, rows_of(0, 1))
    with table_of(sink).update_spec() as spec:
        spec.remove_field("part0")
    assert [str(field.transform) for field in table_of(sink).spec().fields] == ["void", "day"]
    land_three_times(sink)
    land(sink, OTHER, rows_of(100, 2))
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}
    with table_of(sink).update_spec() as spec:
        spec.remove_field("part1")
    land_three_times(sink)
    assert held(sink) == {FIRST: [0, 1], OTHER: [100, 101]}


def test_a_partition_that_changes_while_rows_are_written_is_judged_again():
    from tests.integration.lake.landing import Attempt

    sink = new_table()
    land(sink, FIRST, rows_of(0, 3))
    first, second = (Attempt(sink, OTHER, rows_of(100, 2)).write() for _ in range(2))
    with table_of(sink).update_spec() as spec:
        spec.add_field("window_end", DayTransform(), "day")
    first.commit()
    assert held(sink) == {FIRST: [0, 1, 2], OTHER: [100, 101]}
    with table_of(sink).update_spec() as spec:
        spec.add_identity("value")
    third = Attempt(sink, hour(2), rows_of(100, 2))
    with pytest.raises(SinkError, match="partitioned by value"):
        third.write()
    second.writer.discard()


@pytest.mark.slow_except("default=none")
@pytest.mark.parametrize("mode", MODES[:2], ids=said)
def test_compaction_keeps_windows_apart_without_statistics(mode):
    sink = by_hand(mode, ("window_start", DayTransform()))
    for window in (FIRST, OTHER):
        land(sink, window, rows_of(10, 6))
    before = held(sink)
    assert len(stored_files(sink)) == 4
    compact(IcebergWriter.compactable(sink, TERMS.mark), dict.fromkeys(before), 1 << 20)
    assert len(list(table_of(sink).scan().plan_files())) == 2
    assert held(sink) == before
    land_three_times(sink)
    assert held(sink) == {FIRST: [0, 1], OTHER: before[OTHER]}


def test_windows_that_share_time_are_found_without_statistics():
    from airflow_provider_streams.errors import WindowsOverlap

    sink = by_hand(NONE, ("window_start", DayTransform()))
    day = hour(-12, 24)
    land(sink, day, rows_of(0, 3))
    with pytest.raises(WindowsOverlap):
        land(sink, hour(5), rows_of(10, 1))
    land(sink, hour(5), rows_of(10, 1), replace_overlaps=True)
    assert held(sink) == {hour(5): [10]}
