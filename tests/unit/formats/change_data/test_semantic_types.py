"""Debezium's semantic types, as Kafka Connect's JSON converter writes them, become columns without loss."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import UnplannedColumns
from tests.seeds import examples
from tests.unit.formats.change_data.debezium_messages import (
    causes,
    change,
    decimal_field,
    decoded,
    field,
    schema_of,
    struct,
    with_schema,
)

PREFIX = "io.debezium."
WALL = datetime(1970, 1, 1)  # noqa: DTZ001 - of no zone
CONNECT = "org.apache.kafka.connect.data."


def unscaled(number: int) -> str:
    """A number as Connect writes it in JSON: the shortest two's complement, as base64."""
    width = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(width, "big", signed=True)).decode()


def one(schema: dict[str, Any], value: Any, column: str) -> tuple[Any, str | None]:
    """The value of one column, and why it has none."""
    row = [field("id", "int64"), {**schema, "field": "v"}]
    found = decoded(
        [with_schema(change("c", {"id": 1, "v": value}), schema_of(row))], f"id long, v {column}", declared=("v",)
    )
    assert len(found.rows) == 1
    made = found.rows[0].as_py()
    return (None if made is None else made["v"]), causes(found)[0]


@pytest.mark.parametrize(
    ("schema", "value", "column", "expected"),
    [
        (field("v", "int32", PREFIX + "time.Date"), 20_395, "date", date(2025, 11, 3)),
        (field("v", "int32", CONNECT + "Date"), -1, "date", date(1969, 12, 31)),
        (field("v", "int32", PREFIX + "time.Time"), 1, "time", time(0, 0, 0, 1000)),
        (field("v", "int64", PREFIX + "time.MicroTime"), 86_399_999_999, "time", time(23, 59, 59, 999_999)),
        (field("v", "int64", PREFIX + "time.NanoTime"), 1_000, "time", time(0, 0, 0, 1)),
        (field("v", "int64", PREFIX + "time.Timestamp"), 1, "timestamp_ntz", WALL + timedelta(microseconds=1000)),
        (field("v", "int64", CONNECT + "Timestamp"), -1, "timestamp_ntz", WALL - timedelta(milliseconds=1)),
        (field("v", "int64", PREFIX + "time.MicroTimestamp"), 1, "timestamp_ntz", WALL + timedelta(microseconds=1)),
        (field("v", "int64", PREFIX + "time.NanoTimestamp"), 5_000, "timestamp_ntz", WALL + timedelta(microseconds=5)),
        (field("v", "int64", PREFIX + "time.NanoTimestamp"), 5_001, "long", 5_001),
        (
            field("v", "string", PREFIX + "time.ZonedTimestamp"), "2026-11-03T10:11:12.123456Z", "timestamp",
            datetime(2026, 11, 3, 10, 11, 12, 123_456, tzinfo=UTC),
        ),
        (
            field("v", "string", PREFIX + "time.ZonedTimestamp"), "2026-11-03T10:11:12+02:00", "timestamp",
            datetime(2026, 11, 3, 8, 11, 12, tzinfo=UTC),
        ),
        (field("v", "string", PREFIX + "time.IsoDate"), "2026-11-03Z", "date", date(2026, 11, 3)),
        (field("v", "string", PREFIX + "time.IsoTime"), "10:11:12.5Z", "time", time(10, 11, 12, 500_000)),
        (
            field("v", "string", PREFIX + "time.IsoTimestamp"), "2026-11-03T10:11:12.000000100Z", "timestamp_ntz", None,
        ),
        (field("v", "string", PREFIX + "data.Json"), '{"a": 1.10}', "string", '{"a": 1.10}'),
        (field("v", "string", PREFIX + "data.Uuid"), "6f1f4c5e-7b0f-4b3a-9d53-000000000001", "string", ...),
        (field("v", "string", PREFIX + "data.Enum", parameters={"allowed": "a,b"}), "b", "string", "b"),
        (field("v", "string", PREFIX + "time.ZonedTime"), "10:11:12+02:00", "string", "10:11:12+02:00"),
        (field("v", "bytes", PREFIX + "data.Bits", parameters={"length": "9"}), "AQE=", "binary", b"\x01\x01"),
        (field("v", "bytes"), "", "binary", b""),
        (field("v", "int16"), -32_768, "short", -32_768),
        (field("v", "float"), 1.5, "float", 1.5),
        (field("v", "double"), 0.1, "double", 0.1),
        (field("v", "boolean"), True, "boolean", True),
        (field("v", "int64", PREFIX + "time.MicroDuration"), 7, "long", 7),
        (field("v", "array", items={"type": "int32", "optional": True}), [1, None], "array<int>", [1, None]),
        (
            field("v", "map", keys={"type": "string"}, values={"type": "string", "optional": True}),
            {"a": "b", "c": None}, "map<string, string>", [("a", "b"), ("c", None)],
        ),
        (
            struct(
                [field("scale", "int32"), field("value", "bytes")], PREFIX + "data.VariableScaleDecimal"
            ),
            {"scale": 3, "value": unscaled(-1_200)}, "string", "-1.200",
        ),
        (
            struct([field("wkb", "bytes"), field("srid", "int32")], PREFIX + "data.geometry.Geometry"),
            {"wkb": "AQEAAAA=", "srid": 4326}, "binary", b"\x01\x01\0\0\0",
        ),
        (
            struct(
                [field("x", "double"), field("y", "double"), field("wkb", "bytes"), field("srid", "int32")],
                PREFIX + "data.geometry.Point",
            ),
            {"x": 1.0, "y": 2.0, "wkb": "AQ==", "srid": None}, "binary", b"\x01",
        ),
        (decimal_field("v", 2, 12), unscaled(300), "decimal(12, 2)", Decimal("3.00")),
        (decimal_field("v", 0), unscaled(-(10**38) + 1), "decimal(38, 0)", Decimal(-(10**38) + 1)),
        (decimal_field("v", -2), unscaled(12), "decimal(38, 0)", Decimal(1200)),
        (decimal_field("v", 40), unscaled(7), "string", "0." + "0" * 39 + "7"),
        (decimal_field("v", 2, 12), unscaled(300), "decimal(14, 4)", Decimal("3.0000")),
    ],
)  # fmt: skip
def test_a_value_of_each_type_becomes_its_column(schema: Any, value: Any, column: str, expected: Any) -> None:
    found, cause = one(schema, value, column)
    if expected is None:
        assert found is None
        assert cause is not None
        return
    assert cause is None
    assert found == (value if expected is ... else expected)


