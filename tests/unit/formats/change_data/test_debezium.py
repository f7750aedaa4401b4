"""Debezium's messages become change rows: operations, kinds, keys, positions, and what is unlike the others."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_streams.errors import UnplannedColumns
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder
from airflow_provider_streams.formats.change_data.messages.schema_groups import SchemaGroups
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns
from tests.unit.formats.change_data.debezium_messages import (
    MYSQL,
    SOURCE,
    causes,
    change,
    decoded,
    field,
    key_of,
    messages_of,
    raw,
    schema_of,
    struct,
    with_schema,
)

COLUMNS = "id long, name string"


def row(change_row: dict[str, Any]) -> tuple[Any, Any]:
    return change_row["id"], change_row["name"]


def test_operations_keep_their_rows_and_their_metadata() -> None:
    found = decoded(
        [
            change("r", {"id": 1, "name": "a"}, source=SOURCE | {"snapshot": "last"}),
            change("c", {"id": 2, "name": "b"}),
            change("u", {"id": 2, "name": "c"}, {"id": 2, "name": "b"}),
            change("d", None, {"id": 2, "name": None}),
        ],
        COLUMNS,
    )
    rows = found.rows.to_pylist()
    assert causes(found) == [None] * 4
    assert [one["_op"] for one in rows] == ["r", "c", "u", "d"]
    assert [row(one) for one in rows] == [(1, "a"), (2, "b"), (2, "c"), (2, None)]
    assert [one["_before"] for one in rows] == [None, None, {"id": 2, "name": "b"}, {"id": 2, "name": None}]
    assert [one["_snapshot"] for one in rows] == ["last", None, None, None]
    first = rows[0]
    assert first["_source_ts"].isoformat() == "2025-11-11T22:26:40.123456+00:00"
    assert first["_ts"].isoformat() == "2025-11-11T22:26:40.500111+00:00"
    assert (first["_transaction_id"], first["_total_order"]) == ("745:26680200", 3)
    assert (first["_table"], first["_source_life"]) == ("public.orders", "postgresql/dbz/postgres/")
    assert [one["_position"] for one in rows] == sorted(one["_position"] for one in rows)
    assert first["_unavailable"] == []


def test_with_and_without_a_schema_the_rows_are_the_same() -> None:
    schema = schema_of([field("id", "int64"), field("name", "string")])
    plain = [change("c", {"id": n, "name": f"n{n}"}) for n in range(50)]
    with_one = [with_schema(one, schema) for one in plain]
    swapped = [{"payload": one["payload"], "schema": one["schema"]} for one in with_one]
    null = [with_schema(one, None) for one in plain]  # type: ignore[arg-type]
    spaced = [json.dumps(one, indent=1).encode() for one in with_one]
    expected = decoded(plain, COLUMNS).rows
    for messages in (with_one, swapped, null, spaced):
        found = decoded(messages, COLUMNS)
        assert causes(found) == [None] * 50
        assert found.rows.equals(expected)


def test_messages_of_several_schemas_stay_in_their_order() -> None:
    schema = schema_of([field("id", "int64"), field("name", "string")])
    messages = [
        change("c", {"id": n, "name": "x"}) if n % 3 else with_schema(change("c", {"id": n, "name": "x"}), schema)
        for n in range(40)
    ]
    found = decoded(messages, COLUMNS)
    assert [one["id"] for one in found.rows.to_pylist()] == list(range(40))
    assert found.messages.tolist() == list(range(40))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (None, "tombstone"),
        (b"", "tombstone"),
        ({"ts_ms": 1}, "heartbeat"),
        ({"ts_ms": 1, "ts_us": 1, "ts_ns": 1}, "heartbeat"),
        (with_schema({"ts_ms": 1}, struct([field("ts_ms", "int64")], "io.debezium.connector.common.Heartbeat")),
         "heartbeat"),
        ({"status": "BEGIN", "id": "7", "event_count": None, "data_collections": None, "ts_ms": 1}, "transaction"),
        ({"status": "END", "id": "7", "event_count": 2, "ts_ms": 1,
          "data_collections": [{"data_collection": "public.orders", "event_count": 2}]}, "transaction"),
        ({"source": MYSQL, "ts_ms": 1, "databaseName": "shop", "schemaName": None, "ddl": "CREATE TABLE ..",
          "tableChanges": [{"type": "CREATE", "id": "shop.orders", "table": None}]}, "schema_change"),
        ({"op": "m", "ts_ms": 1, "source": SOURCE, "message": {"prefix": "audit", "content": "AA=="}},
         "logical_message"),
        (change("t"), "truncate"),
    ],
)  # fmt: skip
def test_each_kind_of_message_is_known_among_changes(message: Any, kind: str) -> None:
    ordinary = change("c", {"id": 1, "name": "a"})
    found = decoded([ordinary, message, ordinary], COLUMNS)
    assert causes(found) == [None] * 3
    assert (found.count("change"), found.count(kind)) == (2, 1)
    made = found.rows.to_pylist()
    assert (made[1] is not None) == (kind == "truncate")
    if kind == "truncate":
        assert (row(made[1]), made[1]["_op"]) == ((None, None), "t")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"{", "JSON"),
        (b"[]", "is no object"),
        (b"{}", "no op"),
        ({"id": 1, "name": "a"}, "flattened"),
        ({"id": 1, "ts_ms": 1}, "no op"),
        (change("x", {"id": 1, "name": "a"}), "op that Debezium"),
        (change("c"), "no row"),
        (change("c", {"id": "1", "name": "a"}), "is no whole number"),
        (change("c", {"id": 1.5, "name": "a"}), "is no whole number"),
        (change("c", {"id": 1, "name": {}}), "is no text"),
        (raw(change("c", {"id": 1, "name": "a"}))[:-1] + b',"op":"d"}', "twice"),  # type: ignore[index]
        (raw(change("c", {"id": 2**63, "name": "a"})), "64 bits"),
    ],
)
def test_what_is_no_change_is_named_and_leaves_the_others_alone(message: Any, words: str) -> None:
    ordinary = [change("c", {"id": number, "name": "a"}) for number in range(5)]
    found = decoded([*ordinary, message, *ordinary], COLUMNS)
    assert [cause is None for cause in causes(found)] == [True] * 5 + [False] + [True] * 5
    assert words in str(causes(found)[5])
    assert found.rows.null_count == 1


def test_a_changed_key_is_a_delete_and_an_insert() -> None:
    before, after = {"id": 1, "name": None}, {"id": 9, "name": "a"}
    found = decoded(
        [change("d", None, before), b"", change("c", after)], COLUMNS, [key_of(id=1), key_of(id=1), key_of(id=9)],
        key=("id",),
    )  # fmt: skip
    rows = found.rows.to_pylist()
    assert [None if one is None else (one["_op"], one["id"]) for one in rows] == [("d", 1), None, ("c", 9)]
    assert rows[0]["_log_position"] == rows[2]["_log_position"]
    assert rows[0]["_position"] < rows[2]["_position"]


@pytest.mark.parametrize("key", [None, b""])
def test_a_change_without_its_key_is_undecodable(key: bytes | None) -> None:
    messages = [change("c", {"id": 1, "name": "a"}), change("c", {"id": 2, "name": "a"})]
    found = decoded(messages, COLUMNS, [key_of(id=1), key], key=("id",))
    assert causes(found) == [None, "its key is null"]


def test_a_key_whose_column_is_null_is_undecodable() -> None:
    found = decoded([change("c", {"id": None, "name": "a"})], COLUMNS, key=("id",))
    assert causes(found) == ["its key is null"]


def test_a_key_whose_type_changed_is_undecodable() -> None:
    schema = schema_of([field("id", "string"), field("name", "string")])
    found = decoded([with_schema(change("c", {"id": "1", "name": "a"}), schema)], COLUMNS, key=("id",))
    assert "the change has string, and the table's column is long" in str(causes(found)[0])


def test_a_table_without_a_key_has_the_literal_key_default() -> None:
    found = decoded([change("c", {"id": 1, "name": "a"})], COLUMNS, [b"default"])
    assert causes(found) == [None]


def test_pravega_has_no_keys() -> None:
    found = decoded([change("c", {"id": 1, "name": "a"})], COLUMNS, None, key=("id",))
    assert causes(found) == [None]


def test_a_new_column_stops_the_read_and_is_told_with_its_type() -> None:
    messages = [change("c", {"id": 1, "name": "a"}), change("c", {"id": 1, "name": "a", "age": 3, "tags": ["x"]})]
    with pytest.raises(UnplannedColumns) as error:
        decoded(messages, COLUMNS)
    assert parse_columns(error.value.columns) == parse_columns("age long, tags array<string>")


def test_an_earlier_change_may_lack_a_column() -> None:
    found = decoded([change("c", {"id": 1}), change("c", {"id": 2, "name": "a"})], COLUMNS)
    assert [row(one) for one in found.rows.to_pylist()] == [(1, None), (2, "a")]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("", "3.00", Decimal("3.00")),
        ("", "-1234", Decimal("-1234.00")),
        ("", "ASw=", Decimal("3.00")),
        ("", "+w==", Decimal("-0.05")),
        ("", 3.25, Decimal("3.25")),
        ("", 12, Decimal("12.00")),
        ("", "1234", None),
        ("digits", "1234", Decimal("1234.00")),
        ("base64", "1234", Decimal("-26588.24")),
        ("", {"scale": 1, "value": "Hg=="}, Decimal("3.00")),
        ("", "NaN", None),
        ("", "3.001", None),
        ("", "10000000000.00", None),
    ],
)
def test_a_decimal_without_a_schema_is_read_as_it_can_only_be_meant(text: Any, value: Any, expected: Any) -> None:
    found = decoded([change("c", {"id": 1, "v": value})], "id long, v decimal(12, 2)", decimal_text=text)
    made = found.rows[0].as_py()
    assert (None if made is None else made["v"]) == expected
    assert (causes(found)[0] is None) == (expected is not None)
    if value == "1234" and not text:
        assert "decimal.handling.mode" in str(causes(found)[0])


def test_numbers_and_texts_of_one_column_are_never_taken_for_each_other() -> None:
    values = [1.5, "1234", 2.5, "ASw=", "12.5"]
    found = decoded([change("c", {"id": 1, "v": one}) for one in values], "id long, v decimal(12, 2)")
    made = [None if one is None else one["v"] for one in found.rows.to_pylist()]
    assert made == [Decimal("1.50"), None, Decimal("2.50"), Decimal("3.00"), Decimal("12.50")]


def test_base64_of_an_undeclared_column_names_the_setting() -> None:
    found = decoded([change("c", {"id": 1, "name": "ASw="})], COLUMNS, inferred=("name",))
    assert "decimal.handling.mode" in str(causes(found)[0])


def test_a_declared_time_that_is_a_number_needs_its_unit() -> None:
    message = change("c", {"id": 1, "at": 1_762_900_000_000_000, "day": 20_395})
    found = decoded([message], "id long, at timestamp_ntz(us), day date")
    assert found.rows[0].as_py()["at"].isoformat() == "2025-11-11T22:26:40"
    assert found.rows[0].as_py()["day"].isoformat() == "2025-11-03"
    assert "timestamp_ntz(us)" in str(causes(decoded([message], "id long, at timestamp_ntz, day date"))[0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"lsn": 26_680_200}, f"{26_680_200:020d}"),
        ({"lsn": None}, None),
        ({"file": "mysql-bin.1000000", "pos": 4, "row": 2}, f"{1_000_000:020d}.{4:020d}.{2:020d}"),
        ({"file": "nothing", "pos": 4, "row": 2}, None),
        (
            {"commit_lsn": "00000025:00000D98:00a2", "change_lsn": "00000025:00000d98:0003", "event_serial_no": 2},
            f"00000025:00000d98:00a2.00000025:00000d98:0003.{2:020d}",
        ),
        (
            {"commit_lsn": "00000025:00000d98:00a2", "change_lsn": None, "event_serial_no": None},
            f"00000025:00000d98:00a2.00000000:00000000:0000.{0:020d}",
        ),
        (
            {"scn": "1098765", "rs_id": " 0x000124.00000abc.0010 ", "ssn": 3},
            f"{1_098_765:020d}.000124.00000abc.0010.{3:020d}",
        ),
        ({}, None),
    ],
)
def test_places_in_logs_compare_as_their_numbers_do(source: dict[str, Any], expected: str | None) -> None:
    bare = {"connector": "any", "name": "dbz", "table": "t", "db": "d", "snapshot": False}
    found = decoded([change("c", {"id": 1, "name": "a"}, source=bare | source)], COLUMNS)
    assert causes(found) == [None]
    assert found.rows[0].as_py()["_log_position"] == expected
    assert found.rows[0].as_py()["_snapshot"] is None


def test_binlog_files_compare_by_number() -> None:
    sources = [MYSQL | {"file": "bin.999999"}, MYSQL | {"file": "bin.1000000"}]
    found = decoded([change("c", {"id": 1, "name": "a"}, source=one) for one in sources], COLUMNS)
    first, second = (one["_log_position"] for one in found.rows.to_pylist())
    assert first < second
    assert found.rows[0].as_py()["_source_life"] == "mysql/dbz//223344"


@pytest.mark.parametrize("sources", [(MYSQL, SOURCE), (SOURCE, MYSQL)])
def test_changes_of_two_connectors_in_one_batch_are_read_as_if_alone(sources) -> None:
    """A router may lead the changes of several connectors into one topic."""
    messages = [change("c", {"id": 1, "name": "a"}, source=source) for source in sources]
    told = [
        {name: row[name] for name in ("_table", "_log_position", "_source_life")}
        for found in (decoded(messages, COLUMNS), *(decoded([one], COLUMNS) for one in messages))
        for row in found.rows.to_pylist()
    ]
    assert told[:2] == told[2:]
    assert {row["_source_life"] for row in told} == {"mysql/dbz//223344", "postgresql/dbz/postgres/"}
    assert {row["_table"] for row in told} == {"shop.orders", "public.orders"}
    assert None not in {row["_log_position"] for row in told}


def test_fields_that_differ_by_case_only_are_no_trouble_in_the_source() -> None:
    found = decoded([change("c", {"id": 1, "name": "a"}, source=SOURCE | {"LSN": "x"})], COLUMNS)
    assert causes(found) == [None]


def test_each_schema_is_kept_once() -> None:
    groups = SchemaGroups()
    schema = schema_of([field("id", "int64")])
    payloads = messages_of([with_schema(change("c", {"id": n}), schema) for n in range(30)]).value
    assert [len(one.rows) for one in groups.parts(payloads)] == [30]
    assert [len(one.rows) for one in groups.parts(payloads)] == [30]
    assert len(groups._known) == 1


def test_a_large_batch_is_decoded_in_pieces() -> None:
    messages = [change("c", {"id": number, "name": None if number % 7 else "x"}) for number in range(21_000)]
    messages[20_500] = {"op": "?"}
    found = ChangeDecoder(ChangeFormat(parse_columns(COLUMNS))).decode(messages_of(messages))
    assert found.rows.null_count == 1
    assert found.messages.tolist() == list(range(21_000))
    assert [one for one, cause in enumerate(causes(found)) if cause] == [20_500]
