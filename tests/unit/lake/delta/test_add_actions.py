from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.lake.delta.add_actions import MOST_COLUMNS, file_stats, partition_value


def stats(columns, **types):
    table = pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2, store_schema=False)
    return json.loads(file_stats(pq.read_metadata(file), table.schema))


def test_bounds_and_nulls_are_those_of_all_row_groups():
    told = stats({"id": [3, 1, None, None, 2], "name": ["b", "a", "c", None, "d"]})
    assert told == {
        "numRecords": 5,
        "minValues": {"id": 1, "name": "a"},
        "maxValues": {"id": 3, "name": "d"},
        "nullCount": {"id": 2, "name": 1},
    }


def test_times_are_rounded_outwards_to_what_every_reader_takes():
    moments = [datetime(2026, 11, 20, 10, 0, 0, 1500, UTC), datetime(2026, 11, 20, 23, 59, 59, 999_001, UTC)]
    told = stats({"at": moments, "local": [one.replace(tzinfo=None) for one in moments], "day": [date(2026, 1, 2)] * 2})
    assert told["minValues"] == {
        "at": "2026-11-20T10:00:00.001Z",
        "local": "2026-11-20T10:00:00.001",
        "day": "2026-01-02",
    }
    assert told["maxValues"] == {
        "at": "2026-11-21T00:00:00.000Z",
        "local": "2026-11-21T00:00:00.000",
        "day": "2026-01-02",
    }


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1.0, float("nan")], pa.float64()),  # the footer passes over NaN, and it is the largest for Spark
        ([Decimal(1), Decimal(2)], pa.decimal128(16, 0)),
        ([Decimal("0.00001"), Decimal(2)], pa.decimal128(9, 5)),
        (["a", "b" * 64 + "\U0010ffff"], pa.string()),
        ([0, 2**62], pa.timestamp("us")),
    ],
    ids=ascii,
)
def test_if_a_reader_would_misread_one_bound_there_are_none(values, type_):
    assert stats({"id": [1, 2], "one": values}, one=type_) == {"numRecords": 2, "nullCount": {"id": 0, "one": 0}}


def test_no_reader_misses_bounds_of_bytes_and_of_no_value():
    told = stats({"id": [1, 2], "none": [None, None], "raw": [b"a", b"b"]}, none=pa.float64())
    assert told == {
        "numRecords": 2,
        "minValues": {"id": 1},
        "maxValues": {"id": 2},
        "nullCount": {"id": 0, "none": 2, "raw": 0},
    }


def test_yes_and_no_and_amounts_have_bounds():
    price = [Decimal("-1.25"), Decimal("9999999999999.99")]
    told = stats({"paid": [True, False], "price": price}, price=pa.decimal128(15, 2))
    assert told["minValues"] == {"paid": False, "price": -1.25}
    assert told["maxValues"] == {"paid": True, "price": 9999999999999.99}


def test_long_texts_are_cut_outwards():
    told = stats({"one": ["b" * 99, "c" * 99, "b" * 64 + "a"]})
    assert told["minValues"] == {"one": "b" * 64}
    assert told["maxValues"] == {"one": "c" * 64 + "\U0010ffff"}


def test_a_name_with_a_point_is_no_path():
    inner = pa.array([{"b": None, "c": [7]}], pa.struct({"b": pa.int64(), "c": pa.list_(pa.int64())}))
    map_ = pa.array([[("k", 9)]], pa.map_(pa.string(), pa.int64()))
    told = stats({"m": map_, "a.b": [0], "a": inner, "z": [None]}, z=pa.int64())
    assert told["nullCount"] == {"a.b": 0, "z": 1}
    told = stats({"m": map_, "l": [[{"b": 3}]], "l.list.element.b": [7], "z": [5]})
    assert told["minValues"] == told["maxValues"] == {"l.list.element.b": 7, "z": 5}


def test_of_lists_nothing_is_asked_and_of_structs_too_much():
    assert stats({"list": [[1]], "id": [1]})["minValues"] == {"id": 1}
    assert stats({"list": [[1]], "id": [1], "inner": [{"a": 1}]}) == {"numRecords": 1, "nullCount": {"id": 0}}


def test_a_table_of_many_columns_has_no_bounds():
    assert len(stats({f"c{n:02}": [n] for n in range(MOST_COLUMNS)})["minValues"]) == MOST_COLUMNS
    assert stats({f"c{n:02}": [n] for n in range(MOST_COLUMNS + 1)}) == {"numRecords": 1}


def test_a_column_that_a_file_lacks_is_null_in_its_rows():
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), file, store_schema=False)
    footer = pq.read_metadata(file)
    more = pa.schema({"price": pa.float64(), "id": pa.int64(), "tags": pa.list_(pa.string())})
    assert json.loads(file_stats(footer, more)) == {
        "numRecords": 2,
        "minValues": {"id": 1},
        "maxValues": {"id": 2},
        "nullCount": {"price": 2, "id": 0},
    }
    others = pa.schema({"ID": pa.int64()})
    assert json.loads(file_stats(footer, others)) == {"numRecords": 2}, "who knows which one it is"


def test_a_file_without_rows_has_no_bounds():
    assert stats({"id": []}, id=pa.int64()) == {"numRecords": 0}


def test_a_partition_says_that_it_is_in_utc():
    assert partition_value(datetime(2026, 11, 20, 10, tzinfo=UTC)) == "2026-11-20T10:00:00Z"
    assert partition_value(datetime(2026, 11, 20, 10, 0, 0, 250_000, UTC)) == "2026-11-20T10:00:00.250000Z"
