"""Each rule of the order on the shortest schedule that shows it."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.lake.changes.columns import UnusableChanges
from airflow_provider_streams.lake.changes.order import check_one_life
from airflow_provider_streams.lake.changes.sortable_text import sortable
from airflow_provider_streams.lake.changes.states.change_states import Rules, state_of
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import SourceOrder
from tests.unit.lake.changes.histories import Event
from tests.unit.lake.changes.tables import COMMITTED, EXACT, WRITTEN, applied, change_rows, visible

Texts = dict[int, Any]


def change(op: str, value: int | None, position: int, lsn: int, *, time: int = 0, key: int | None = 1) -> Event:
    return Event(op, key, {} if value is None else {"a": value}, position, lsn, time or lsn, 0)


def in_any_order(events: list[Event], rules: Rules) -> set[int | None]:
    """What column `a` of the one row holds (None: no row), with a window for each event, in all orders."""
    found: set[int | None] = set()
    for order in itertools.permutations(events):
        rows = visible(applied([change_rows([(0, event)]) for event in order], rules)).get(0, {})
        found.add(rows[1]["a"] if rows else None)
    return found


def test_an_insert_that_waited_for_a_delete_is_newer_though_it_was_written_first() -> None:
    delete, insert = change("d", None, 0, lsn=20, time=5), change("c", 7, 1, lsn=10, time=6)
    assert in_any_order([delete, insert], WRITTEN) == {7}


def test_a_copy_of_an_insert_is_older_than_the_delete_whose_window_is_there() -> None:
    delete, copy = change("d", None, 1, lsn=20, time=6), change("c", 7, 2, lsn=10, time=5)
    assert in_any_order([delete, copy], WRITTEN) == {None}


def test_a_change_that_was_open_during_a_snapshot_is_newer_than_its_row() -> None:
    row, update = change("r", 1, 0, lsn=30, time=9), change("u", 2, 1, lsn=20, time=8)
    assert in_any_order([row, update], WRITTEN) == {2}


def test_a_second_snapshot_is_newer_than_all_before_it() -> None:
    events = [change("r", 1, 0, lsn=10), change("u", 2, 1, lsn=20), change("r", 3, 2, lsn=15)]
    assert in_any_order(events, WRITTEN) == {3}


def test_a_copy_after_a_snapshot_is_older_than_its_row_once_the_original_is_known() -> None:
    original, row, copy = change("u", 1, 0, lsn=10), change("r", 2, 1, lsn=30), change("u", 1, 2, lsn=10)
    assert in_any_order([original, row, copy], WRITTEN) == {2}
    assert in_any_order([original, row, copy, copy], WRITTEN) == {2}


def test_so_is_a_copy_of_a_delete() -> None:
    original, row, copy = change("d", None, 0, lsn=10), change("r", 2, 1, lsn=30), change("d", None, 2, lsn=10)
    assert in_any_order([original, row, copy], WRITTEN) == {2}


def test_a_copy_of_what_is_older_than_changes_before_a_snapshot_is_older_than_its_row() -> None:
    newer, row, copy = change("u", 1, 0, lsn=20), change("r", 2, 1, lsn=30), change("u", 9, 2, lsn=10)
    assert in_any_order([newer, row, copy], WRITTEN) == {2}


def test_rows_of_exact_snapshots_are_older_than_later_coordinates_wherever_they_are() -> None:
    update, row = change("u", 2, 0, lsn=20), change("r", 1, 1, lsn=10)
    assert in_any_order([update, row], EXACT) == {2}
    assert in_any_order([update, row], COMMITTED) == {1}


def test_a_truncate_removes_what_is_older_by_coordinates_and_nothing_else() -> None:
    truncate = change("t", None, 50, lsn=20, key=None)
    assert in_any_order([truncate, change("c", 1, 60, lsn=10)], WRITTEN) == {None}
    assert in_any_order([truncate, change("c", 1, 40, lsn=30)], WRITTEN) == {1}
    assert in_any_order([truncate, change("r", 1, 60, lsn=10)], WRITTEN) == {None}
    assert in_any_order([truncate, change("r", 1, 40, lsn=30)], WRITTEN) == {1}


def test_binlog_coordinates_count_whatever_the_times() -> None:
    insert, delete = change("c", 1, 0, lsn=10, time=9), change("d", None, 1, lsn=20, time=8)
    assert in_any_order([insert, delete], COMMITTED) == {None}


def test_without_coordinates_the_place_in_the_stream_counts() -> None:
    rules = Rules(AutoCdc(), ("h", "id"))
    assert in_any_order([change("u", 1, 1, lsn=20), change("d", None, 2, lsn=10)], rules) == {None}


def test_open_columns_are_filled_by_older_changes_but_not_from_before_a_delete() -> None:
    first = Event("c", 1, {"a": 1, "b": 1}, 0, 10, 1, 0)
    second = Event("u", 1, {"b": 2}, 1, 20, 2, 1, ("a",))
    assert in_any_order([first, second], WRITTEN) == {1}
    delete, again = change("d", None, 2, 30, time=3), Event("u", 1, {"b": 3}, 3, 40, 4, 3, ("a",))
    for order in itertools.permutations([first, second, delete, again]):
        rows = visible(applied([change_rows([(0, event)]) for event in order], WRITTEN))[0]
        assert rows == {1: {"a": None, "b": 3, "c": None}}


def plain(rows: list[dict[str, Any]], cdc: AutoCdc, schema: pa.Schema | None = None) -> list[dict[str, Any]]:
    """Rows without a change format, in windows of one row, in every order: always the same result."""
    given_rows = [{**row, "_position": f"{place:04}"} for place, row in enumerate(rows)]
    tables = [pa.Table.from_pylist([row], schema or pa.Table.from_pylist(given_rows).schema) for row in given_rows]
    from tests.unit.lake.changes.plain_windows import apply_all

    found = [apply_all(list(order), Rules(cdc, cdc.keys)) for order in itertools.permutations(tables)]
    assert all(one == found[0] for one in found)
    return found[0]


def test_sequence_by_decides_and_the_stream_breaks_ties() -> None:
    cdc = AutoCdc(keys=["id"], sequence_by="version")
    rows = [{"id": 1, "version": 3, "a": 1}, {"id": 1, "version": 2, "a": 2}, {"id": 1, "version": 3, "a": 3}]
    assert plain(rows, cdc) == [{"id": 1, "version": 3, "a": 3}]


def test_nulls_keep_earlier_values_if_they_are_to_be_ignored() -> None:
    rows = [{"id": 1, "a": 1, "b": None}, {"id": 1, "a": None, "b": 2}]
    assert plain(rows, AutoCdc(keys=["id"], ignore_null_updates=True)) == [{"id": 1, "a": 1, "b": 2}]
    assert plain(rows, AutoCdc(keys=["id"])) == [{"id": 1, "a": None, "b": 2}]


def test_conditions_delete_and_truncate() -> None:
    cdc = AutoCdc(keys=["id"], apply_as_deletes="op = 'D'", apply_as_truncates="op = 'T'", except_column_list=["op"])
    rows: list[dict[str, Any]] = [
        {"id": 1, "op": "I", "a": 1},
        {"id": 2, "op": "I", "a": 2},
        {"id": 1, "op": "D", "a": None},
    ]
    assert plain(rows, cdc) == [{"id": 2, "a": 2}]
    assert plain([*rows, {"id": None, "op": "T", "a": None}], cdc) == []


def test_changes_without_a_place_or_a_key_are_refused() -> None:
    good = change_rows([(0, change("u", 1, 0, 10))])
    for name in ("_position", "_log_position", "_source_ts", "id"):
        at = good.column_names.index(name)
        with pytest.raises(UnusableChanges, match=name):
            state_of(good.set_column(at, good.field(name), pa.nulls(1, good.field(name).type)), WRITTEN)
        with pytest.raises(Exception, match=name):
            state_of(good.drop_columns([name]), WRITTEN)
    with pytest.raises(UnusableChanges, match="operation 'm'"):
        state_of(change_rows([(0, change("m", 1, 0, 10))]), WRITTEN)
    with pytest.raises(UnusableChanges, match="not compared for equality"):
        state_of(pa.table({"id": [1.0], "_position": ["0"]}), Rules(AutoCdc(), ("id",)))


def test_another_life_of_the_source_is_refused_and_named() -> None:
    rows = pa.table({"_source_life": ["one", "one", None]})
    assert check_one_life([rows], None) == "one"
    assert check_one_life([rows], "one") == "one"
    assert check_one_life([pa.table({"id": [1]})], "one") == "one"
    with pytest.raises(UnusableChanges, match="'one', 'two'"):
        check_one_life([rows], "two")
    for lives in ([["one", "two"]], [["one"], ["two"]]):
        with pytest.raises(UnusableChanges, match="several lives"):
            check_one_life([pa.table({"_source_life": one}) for one in lives], None)


_MOMENTS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
_SORTS: list[tuple[Any, Any]] = [
    (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    (st.integers(0, 2**64 - 1), pa.uint64()),
    (st.floats(allow_nan=False), pa.float64()),
    (_MOMENTS, pa.timestamp("us", "UTC")),
    (st.dates(), pa.date32()),
    (st.decimals(-(10**10), 10**10, places=4).map(Decimal), pa.decimal128(20, 4)),
    (st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"])), pa.string()),
    (st.binary(), pa.binary()),
    (st.booleans(), pa.bool_()),
]


@given(st.data(), st.sampled_from(_SORTS))
def test_texts_of_sequences_compare_like_their_values(data: st.DataObject, kind: tuple[Any, Any]) -> None:
    values, type_ = kind
    pair = data.draw(st.lists(values, min_size=2, max_size=2))
    texts = sortable("n", pa.chunked_array([pa.array(pair, type_)])).to_pylist()
    by_value = pair[0].encode() < pair[1].encode() if type_ == pa.string() else pair[0] < pair[1]
    assert (texts[0].encode() < texts[1].encode()) == by_value
    assert (texts[0] == texts[1]) == (pair[0] == pair[1])


def test_a_wider_type_gives_the_same_texts() -> None:
    pairs = [(pa.int8(), pa.int64()), (pa.int16(), pa.uint64()), (pa.decimal128(25, 2), pa.decimal128(30, 6)),
             (pa.float32(), pa.float64()), (pa.timestamp("ms"), pa.timestamp("ns"))]  # fmt: skip
    for narrow, wide in pairs:
        value = pa.array([7], pa.int64()).cast(narrow)
        assert sortable("n", pa.chunked_array([value])) == sortable("n", pa.chunked_array([value.cast(wide)]))


@pytest.mark.parametrize(
    "column",
    [pa.array([1, None]), pa.array([float("nan")]), pa.array(["a\tb"]), pa.array([[1]]), pa.array([{"a": 1}])],
)
def test_what_has_no_order_is_refused(column: pa.Array[Any]) -> None:
    with pytest.raises(UnusableChanges, match="'n'"):
        sortable("n", pa.chunked_array([column]))


def test_orders_of_sources_survive_json() -> None:
    assert SourceOrder.from_json(SourceOrder("committed", exact_snapshots=True).to_json()) == SourceOrder(
        "committed", True
    )


def test_a_snapshot_of_mysql_is_of_the_life_whose_server_live_changes_name() -> None:
    snapshot, live, other = (f"mysql/dbz//{server}" for server in ("", "223344", "9"))

    def rows(*lives: str) -> list[pa.Table]:
        return [pa.table({"_source_life": list(lives)})]

    for together in ((snapshot, live), (live, snapshot)):
        assert check_one_life(rows(*together), None) == live
    assert check_one_life(rows(snapshot), live) == check_one_life(rows(live), snapshot) == live
    assert check_one_life(rows(snapshot), None) == snapshot
    with pytest.raises(UnusableChanges, match="several lives"):
        check_one_life(rows(snapshot, live, other), None)
