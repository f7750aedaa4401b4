from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_streams import DeltaSink
from airflow_provider_streams.errors import SinkError, TableOwnedByOther, WindowsOverlap
from airflow_provider_streams.lake.delta import table_version
from airflow_provider_streams.lake.delta.storage import check_free
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.delta.writer import DeltaWriter, storage_of
from airflow_provider_streams.lake.table_properties import properties_of
from airflow_provider_streams.model.sinks.landing import TableMark, TableState
from tests.integration.lake.delta_reading import adds, commits, windows
from tests.integration.lake.landing import NOON, SCHEMA, TERMS, Attempt, hour, land, rows_of, stored_files


@pytest.fixture
def sink(tmp_path):
    return DeltaSink(str(tmp_path / "shop orders"), widen=False)


def held(sink):
    """Each window's ids, as the log has them, and as delta-rs reads them; the two agree."""
    by_hand = {window: sorted(row["id"] for row in rows) for window, rows in windows(storage_of(sink)).items()}
    read = DeltaTable(sink.path).to_pyarrow_table().to_pylist()
    for window, ids in by_hand.items():
        edges = (window.start, window.end)
        assert sorted(row["id"] for row in read if (row["window_start"], row["window_end"]) == edges) == ids
    assert len(read) == sum(map(len, by_hand.values()))
    assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset(by_hand))
    return by_hand


def test_windows_land_next_to_each_other_and_are_replaced_alone(sink):
    land(sink, hour(0), rows_of(0, 10))
    land(sink, hour(1), rows_of(100, 5))
    land(sink, hour(0), rows_of(0, 7))
    assert held(sink) == {hour(0): list(range(7)), hour(1): list(range(100, 105))}


def test_a_window_that_is_empty_now_holds_nothing_and_is_known_as_landed(sink):
    land(sink, hour(0), rows_of(0, 10))
    land(sink, hour(1), rows_of(100, 5))
    land(sink, hour(0), rows_of(0, 0))
    assert held(sink) == {hour(0): [], hour(1): list(range(100, 105))}
    land(sink, hour(0), rows_of(0, 3))
    assert held(sink)[hour(0)] == [0, 1, 2]


def test_rows_and_windows_are_what_they_were(sink):
    land(sink, hour(0.25, 0.0001), rows_of(0, 2))
    (row, _) = DeltaTable(sink.path).to_pyarrow_table().sort_by("id").to_pylist()
    edges = {"window_start": hour(0.25).start, "window_end": hour(0.25, 0.0001).end}
    assert row == {"id": 0, "value": "value 0", "at": NOON, **edges}


def test_the_log_says_which_plan_a_window_holds(sink):
    land(sink, hour(0), rows_of(0, 10))
    facts = [
        action["commitInfo"] for actions in commits(storage_of(sink)) for action in actions if "commitInfo" in action
    ]
    assert facts[-1]["streams.fingerprint"] == "plan of 10"
    assert facts[-1]["streams.window"] == str(hour(0))


def test_what_readers_pass_over_files_by_is_true_of_them(sink):
    land(sink, hour(0), rows_of(5, 10))
    read = DeltaTable(sink.path).to_pyarrow_dataset()
    assert read.count_rows(filter=pa.dataset.field("id") == 14) == 1
    flat = pa.table(DeltaTable(sink.path).get_add_actions(flatten=True)).to_pylist()
    assert sorted((one["min.id"], one["max.id"], one["num_records"]) for one in flat) == [(5, 9, 5), (10, 14, 5)]


def test_a_window_that_shares_time_is_in_the_way_or_taken_out(sink):
    land(sink, hour(0), rows_of(0, 10))
    land(sink, hour(1), rows_of(100, 5))
    land(sink, hour(2), rows_of(200, 1))
    with pytest.raises(WindowsOverlap, match="2 that the table already holds"):
        land(sink, hour(0, 2), rows_of(300, 2))
    assert held(sink).keys() == {hour(0), hour(1), hour(2)}
    land(sink, hour(0, 2), rows_of(300, 2), replace_overlaps=True)
    assert held(sink) == {hour(0, 2): [300, 301], hour(2): [200]}
    assert stored_files(storage_of(sink)) >= adds(storage_of(sink)).keys()


