"""Rows that `ExtractNewRecordState` left alone."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_streams.errors import UnplannedColumns
from tests.unit.formats.change_data.debezium_messages import causes, decoded, field, key_of, raw, struct, with_schema

COLUMNS = "id long, name string"


def flat(values: list[Any], keys: list[bytes | None] | None = None, columns: str = COLUMNS) -> Any:
    return decoded(values, columns, keys, key=("id",), envelope="flat")


def test_rows_have_what_their_metadata_fields_say() -> None:
    message = {
        "id": 1, "name": "a", "__op": "c", "__deleted": "false", "__table": "orders", "__schema": "public",
        "__lsn": 77, "__source_ts_ms": 1_762_900_000_123, "__connector": "postgresql", "__name": "dbz",
        "__db": "postgres", "__transaction_id": "9", "__transaction_total_order": 4, "__source_snapshot": "true",
    }  # fmt: skip
    found = flat([message])
    made = found.rows[0].as_py()
    assert causes(found) == [None]
    assert (made["id"], made["name"], made["_op"], made["_table"]) == (1, "a", "c", "public.orders")
    assert (made["_log_position"], made["_source_life"]) == (f"{77:020d}", "postgresql/dbz/postgres/")
    assert (made["_transaction_id"], made["_total_order"], made["_snapshot"]) == ("9", 4, "true")
    assert made["_source_ts"].isoformat() == "2025-11-11T22:26:40.123000+00:00"


def test_a_row_without_an_operation_is_there_from_then_on() -> None:
    assert flat([{"id": 1, "name": "a"}]).rows[0].as_py()["_op"] == "u"


@pytest.mark.parametrize("deleted", ["true", True])
def test_a_row_that_is_marked_as_deleted_is_a_delete(deleted: Any) -> None:
    made = flat([{"id": 1, "name": None, "__deleted": deleted}]).rows[0].as_py()
    assert (made["_op"], made["id"], made["_before"]) == ("d", 1, {"id": 1, "name": None})


def test_a_tombstone_is_a_delete_of_its_key() -> None:
    keys = [key_of(id=1), key_of(id=1), raw({"id": 5}), b"default", None]
    found = flat([{"id": 1, "name": "a"}, b"", None, b"", b""], keys)
    rows = found.rows.to_pylist()
    assert [None if one is None else (one["_op"], one["id"], one["name"]) for one in rows] == [
        ("u", 1, "a"), ("d", 1, None), ("d", 5, None), None, None,
    ]  # fmt: skip
    assert causes(found)[:3] == [None] * 3
    assert all("does not say which row" in str(cause) for cause in causes(found)[3:])
    assert found.count("tombstone") == 2


def test_a_key_may_have_more_fields_than_the_row() -> None:
    key = raw({"id": 3, "__dbz__physicalTableIdentifier": "shop.public.orders"})
    assert flat([b""], [key]).rows[0].as_py()["id"] == 3


def test_a_schema_tells_the_row_and_its_metadata_apart() -> None:
    fields = [field("id", "int64"), field("name", "string"), field("__deleted", "string"), field("__lsn", "int64")]
    message = with_schema({"id": 1, "name": "a", "__deleted": "true", "__lsn": 5}, struct(fields, "dbz.orders.Value"))
    made = flat([message]).rows[0].as_py()
    assert (made["_op"], made["_log_position"]) == ("d", f"{5:020d}")


def test_a_column_of_two_underscores_is_the_rows() -> None:
    with pytest.raises(UnplannedColumns, match="__mine string"):
        flat([{"id": 1, "name": "a"}, {"id": 1, "name": "a", "__mine": "x"}])


def test_a_new_column_stops_the_read() -> None:
    with pytest.raises(UnplannedColumns, match="age long"):
        flat([{"id": 1, "name": "a", "__op": "c"}, {"id": 1, "name": "a", "age": 7, "__op": "c"}])
