"""Windows of Iceberg tables, in a REST catalog on a real store and in an SQL catalog on a folder."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import AlwaysTrue, EqualTo
from pyiceberg.types import StringType

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import (
    ConcurrentCommit,
    SinkError,
    TableOwnedByOther,
    TableUnavailable,
    WindowsOverlap,
)
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.commit import Commit
from airflow_provider_streams.lake.iceberg.files.table_files import storage_of
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter
from airflow_provider_streams.model.sinks.landing import TableMark, TableState
from tests.integration.lake.iceberg_reading import ids, new_table, rows_by_duckdb, stored_files, table_of
from tests.integration.lake.landing import NOON, SCHEMA, TERMS, Attempt, hour, land, rows_of

pytestmark = pytest.mark.lake

LATER_MARK = replace(TERMS.mark, id="b" * 32)


on_both = pytest.mark.parametrize("catalog", ["rest", "sql"], indirect=True)
"""Where catalogs may differ; all else is tested where it costs less."""


@pytest.fixture
def catalog(request, tmp_path):
    """What the connection of the tables says."""
    with ExitStack() as stack:
        if getattr(request, "param", "sql") == "rest":
            properties = request.getfixturevalue("seaweed_server").catalog_properties
        else:
            warehouse = tmp_path / "ware house"
            properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{warehouse}"}
        stack.enter_context(given("iceberg_test", properties))
        yield properties


@pytest.fixture
def sink(catalog):
    return new_table()


def held(sink):
    """Each window's ids, as pyiceberg and DuckDB read them; and what the table says of itself agrees."""
    found = ids(sink)
    assert IcebergWriter.read_state(sink) == TableState(TERMS.mark, frozenset(found), tells_empty=False)
    return found


@on_both
def test_windows_land_next_to_each_other_and_are_replaced_alone(sink):
    assert IcebergWriter.read_state(sink) is None
    land(sink, hour(0), rows_of(0, 10))
    land(sink, hour(1), rows_of(100, 5))
    land(sink, hour(0), rows_of(0, 7))
    assert held(sink) == {hour(0): list(range(7)), hour(1): list(range(100, 105))}
    land(sink, hour(0), rows_of(0, 0))
    assert held(sink) == {hour(1): list(range(100, 105))}
    land(sink, hour(2), rows_of(0, 0))
    assert held(sink) == {hour(1): list(range(100, 105))}


@pytest.mark.parametrize(
    ("catalog", "partition_by"),
    [("rest", "window"), *(("sql", by) for by in (None, "hour", "day"))],
    indirect=["catalog"],
)
def test_another_engine_reads_the_same(catalog, partition_by):
    sink = new_table(partition_by=partition_by)
    land(sink, hour(0.25, 0.0001), rows_of(0, 3))
    land(sink, hour(1), rows_of(100, 2))
    land(sink, hour(1), rows_of(100, 1))
    rows = rows_by_duckdb(sink)
    assert ids(sink, rows) == held(sink) == {hour(0.25, 0.0001): [0, 1, 2], hour(1): [100]}
    edges = {"window_start": hour(0.25).start, "window_end": hour(0.25, 0.0001).end}
    assert rows[0] == {"id": 0, "value": "value 0", "at": NOON, **edges}
    transforms = [str(field.transform) for field in table_of(sink).spec().fields]
    assert transforms == {None: [], "window": ["identity"]}.get(partition_by, [partition_by])


def test_files_are_the_tables_own(sink):
    land(sink, hour(0), rows_of(0, 4))
    table = table_of(sink)
    system, root = storage_of(table).open()
    for path in stored_files(sink):
        with system.open_input_file(f"{root}/{path}") as file:
            schema = pq.ParquetFile(file).schema_arrow
        found = {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in schema}
        assert found == {one.name: one.field_id for one in table.schema().fields}


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int8()),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("paid", pa.decimal128(10, 2))]))),
        ("tags", pa.map_(pa.string(), pa.list_(pa.timestamp("ns", "UTC")))),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
    ]
)