def test_a_window_of_another_length_from_the_same_start_is_in_the_way(sink):
    land(sink, hour(0), rows_of(0, 10))
    with pytest.raises(WindowsOverlap):
        land(sink, hour(0, 2), rows_of(300, 2))
    assert held(sink) == {hour(0): list(range(10))}


def test_an_attempt_that_fails_leaves_nothing(sink):
    land(sink, hour(0), rows_of(0, 10))
    before = stored_files(storage_of(sink))
    with pytest.raises(WindowsOverlap):
        land(sink, hour(0, 2), rows_of(300, 200))
    assert stored_files(storage_of(sink)) == before


@pytest.mark.parametrize("other", [{"reader": "d.other"}, {"source": "pulsar://shop/clicks"}, {"id": "b" * 32}])
def test_a_table_of_another_owner_is_left_alone(sink, other):
    land(sink, hour(0), rows_of(0, 10))
    mark = replace(TERMS.mark, **other)
    with pytest.raises(TableOwnedByOther):
        land(sink, hour(1), rows_of(0, 1), mark=mark)
    assert held(sink) == {hour(0): list(range(10))}


def test_a_table_that_becomes_anothers_before_the_commit_is_left_alone(sink):
    attempt = Attempt(sink, hour(1), rows_of(0, 1)).write()
    DeltaTable(sink.path).alter.set_table_properties({"streams.reader": "d.other"}, raise_if_not_exists=False)
    with pytest.raises(TableOwnedByOther, match=r"d\.other"):
        attempt.commit()
    assert adds(storage_of(sink)) == {}


def test_an_unowned_table_is_claimed_if_it_holds_nothing(sink):
    schema = pa.schema(
        [*SCHEMA, ("window_start", pa.timestamp("us", "UTC")), ("window_end", pa.timestamp("us", "UTC"))]
    )
    by = ["window_start", "window_end"]
    DeltaTable.create(sink.path, schema.set(2, pa.field("at", pa.timestamp("us", "UTC"))), partition_by=by)
    assert DeltaWriter.read_state(sink) is None
    land(sink, hour(0), rows_of(0, 10))
    assert held(sink) == {hour(0): list(range(10))}