@pytest.mark.parametrize(
    ("schema", "value", "column", "words"),
    [
        (field("v", "int64", PREFIX + "time.MicroTimestamp"), 9_223_372_036_825_200_000, "timestamp_ntz", "1 to 9999"),
        (field("v", "int64", PREFIX + "time.MicroTimestamp"), -9_223_372_036_832_400_000, "timestamp_ntz", "1 to 9999"),
        (field("v", "int32", PREFIX + "time.Date"), 2_147_483_647, "date", "1 to 9999"),
        (field("v", "int64", PREFIX + "time.MicroTime"), 86_400_000_000, "time", "time of one day"),
        (field("v", "int64", PREFIX + "time.MicroTime"), -1, "time", "time of one day"),
        (field("v", "int64", PREFIX + "time.NanoTime"), 1, "time", "finer than microseconds"),
        (field("v", "int64", PREFIX + "time.NanoTimestamp"), 5_001, "timestamp_ntz", "time.precision.mode"),
        (field("v", "string", PREFIX + "time.ZonedTimestamp"), "infinity", "timestamp", "no time"),
        (field("v", "string", PREFIX + "time.ZonedTimestamp"), "+10000-01-01T00:00:00Z", "timestamp", "no time"),
        (field("v", "string", PREFIX + "time.ZonedTimestamp"), "0000-01-01T00:00:00Z", "timestamp", "no time"),
        (field("v", "string", PREFIX + "time.IsoTime"), "24:00:00Z", "time", "no time"),
        (decimal_field("v", 0), unscaled(10**38), "decimal(38, 0)", "does not fit"),
        (decimal_field("v", 2, 12), "AS", "decimal(12, 2)", "not base64"),
        (decimal_field("v", 2, 12), "", "decimal(12, 2)", "does not fit"),
        (decimal_field("v", 4, 12), unscaled(12_345), "decimal(12, 2)", "the table's column is decimal(12,2)"),
        (field("v", "int64"), 2**31, "int", "the table's column is int"),
        (field("v", "string"), "x", "long", "the table's column is long"),
        (field("v", "array", items=decimal_field("", 0)), [unscaled(1), "?"], "array<decimal(38, 0)>", "not base64"),
    ],
)
def test_what_no_column_holds_is_undecodable(schema: Any, value: Any, column: str, words: str) -> None:
    found, cause = one(schema, value, column)
    assert found is None
    assert cause is not None
    assert cause.startswith("v: ")
    assert words in cause