def test_nested_columns_keep_their_values(sink):
    from decimal import Decimal

    row = {"id": 1, "small": 7, "lines": [{"sku": "a", "paid": Decimal("1.50")}], "tags": [("x", [NOON])], "kind": "k"}
    empty = {"id": 2, "small": None, "lines": None, "tags": [], "kind": None}
    land(sink, hour(0), pa.Table.from_pylist([row, empty], schema=NESTED))
    told = rows_by_duckdb(sink)  # pyiceberg reads no list of structs as an empty one
    edges = {"window_start": hour(0).start, "window_end": hour(0).end}
    assert told == [{**row, **edges}, {**empty, **edges}]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (pa.schema([("n", pa.uint64())]), "'n' is uint64"),
        (pa.schema([("n", pa.list_(pa.duration("s")))]), "'n' is list<.*duration"),
        (pa.schema([("Window_Start", pa.int64())]), "'Window_Start'"),
        (pa.schema([("A", pa.int64()), ("a", pa.int64())]), "more than one column 'a'"),
        (pa.schema([("n", pa.int64()), ("_Pos", pa.int64())]), "'_Pos', which Iceberg gives"),
    ],
)
def test_what_no_table_holds_is_refused_before_there_is_one(sink, schema, said):
    with pytest.raises(SinkError, match=said):
        IcebergWriter(sink, hour(0), TERMS).open(schema)
    assert IcebergWriter.read_state(sink) is None