def test_an_unowned_table_with_data_is_left_alone(sink):
    write_deltalake(sink.path, rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        land(sink, hour(0), rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        DeltaWriter.read_state(sink)


def test_a_table_that_is_not_by_window_is_refused(sink):
    DeltaTable.create(sink.path, rows_of(0, 0).schema.set(2, pa.field("at", pa.timestamp("us", "UTC"))))
    with pytest.raises(SinkError, match="must be partitioned by window_start and window_end"):
        land(sink, hour(0), rows_of(0, 10))


WINDOWS = [("window_start", pa.timestamp("us", "UTC")), ("window_end", pa.timestamp("us", "UTC"))]
PLAIN = pa.schema([("id", pa.int64()), ("value", pa.string()), ("at", pa.timestamp("us", "UTC"))])
BY_WINDOW = ["window_start", "window_end"]


@pytest.mark.parametrize(
    ("schema", "by", "said"),
    [
        (PLAIN, [], "must be partitioned by"),
        (pa.schema([*PLAIN, *WINDOWS]), ["window_start"], "must be partitioned by"),
        (pa.schema([("id", pa.int64()), *WINDOWS]), BY_WINDOW, "it lacks value string"),
        (pa.schema([("id", pa.string()), *WINDOWS]), BY_WINDOW, "id is string"),
    ],
    ids=["no partitions", "other partitions", "lacks a column", "another type"],
)
def test_a_refused_attempt_changes_nothing_of_an_unowned_table(sink, schema, by, said):
    DeltaTable.create(sink.path, schema, partition_by=by)
    with pytest.raises(SinkError, match=said):
        land(sink, hour(0), rows_of(0, 10))
    table = DeltaTable(sink.path)
    assert (table.version(), table.metadata().configuration) == (0, {})
    row = {"id": ["1" if schema.field("id").type == pa.string() else 1]}
    write_deltalake(sink.path, pa.table(row), mode="append", schema_mode="merge")
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        land(replace(sink, widen=True), hour(0), rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        DeltaWriter.read_state(sink)


def test_rows_that_others_append_to_a_claimed_table_are_of_no_window_and_stay(sink):
    DeltaTable.create(sink.path, pa.schema([*PLAIN, *WINDOWS]), partition_by=BY_WINDOW)
    Attempt(sink, hour(0), rows_of(0, 2)).write().writer.discard()
    write_deltalake(sink.path, pa.table({"id": [100]}), mode="append", schema_mode="merge")
    assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset())
    for count in (2, 1):
        land(sink, hour(0), rows_of(0, count))
        assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset({hour(0)}))
        assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == [*range(count), 100]


@pytest.mark.parametrize(
    ("schema", "by"),
    [
        (PLAIN, []),
        (pa.schema([*PLAIN, *WINDOWS]), ["value"]),
        (pa.schema([*PLAIN, *WINDOWS]), ["window_start"]),
        (pa.schema([*PLAIN, *((name, pa.string()) for name in BY_WINDOW)]), BY_WINDOW),
        (pa.schema([*PLAIN, *((name, pa.timestamp("us")) for name in BY_WINDOW)]), BY_WINDOW),
    ],
    ids=["none", "others", "one of two", "texts", "local times"],
)
def test_a_marked_table_whose_partitions_are_no_windows_says_so(sink, schema, by):
    properties = properties_of(TERMS.mark)
    DeltaTable.create(sink.path, schema, partition_by=by, configuration=properties, raise_if_key_not_exists=False)
    assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset())
    edge = "x" if schema.names[-1] in BY_WINDOW and schema.types[-1] == pa.string() else NOON
    values = {"id": 1, "value": "a", "at": NOON, "window_start": edge, "window_end": edge}
    types = [(one.name, one.type) for one in schema]
    row = {name: pa.array([values[name]]).cast(type_) for name, type_ in types}
    write_deltalake(sink.path, pa.table(row), mode="append")
    with pytest.raises(SinkError, match="not partitioned by window_start and window_end"):
        DeltaWriter.read_state(sink)
    for terms in ({}, {"mark": replace(TERMS.mark, id="b" * 32), "set_aside": True}):
        with pytest.raises(SinkError, match="must be partitioned by window_start and window_end"):
            DeltaWriter(sink, hour(0), replace(TERMS, **terms)).open(rows_of(0, 1).schema)
    with pytest.raises(SinkError, match="must be partitioned by window_start and window_end"):
        DeltaWriter.compactable(sink, TERMS.mark).contents()
    assert len(adds(storage_of(sink))) == 1


def test_windows_in_partitions_that_say_more_are_still_known(sink):
    properties, by = properties_of(TERMS.mark), [*BY_WINDOW, "value"]
    schema = pa.schema([*PLAIN, *WINDOWS])
    DeltaTable.create(sink.path, schema, partition_by=by, configuration=properties, raise_if_key_not_exists=False)
    row = {"id": 1, "value": "a", "at": NOON, "window_start": hour(0).start, "window_end": hour(0).end}
    write_deltalake(sink.path, pa.Table.from_pylist([row], schema), mode="append")
    assert DeltaWriter.read_state(sink) == TableState(TERMS.mark, frozenset({hour(0)}))


def test_rows_that_others_append_stay_although_numbers_would_become_wider(sink):
    ints = pa.schema([("id", pa.int32())])
    land(sink, hour(0), rows_of(0, 2, ints))
    write_deltalake(sink.path, pa.table({"id": pa.array([100], pa.int32())}), mode="append", schema_mode="merge")
    with pytest.raises(SinkError, match="it has rows of others, which are in no window"):
        land(replace(sink, widen=True), hour(1), rows_of(10, 1, pa.schema([("id", pa.int64())])))
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 100]