def test_a_scale_that_changes_midway_is_never_read_by_the_first_one() -> None:
    def message(scale: int) -> dict[str, Any]:
        row = [field("id", "int64"), decimal_field("v", scale, 12)]
        return with_schema(change("u", {"id": scale, "v": unscaled(12_300)}), schema_of(row))

    messages = [message(2), message(4), message(2)]
    with pytest.raises(UnplannedColumns, match=r"v decimal\(12,4\)"):
        decoded(messages, "id long, v decimal(12, 2)")
    found = decoded(messages, "id long, v decimal(12, 2)", declared=("v",))
    assert causes(found) == [None, None, None]
    assert [row["v"] for row in found.rows.to_pylist()] == [Decimal("123.00"), Decimal("1.23"), Decimal("123.00")]


def test_a_column_that_the_plan_lacks_stops_the_read_and_is_told() -> None:
    row = [field("id", "int64"), decimal_field("price", 2, 10)]
    message = with_schema(change("c", {"id": 1, "price": unscaled(1)}), schema_of(row))
    with pytest.raises(UnplannedColumns, match=r"price decimal\(10,2\)"):
        decoded([message], "id long")


def test_an_earlier_change_lacks_the_new_column() -> None:
    before, after = [field("id", "int64")], [field("id", "int64"), field("v", "string")]
    messages = [
        with_schema(change("c", {"id": 1}), schema_of(before)),
        with_schema(change("c", {"id": 2, "v": "x"}), schema_of(after)),
    ]
    assert [row["v"] for row in decoded(messages, "id long, v string").rows.to_pylist()] == [None, "x"]


@settings(max_examples=examples(25))
@given(st.lists(st.one_of(st.none(), st.integers(-(10**20), 10**20)), min_size=1, max_size=30), st.integers(0, 6))
def test_decimals_are_what_java_wrote(numbers: list[int | None], scale: int) -> None:
    schema = schema_of([field("id", "int64"), decimal_field("v", scale)])
    messages = [
        with_schema(change("c", {"id": row, "v": None if number is None else unscaled(number)}), schema)
        for row, number in enumerate(numbers)
    ]
    found = decoded(messages, f"id long, v decimal(38, {scale})")
    assert causes(found) == [None] * len(numbers)
    expected = [None if number is None else Decimal(number).scaleb(-scale) for number in numbers]
    assert [row["v"] for row in found.rows.to_pylist()] == expected


@settings(max_examples=examples(25))
@given(
    st.lists(
        st.one_of(st.binary(max_size=40).map(lambda raw: base64.b64encode(raw).decode()), st.text(max_size=9)),
        min_size=1,
        max_size=20,
    )
)
def test_base64_is_decoded_as_python_does(texts: list[str]) -> None:
    schema = schema_of([field("id", "int64"), field("v", "bytes")])
    found = decoded([with_schema(change("c", {"id": 1, "v": one}), schema) for one in texts], "id long, v binary")
    for text, row, cause in zip(texts, found.rows.to_pylist(), causes(found), strict=True):
        try:
            expected: bytes | None = base64.b64decode(text, validate=True)
        except ValueError:
            expected = None
        assert (None if row is None else row["v"]) == expected, json.dumps(text)
        assert (cause is None) == (expected is not None)