@on_both
def test_a_table_gets_columns_where_it_may(sink):
    land(sink, hour(0), rows_of(0, 2))
    wider = pa.schema([*SCHEMA, pa.field("more", pa.struct([("a", pa.int64())]))])
    with pytest.raises(SinkError, match=r"it lacks more struct.*widen=True"):
        land(sink, hour(1), rows_of(9, 1, wider))
    wide = replace(sink, widen=True)
    land(wide, hour(1), rows_of(9, 1, wider))
    wider = pa.schema([*SCHEMA, pa.field("more", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
    land(wide, hour(2), pa.Table.from_pylist([{"id": 10, "more": {"a": 1, "b": "x"}}], schema=wider))
    assert held(sink) == {hour(0): [0, 1], hour(1): [9], hour(2): [10]}
    land(sink, hour(3), rows_of(20, 1))  # fewer columns: they are null
    told = {row["id"]: row["more"] for row in rows_by_duckdb(sink)}
    assert told[10] == {"a": 1, "b": "x"}
    assert (told[0], told[20]) == (None, None)
    with pytest.raises(SinkError, match="id is long, the rows have string"):
        land(wide, hour(4), pa.table({"id": ["x"]}))
    with pytest.raises(SinkError, match="ID is called id there"):
        land(wide, hour(4), pa.table({"ID": [1]}))


def test_what_shares_time_stays_or_goes_as_a_whole(sink):
    land(sink, hour(0), rows_of(0, 2))
    land(sink, hour(1), rows_of(10, 2))
    land(sink, hour(2), rows_of(20, 2))
    day = hour(0, 2)
    with pytest.raises(WindowsOverlap):
        land(sink, day, rows_of(50, 3))
    assert len(stored_files(sink)) == 6  # none of the refused attempt
    land(sink, day, rows_of(50, 3), replace_overlaps=True)
    assert held(sink) == {day: [50, 51, 52], hour(2): [20, 21]}


def test_a_table_has_one_owner(sink):
    land(sink, hour(0), rows_of(0, 2))
    for mark, said in (
        (TableMark("a" * 32, "pulsar://other", "d.read"), "belongs to"),
        (replace(TERMS.mark, reader="x.y"), "belongs to"),
        (LATER_MARK, "full_refresh=True"),
    ):
        with pytest.raises(TableOwnedByOther, match=said):
            land(sink, hour(0), rows_of(9, 1), mark=mark)
    assert held(sink) == {hour(0): [0, 1]}


def test_an_unowned_table_is_claimed_while_it_is_empty(sink):
    made = catalog_of(sink)
    made.create_namespace(sink.table.split(".")[0])
    table = made.create_table(sink.table, schema=pa.schema([("id", pa.int64())]))
    assert IcebergWriter.read_state(sink) is None
    wide = replace(sink, widen=True)
    land(wide, hour(0), rows_of(0, 2))
    assert held(sink) == {hour(0): [0, 1]}
    made.drop_table(sink.table)
    table = made.create_table(sink.table, schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        land(wide, hour(0), rows_of(0, 2))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        IcebergWriter.read_state(sink)


def test_a_commit_that_the_database_refused_is_made_again(sink, catalog, tmp_path, monkeypatch):
    """Though SQLite still shows it to a look by the same connection."""
    land(sink, hour(0), rows_of(0, 2))
    tried, is_through = [], Commit._is_through

    def while_others_read(*arguments):
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as another:
            if not tried:
                another.execute("BEGIN")
                another.execute("SELECT * FROM iceberg_tables").fetchall()
            tried.append(is_through(*arguments))
        return tried[-1]

    monkeypatch.setattr(Commit, "_is_through", while_others_read)
    with given("iceberg_test", {**catalog, "uri": f"{catalog['uri']}?timeout=0.05"}):
        land(sink, hour(1), rows_of(100, 2))
    assert tried == [False, True]
    assert held(sink) == {hour(0): [0, 1], hour(1): [100, 101]}


def made_by_hand(sink, schema):
    catalog_of(sink).create_namespace(sink.table.split(".")[0])
    return catalog_of(sink).create_table(sink.table, schema=schema)


@on_both
def test_a_refused_attempt_changes_nothing_of_an_unowned_table(sink):
    table = made_by_hand(sink, pa.schema([("id", pa.string())]))
    for refused, said in ((sink, "it lacks value string"), (replace(sink, widen=True), "id is string")):
        with pytest.raises(SinkError, match=said):
            land(refused, hour(0), rows_of(0, 2))
        assert table_of(sink).metadata == table.metadata
    table.append(pa.table({"id": ["mine"]}))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        land(replace(sink, widen=True), hour(0), rows_of(0, 2))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        IcebergWriter.read_state(sink)


@pytest.mark.parametrize("is_ours", [False, True])
def test_an_attempt_that_is_refused_for_the_partitions_adds_no_columns(sink, is_ours):
    if is_ours:
        land(sink, hour(0), rows_of(0, 2))
    else:
        made_by_hand(sink, pa.schema([("id", pa.int64())]))
    with table_of(sink).update_spec() as spec:
        spec.add_identity("id")
    before = table_of(sink).metadata
    more = pa.schema([*SCHEMA, ("more", pa.int64())])
    with pytest.raises(SinkError, match="partitioned by id"):
        land(replace(sink, widen=True), hour(1), rows_of(0, 2, more))
    assert table_of(sink).metadata == before


def test_rows_that_others_append_to_a_claimed_table_are_of_no_window_and_stay(sink):
    made_by_hand(sink, pa.schema([("id", pa.int64())]))
    wide = replace(sink, widen=True)
    Attempt(wide, hour(0), rows_of(0, 2)).write().writer.discard()
    table_of(sink).append(pa.table({"id": [100]}))
    assert IcebergWriter.read_state(sink) == TableState(TERMS.mark, frozenset(), tells_empty=False)
    for count in (2, 1):
        land(wide, hour(0), rows_of(0, count))
        assert IcebergWriter.read_state(sink) == TableState(TERMS.mark, frozenset({hour(0)}), tells_empty=False)
        assert sorted(row["id"] for row in rows_by_duckdb(sink)) == [*range(count), 100]


@on_both
def test_of_two_that_claim_an_unowned_table_at_once_one_is_refused(sink, monkeypatch):
    made = catalog_of(sink)
    made.create_namespace(sink.table.split(".")[0])
    made.create_table(sink.table, schema=pa.schema([("id", pa.int64())]))
    found, wide = IcebergTable.load, replace(sink, widen=True)

    def load(self):
        table = found(self)
        monkeypatch.undo()
        land(wide, hour(0), rows_of(0, 2))
        return table

    monkeypatch.setattr(IcebergTable, "load", load)
    with pytest.raises(TableOwnedByOther, match="belongs to"):
        land(wide, hour(1), rows_of(9, 1), mark=replace(TERMS.mark, reader="x.y"))
    assert held(sink) == {hour(0): [0, 1]}


@on_both
@pytest.mark.parametrize(
    "terms", [{"set_aside": True}, {"earlier": (TERMS.mark.id,)}], ids=lambda given: next(iter(given))
)
def test_what_was_landed_under_an_earlier_mark_goes_with_the_first_window(sink, terms):
    land(sink, hour(0), rows_of(0, 2))
    land(sink, hour(1), rows_of(10, 2))
    before = table_of(sink).current_snapshot().snapshot_id
    attempt = Attempt(sink, hour(0), rows_of(5, 1), replace(TERMS, mark=LATER_MARK, **terms)).write()
    assert held(sink) == {hour(0): [0, 1], hour(1): [10, 11]}  # until the commit
    attempt.commit()
    assert IcebergWriter.read_state(sink) == TableState(LATER_MARK, frozenset({hour(0)}), tells_empty=False)
    assert ids(sink) == {hour(0): [5]}
    assert len(table_of(sink).scan(snapshot_id=before).to_arrow()) == 4
    with pytest.raises(TableOwnedByOther):
        land(sink, hour(1), rows_of(10, 2))


def test_what_is_set_aside_by_a_window_without_rows(sink):
    land(sink, hour(0), rows_of(0, 2))
    land(sink, hour(0), rows_of(0, 0), mark=LATER_MARK, set_aside=True)
    assert IcebergWriter.read_state(sink) == TableState(LATER_MARK, frozenset(), tells_empty=False)


def test_other_windows_may_be_landed_meanwhile(sink):
    land(sink, hour(0), rows_of(0, 1))
    first, second = Attempt(sink, hour(0), rows_of(5, 2)).write(), Attempt(sink, hour(1), rows_of(10, 2)).write()
    third = Attempt(sink, hour(2), rows_of(0, 0)).write()
    for attempt in (second, third, first):
        attempt.commit()
    assert held(sink) == {hour(0): [5, 6], hour(1): [10, 11]}


@on_both
@pytest.mark.parametrize("rows", [0, 3])
def test_of_two_attempts_at_once_one_lands_and_the_other_says_so(sink, rows):
    land(sink, hour(0), rows_of(0, 1))
    first, second = Attempt(sink, hour(0), rows_of(5, rows)).write(), Attempt(sink, hour(0), rows_of(10, 2)).write()
    first.commit()
    with pytest.raises(ConcurrentCommit) as raised:
        second.commit()
    assert raised.value.retryable
    second.writer.discard()
    assert ids(sink) == ({hour(0): [5, 6, 7]} if rows else {})
    land(sink, hour(0), second.rows)  # once more settles it
    assert held(sink) == {hour(0): [10, 11]}


def test_what_is_in_the_way_of_an_attempt_is_the_same_window_or_another_one(sink):
    for window, said in ((hour(0), "The same task may run twice"), (hour(0, 2), r"another window that.*overlap='")):
        attempt = Attempt(sink, hour(0), rows_of(0, 1)).write()
        land(sink, window, rows_of(5, 2), replace_overlaps=True)
        with pytest.raises(ConcurrentCommit, match=said) as raised:
            attempt.commit()
        assert ("run twice" in str(raised.value), str(window) in str(raised.value)) == (window == hour(0), True)
        attempt.writer.discard()


@on_both
def test_between_the_judgement_and_the_commit_others_are_seen(sink, monkeypatch):
    """Both have judged before either commits: the catalog tells them apart, and the second one judges again."""
    from airflow_provider_streams.lake.iceberg.commit import Replacement

    land(sink, hour(0), rows_of(0, 1))
    change = Replacement._change

    def meanwhile(act):
        def changed(self, *arguments):
            prepared = change(self, *arguments)
            monkeypatch.setattr(Replacement, "_change", change)
            act()
            return prepared

        monkeypatch.setattr(Replacement, "_change", changed)

    meanwhile(lambda: land(sink, hour(1), rows_of(50, 1)))
    land(sink, hour(0), rows_of(5, 2))
    assert held(sink) == {hour(0): [5, 6], hour(1): [50]}

    meanwhile(lambda: land(sink, hour(0), rows_of(60, 1)))
    with pytest.raises(ConcurrentCommit):
        land(sink, hour(0), rows_of(5, 2))
    assert held(sink) == {hour(0): [60], hour(1): [50]}

    meanwhile(lambda: land(sink, hour(2), rows_of(0, 0), mark=LATER_MARK, set_aside=True))
    with pytest.raises(TableOwnedByOther):
        land(sink, hour(3), rows_of(5, 2))  # of which nothing was taken out: the files do not tell, the mark does
    assert IcebergWriter.read_state(sink) == TableState(LATER_MARK, frozenset(), tells_empty=False)


def test_a_column_that_was_dropped_and_added_again_is_another_one(sink):
    """Its files bear the old id: every reader would find nulls in them."""
    land(sink, hour(0), rows_of(0, 5))
    late = Attempt(sink, hour(1), rows_of(10, 5)).write()
    for change in (
        lambda schema: schema.delete_column("value"),
        lambda schema: schema.add_column("value", StringType()),
    ):
        with table_of(sink).update_schema(allow_incompatible_changes=True) as schema:
            change(schema)
    with pytest.raises(TableUnavailable, match="columns were dropped, renamed or added"):
        late.commit()
    late.writer.discard()
    land(sink, hour(1), rows_of(10, 5))
    assert None not in [row["value"] for row in rows_by_duckdb(sink) if row["id"] >= 10]


def test_a_table_without_the_columns_of_windows_says_so(sink):
    land(sink, hour(0), rows_of(0, 5))
    with table_of(sink).update_schema(allow_incompatible_changes=True) as schema:
        schema.rename_column("window_end", "until")
    with pytest.raises(SinkError, match="it has no column window_end, which"):
        IcebergWriter.read_state(sink)


def test_names_that_meet_within_a_table_are_refused(sink):
    nested = pa.schema([("s", pa.struct([("a", pa.int64())])), ("s.a", pa.int64())])
    with pytest.raises(SinkError, match=r"multiple fields for name s\.a"):
        Attempt(sink, hour(0), pa.Table.from_pylist([], nested)).write()


@pytest.mark.slow_except("rest")
@on_both
def test_many_at_once_end_with_every_window(sink):
    with ThreadPoolExecutor(4) as pool:
        for _ in range(2):  # made by the first one, and replaced
            list(pool.map(lambda number: land(sink, hour(number), rows_of(10 * number, 2)), range(4)))
    assert held(sink) == {hour(number): [10 * number, 10 * number + 1] for number in range(4)}


def test_files_of_several_windows_are_taken_apart_in_one_snapshot(catalog):
    sink = new_table(partition_by=None)
    for number in range(2):
        land(sink, hour(number), rows_of(100 * number, 6))
    table = table_of(sink)
    rows = table.scan().to_arrow()
    table.overwrite(rows.slice(0, 0))
    for part in range(3):  # each file has rows of both windows
        table.append(rows.take(list(range(part, 12, 3))))
    assert len(stored_files(sink)) >= 3
    before = table_of(sink).snapshots()
    land(sink, hour(0), rows_of(0, 2))
    assert held(sink) == {hour(0): [0, 1], hour(1): list(range(100, 106))}
    later = [one for one in table_of(sink).snapshots() if one not in before]
    others = [table_of(sink).scan("id >= 100", snapshot_id=one.snapshot_id).to_arrow().num_rows for one in later]
    assert others == [6, 6], "what is replaced is removed, and then added: no snapshot lacks the other window's rows"


@on_both
def test_compacted_files_are_taken_apart(sink):
    land(sink, hour(0), rows_of(0, 3))
    land(sink, hour(1), rows_of(10, 2))
    table = table_of(sink)
    with table.update_spec() as spec:
        spec.remove_field("window_start")
    table.overwrite(table.scan().to_arrow())  # one file of both windows
    assert len(list(table_of(sink).scan().plan_files())) == 1
    assert held(sink) == {hour(0): [0, 1, 2], hour(1): [10, 11]}
    land(sink, hour(1), rows_of(20, 1))
    assert held(sink) == {hour(0): [0, 1, 2], hour(1): [20]}
    with pytest.raises(WindowsOverlap):
        land(sink, hour(0, 2), rows_of(30, 1))


@pytest.mark.parametrize("partition_by", [None, "hour", "day"])
def test_windows_that_share_a_partition_land_again_after_they_were_compacted_into_one_file(
    catalog, tmp_path, partition_by
):
    sink = new_table(partition_by=partition_by)
    first, second = hour(0, 0.5), hour(0.5, 0.5)
    land(sink, first, rows_of(0, 3))
    land(sink, second, rows_of(10, 2))
    compacted = tmp_path / "compacted.parquet"
    pq.write_table(table_of(sink).scan().to_arrow(), compacted)
    with table_of(sink).transaction() as change:
        change.delete(AlwaysTrue())
        change.add_files([f"file://{compacted}"])
    assert len(list(table_of(sink).scan().plan_files())) == 1
    assert held(sink) == {first: [0, 1, 2], second: [10, 11]}
    land(sink, first, rows_of(20, 4))
    assert held(sink) == {first: [20, 21, 22, 23], second: [10, 11]}
    land(sink, second, rows_of(30, 1))
    assert held(sink) == {first: [20, 21, 22, 23], second: [30]}


def test_a_table_partitioned_by_values_is_refused(sink):
    land(sink, hour(0), rows_of(0, 3))
    with table_of(sink).update_spec() as spec:
        spec.add_identity("value")
    with pytest.raises(SinkError, match="partitioned by value"):
        land(sink, hour(1), rows_of(10, 2))


def test_rows_that_another_engine_deletes_are_missing(sink):
    land(sink, hour(0), rows_of(0, 3))
    land(sink, hour(1), rows_of(10, 2))
    table_of(sink).delete(EqualTo("window_start", hour(0).start.isoformat()))
    assert held(sink) == {hour(1): [10, 11]}


@on_both
def test_a_failed_attempt_leaves_nothing(sink):
    land(sink, hour(0), rows_of(0, 3))
    before = stored_files(sink)
    attempt = Attempt(sink, hour(1), rows_of(10, 2)).write()
    assert len(stored_files(sink)) == len(before) + 2
    attempt.writer.discard()
    assert stored_files(sink) == before
    again = Attempt(sink, hour(1), rows_of(10, 2)).write()
    of_lost_tasks, again.files = again.files, []
    again.write_files().commit()
    assert not {file.path for file in again.files} & {file.path for file in of_lost_tasks}
    again.writer.discard()
    assert len(stored_files(sink)) == len(before) + 2
    assert held(sink) == {hour(0): [0, 1, 2], hour(1): [10, 11]}


def test_a_catalog_that_is_not_there_is_said(tmp_path):
    nowhere = {"uri": "http://127.0.0.1:9", "credential": "me:a-secret-of-mine"}
    with given("iceberg_test", nowhere), pytest.raises(TableUnavailable) as raised:
        IcebergWriter.read_state(new_table())
    assert "a-secret-of-mine" not in str(raised.value)
    with pytest.raises(SinkError, match="pyiceberg knows no catalog 'nowhere'"):
        IcebergWriter.read_state(IcebergSink("a.b", catalog="nowhere"))


@pytest.mark.parametrize("begin", ["", "a" * 15])
@pytest.mark.parametrize("letter", ["\ud7ff", "\U0010ffff"])
def test_texts_whose_bound_no_letter_follows(sink, begin, letter):
    text = begin + 20 * letter
    land(sink, hour(0), pa.table({"id": [1, 2], "value": [text, "b"]}))
    for value, meant in ((text, [1]), ("b", [2])):
        assert table_of(sink).scan(row_filter=EqualTo("value", value)).to_arrow()["id"].to_pylist() == meant


@pytest.mark.parametrize("letter", "#?")
def test_a_place_whose_path_pyiceberg_would_cut_is_refused(tmp_path, sink, catalog, letter):
    with given("cut", {**catalog, "warehouse": f"file://{tmp_path}/ware{letter}house"}):
        cut = replace(new_table(), conn_id="cut")
        with pytest.raises(SinkError, match=rf"has a '\{letter}', where pyiceberg ends it.*without '#' and '\?'"):
            land(cut, hour(0), rows_of(0, 1))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("ware")]
    land(sink, hour(0), rows_of(0, 1))
    with table_of(sink).transaction() as change:
        change.set_properties({"write.data.path": f"file://{tmp_path}/da{letter}ta"})
    with pytest.raises(SinkError, match=rf"da\{letter}ta: the path has a"):
        land(sink, hour(1), rows_of(0, 1))