def test_a_refused_full_refresh_sets_nothing_aside(sink):
    land(sink, hour(0), rows_of(0, 10))
    DeltaTable(sink.path).alter.set_table_properties(
        {"delta.constraints.positive": "id > 0"}, raise_if_not_exists=False
    )
    before = DeltaTable(sink.path).version()
    later = replace(TERMS, mark=replace(TERMS.mark, id="b" * 32), set_aside=True)
    with pytest.raises(SinkError, match="the table cannot hold windows"):
        DeltaWriter.check_rows(sink, rows_of(0, 1).schema, later)
    with pytest.raises(SinkError, match="the table cannot hold windows"):
        land(sink, hour(0), rows_of(0, 1), mark=later.mark, set_aside=True)
    assert DeltaTable(sink.path).version() == before
    assert held(sink) == {hour(0): list(range(10))}


@pytest.mark.parametrize("name", ["delta.appendOnly", "delta.constraints.positive"])
def test_a_table_that_would_refuse_windows_is_refused_before_they_are_read(sink, name):
    land(sink, hour(0), rows_of(0, 10))
    value = "true" if name == "delta.appendOnly" else "id > 0"
    DeltaTable(sink.path).alter.set_table_properties({name: value}, raise_if_not_exists=False)
    with pytest.raises(SinkError, match="the table cannot hold windows"):
        DeltaWriter(sink, hour(1), TERMS).open(rows_of(0, 1).schema)


def test_a_folder_with_other_files_becomes_no_table(sink, tmp_path):
    (tmp_path / "shop orders").mkdir()
    (tmp_path / "shop orders" / "notes.txt").touch()
    with pytest.raises(TableOwnedByOther, match=r"notes\.txt"):
        land(sink, hour(0), rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match=r"notes\.txt"):
        DeltaWriter.read_state(sink)


@pytest.mark.parametrize("logged", [None, "_commit_0.json.tmp"])
def test_an_empty_log_makes_no_table_of_the_files_next_to_it(sink, tmp_path, logged):
    log = tmp_path / "shop orders" / "_delta_log"
    log.mkdir(parents=True)
    if logged:
        (log / logged).touch()
    assert DeltaWriter.read_state(sink) is None
    theirs = log.parent / "theirs.parquet"
    theirs.touch()
    message = r"holds theirs\.parquet, and its _delta_log says nothing"
    with pytest.raises(TableOwnedByOther, match=message):
        land(sink, hour(0), rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match=message):
        DeltaWriter.read_state(sink)
    assert sorted(log.parent.iterdir()) == [log, theirs], "nothing of ours is in it"


def test_a_table_whose_log_was_emptied_has_no_owner_until_it_is_back(sink, tmp_path):
    land(sink, hour(0), rows_of(0, 10))
    log = tmp_path / "shop orders" / "_delta_log"
    log.rename(away := tmp_path / "away")
    log.mkdir()
    with pytest.raises(TableOwnedByOther, match=r"holds window_start=.*, and its _delta_log says nothing"):
        DeltaWriter.read_state(sink)
    with pytest.raises(TableOwnedByOther):
        land(sink, hour(1), rows_of(100, 10))
    log.rmdir()
    away.rename(log)
    land(sink, hour(1), rows_of(100, 10))
    assert held(sink).keys() == {hour(0), hour(1)}


def test_a_table_that_another_run_made_meanwhile_is_no_foreign_folder(sink):
    land(sink, hour(0), rows_of(0, 10))
    check_free(storage_of(sink))


@pytest.mark.parametrize("sign", ["_delta_log", "_table.json", "metadata/v1.metadata.json"])
def test_a_folder_inside_of_a_table_becomes_none(sink, tmp_path, sign):
    (tmp_path / sign).mkdir(parents=True)
    with pytest.raises(TableOwnedByOther, match="inside another table"):
        land(sink, hour(0), rows_of(0, 10))
    with pytest.raises(TableOwnedByOther, match="inside another table"):
        DeltaWriter.read_state(sink)


@pytest.mark.parametrize(
    "terms", [{"set_aside": True}, {"earlier": (TERMS.mark.id,)}], ids=lambda given: next(iter(given))
)
def test_what_was_landed_under_an_earlier_mark_is_set_aside_when_it_is_asked_for(sink, terms):
    land(sink, hour(0), rows_of(0, 10))
    land(sink, hour(1), rows_of(100, 5))
    before = DeltaTable(sink.path).version()
    renewed = replace(TERMS, mark=TableMark("b" * 32, TERMS.mark.source, TERMS.mark.reader), **terms)
    other = pa.schema([("id", pa.string()), ("local", pa.timestamp("us"))])
    attempt = Attempt(sink, hour(1), rows_of(0, 0, other), renewed).write()
    assert held(sink).keys() == {hour(0), hour(1)}  # nothing happens before the proof
    attempt.commit()
    assert DeltaWriter.read_state(sink) == TableState(renewed.mark, frozenset([hour(1)]))
    assert DeltaTable(sink.path).to_pyarrow_table().num_rows == 0
    assert DeltaTable(sink.path, version=before).to_pyarrow_table().num_rows == 15
    Attempt(sink, hour(2), rows_of(0, 0, other), renewed).land()
    assert DeltaWriter.read_state(sink) == TableState(renewed.mark, frozenset([hour(1), hour(2)]))


def test_two_that_set_aside_at_once_lose_no_window(sink):
    land(sink, hour(0), rows_of(0, 10))
    mark = TableMark("b" * 32, TERMS.mark.source, TERMS.mark.reader)
    attempts = [
        Attempt(sink, hour(n), rows_of(n, 2), replace(TERMS, mark=mark, set_aside=True)).write() for n in range(4)
    ]
    at_once(*(attempt.commit for attempt in attempts))
    assert windows(storage_of(sink)).keys() == {hour(n) for n in range(4)}


def at_once(*acts):
    errors = []

    def run(act):
        try:
            act()
        except Exception as error:  # noqa: BLE001 - given to the waiting thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_windows_that_are_landed_at_once_are_all_there(sink):
    attempts = [Attempt(sink, hour(n), rows_of(n, 2)).write() for n in range(8)]
    at_once(*(attempt.commit for attempt in attempts))
    assert held(sink) == {hour(n): [n, n + 1] for n in range(8)}


def test_a_table_that_many_make_at_once_is_one(sink):
    at_once(*(lambda n=n: land(sink, hour(n), rows_of(n, 2)) for n in range(4)))
    assert held(sink) == {hour(n): [n, n + 1] for n in range(4)}


def test_a_table_that_another_makes_at_this_moment_is_no_foreign_folder(sink, tmp_path):
    (tmp_path / "shop orders" / "_delta_log").mkdir(parents=True)
    land(sink, hour(0), rows_of(0, 10))
    assert held(sink) == {hour(0): list(range(10))}


def test_of_two_attempts_at_one_window_one_is_whole(sink):
    attempts = [Attempt(sink, hour(0), rows_of(n * 100, 10 + n)).write() for n in range(4)]
    at_once(*(attempt.commit for attempt in attempts))
    assert held(sink)[hour(0)] in [list(range(n * 100, n * 100 + 10 + n)) for n in range(4)]


def test_windows_that_share_time_and_are_landed_at_once_are_not_both_there(sink):
    attempts = [Attempt(sink, hour(n / 2), rows_of(n * 100, 10)).write() for n in range(2)]
    with pytest.raises(WindowsOverlap):
        at_once(*(attempt.commit for attempt in attempts))
    assert len(held(sink)) == 1


def test_a_table_gets_columns_only_if_it_may(sink):
    land(sink, hour(0), rows_of(0, 10))
    more = pa.schema([*SCHEMA, ("local", pa.timestamp("us")), ("price", pa.uint32())])
    with pytest.raises(SinkError, match="it lacks local timestamp_ntz; it lacks price long; widen=True"):
        land(sink, hour(1), rows_of(100, 5, more))
    land(replace(sink, widen=True), hour(1), rows_of(100, 5, more))
    land(sink, hour(2), rows_of(200, 1))
    assert held(sink) == {hour(0): list(range(10)), hour(1): list(range(100, 105)), hour(2): [200]}
    assert {"local", "price"} < set(DeltaTable(sink.path).to_pyarrow_table().column_names)


def test_structs_grow(sink):
    def one(*names):
        struct = pa.struct([(name, pa.int32()) for name in names])
        return pa.table({"id": [1], "inner": pa.array([dict.fromkeys(names, 7)], struct)})

    land(sink, hour(0), one("a"))
    land(replace(sink, widen=True), hour(1), one("a", "b"))
    land(sink, hour(2), one("b"))
    read = DeltaTable(sink.path).to_pyarrow_table().sort_by("window_start")["inner"].to_pylist()
    assert read == [{"a": 7, "b": None}, {"a": 7, "b": 7}, {"a": None, "b": 7}]


def test_a_column_of_another_type_is_refused(sink):
    land(sink, hour(0), rows_of(0, 10))
    other = pa.schema([("id", pa.string()), ("VALUE", pa.string())])
    with pytest.raises(SinkError, match="id is long, the rows have string; VALUE is called value there"):
        land(replace(sink, widen=True), hour(1), rows_of(0, 0, other))
    assert held(sink) == {hour(0): list(range(10))}


def test_what_another_hand_did_to_the_table_stays(sink):
    land(sink, hour(0), rows_of(0, 10))
    table = DeltaTable(sink.path)
    table.alter.set_column_metadata("id", {"comment": "of the order"})
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 7 days"})
    more = pa.schema([*SCHEMA, ("price", pa.int64())])
    land(replace(sink, widen=True), hour(1), rows_of(100, 5, more))
    table = DeltaTable(sink.path)
    assert table.schema().fields[0].metadata == {"comment": "of the order"}
    assert table.metadata().configuration["delta.logRetentionDuration"] == "interval 7 days"
    assert held(sink).keys() == {hour(0), hour(1)}


def test_rows_that_another_hand_deleted_stay_away_and_their_window_can_be_replaced(sink):
    land(sink, hour(0), rows_of(0, 10))
    DeltaTable(sink.path).delete("id < 5")
    DeltaTable(sink.path).optimize.compact()
    DeltaTable(sink.path).create_checkpoint()
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == [5, 6, 7, 8, 9]
    land(sink, hour(0), rows_of(0, 3))
    assert held(sink) == {hour(0): [0, 1, 2]}


def test_a_table_that_was_made_append_only_says_so(sink):
    land(sink, hour(0), rows_of(0, 10))
    DeltaTable(sink.path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(SinkError, match=r"(?i)append") as caught:
        land(sink, hour(0), rows_of(0, 3))
    assert not caught.value.retryable
    assert held(sink) == {hour(0): list(range(10))}
    assert stored_files(storage_of(sink)) == adds(storage_of(sink)).keys()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_attempt_that_ends_between_the_commit_and_its_answer_keeps_what_landed(sink, monkeypatch, end):
    land(sink, hour(0), rows_of(0, 10))
    replace_window = DeltaVersion.replace

    def ended(version, *given):
        assert replace_window(version, *given)
        raise end

    monkeypatch.setattr(DeltaVersion, "replace", ended)
    with pytest.raises(end):
        land(sink, hour(0), rows_of(100, 5))
    assert held(sink) == {hour(0): list(range(100, 105))}


def test_a_file_that_is_not_here_or_not_whole_is_not_landed(sink, tmp_path):
    attempt = Attempt(sink, hour(0), rows_of(0, 10)).write()
    file = tmp_path / "shop orders" / attempt.files[0].path
    kept = file.read_bytes()
    file.unlink()
    with pytest.raises(SinkError, match="not here"):
        attempt.commit()
    file.write_bytes(kept[:-1])
    with pytest.raises(SinkError):
        attempt.commit()
    file.write_bytes(kept)
    attempt.commit()
    assert held(sink) == {hour(0): list(range(10))}


def test_a_table_is_absent_or_cannot_be_seen(sink, tmp_path):
    assert DeltaWriter.read_state(sink) is None
    with pytest.raises(SinkError, match="mount it"):
        DeltaWriter.read_state(DeltaSink(str(tmp_path / "nowhere" / "orders")))


@pytest.mark.parametrize("name", ["delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"])
def test_a_window_that_lands_again_is_replaced_whatever_statistics_the_table_wants(sink, name):
    """The log's partitions say which window a file is of, and no table property switches these off."""
    schema = pa.schema([*SCHEMA.set(2, pa.field("at", pa.timestamp("us", "UTC"))), *WINDOWS])
    properties = {name: "0" if name.endswith("Cols") else "id"}
    DeltaTable.create(sink.path, schema, partition_by=BY_WINDOW, configuration=properties)
    for count in (4, 3, 2):
        land(sink, hour(0), rows_of(0, count))
    land(sink, hour(1), rows_of(100, 2))
    assert held(sink) == {hour(0): [0, 1], hour(1): [100, 101]}


def test_rows_that_others_append_and_that_end_before_they_begin_are_of_no_window(sink):
    land(sink, hour(0), rows_of(0, 2))
    edges = {"window_start": [hour(5).start, hour(6).start], "window_end": [hour(3).start, hour(6).start]}
    write_deltalake(sink.path, pa.table({"id": [100, 101], **edges}), mode="append", schema_mode="merge")
    land(sink, hour(4), rows_of(10, 1))
    land(sink, hour(2, 10), rows_of(20, 1), replace_overlaps=True)
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 20, 100, 101]
    assert DeltaWriter.read_state(sink).windows == {hour(0), hour(2, 10)}


def made_again(sink, late, landings, mark=TERMS.mark):
    """Another table takes the place of the one that an attempt wrote files for; the files stay."""
    before = Path(sink.path).rename(f"{sink.path} before")
    for number in range(landings):
        land(sink, hour(50 + number), rows_of(0, 1), mark=mark)
    shutil.copytree(before / late.target.folder, Path(sink.path, late.target.folder), dirs_exist_ok=True)


@pytest.mark.parametrize("landings", [1, 3, 9])
def test_a_table_that_is_made_again_during_a_landing_gets_the_window(sink, landings):
    """The commit does not follow a version that the log no longer has."""
    for number in range(4):
        land(sink, hour(number), rows_of(number, 1))
    late = Attempt(sink, hour(5), rows_of(50, 2)).write()
    made_again(sink, late, landings)
    late.commit()
    assert held(sink) == {hour(5): [50, 51]} | {hour(50 + number): [0] for number in range(landings)}


@pytest.mark.parametrize("landings", [1, 9])
def test_a_table_that_is_made_again_for_another_during_a_landing_stays_the_others(sink, landings):
    for number in range(4):
        land(sink, hour(number), rows_of(number, 1))
    late = Attempt(sink, hour(5), rows_of(50, 2)).write()
    made_again(sink, late, landings, replace(TERMS.mark, id="b" * 32))
    with pytest.raises(TableOwnedByOther):
        late.commit()
    assert DeltaTable(sink.path).version() == landings


@pytest.mark.parametrize("change", ["checkpoint", "log is gone"])
def test_a_landing_goes_on_from_a_log_that_was_cleaned_meanwhile(sink, change):
    for number in range(4):
        land(sink, hour(number), rows_of(number, 1))
    late = Attempt(sink, hour(5), rows_of(50, 2)).write()
    land(sink, hour(0), rows_of(7, 1))
    DeltaTable(sink.path).create_checkpoint()
    if change == "log is gone":
        for entry in sorted(Path(sink.path, "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()
    late.commit()
    assert DeltaWriter.read_state(sink).windows == {hour(number) for number in (0, 1, 2, 3, 5)}
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3, 7, 50, 51]


def test_what_has_expired_of_the_log_goes_with_some_commits(sink, monkeypatch):
    """Not with each, for delta-rs lists the whole log then."""
    monkeypatch.setattr(table_version, "_LOGS_CLEANED_EVERY", 5)
    land(sink, hour(0), rows_of(0, 1))
    kept = {"delta.logRetentionDuration": "interval 0 seconds", "delta.checkpointInterval": "5"}
    DeltaTable(sink.path).alter.set_table_properties(kept, raise_if_not_exists=False)
    counts = []
    for number in range(1, 12):
        land(sink, hour(number), rows_of(number, 1))
        counts.append(len(list(Path(sink.path, "_delta_log").glob("*.json"))))
    drops = [later < earlier for earlier, later in pairwise(counts)]
    assert any(drops)
    assert drops.count(True) <= 3
    assert sorted(DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist()) == list(range(12))
