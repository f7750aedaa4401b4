"""Messages of Maxwell and Canal, after the examples of their documentation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_streams.errors import UnplannedColumns
from tests.unit.formats.change_data.debezium_messages import causes, decoded

MAXWELL: dict[str, Any] = {
    "database": "test", "table": "e", "type": "insert", "ts": 1_477_053_217, "xid": 23_396, "commit": True,
    "position": "master.000006:800911", "server_id": 23_042, "thread_id": 108, "primary_key": [1],
    "primary_key_columns": ["id"],
    "data": {"id": 1, "m": 4.2341, "c": "2016-10-21 05:33:37.523000", "comment": "I am a creature of light."},
}  # fmt: skip
MAXWELL_COLUMNS = "id long, m decimal(8, 4), c timestamp_ntz, comment string"

CANAL: dict[str, Any] = {
    "data": [
        {"id": "111", "name": "scooter", "weight": "5.18", "at": "2020-06-18 10:11:12", "raw": "\x01\xff", "on": "1"},
        {"id": "112", "name": "car battery", "weight": "8.10", "at": None, "raw": None, "on": "0"},
    ],
    "database": "inventory", "es": 1_589_373_560_000, "id": 9, "isDdl": False, "gtid": "",
    "mysqlType": {"id": "INTEGER", "name": "VARCHAR(255)", "weight": "decimal(5,2)", "at": "datetime", "raw": "blob",
                  "on": "tinyint(1)"},
    "old": [{"weight": "5.15"}, {"name": "battery"}], "pkNames": ["id"], "sql": "",
    "sqlType": {"id": 4, "name": 12, "weight": 3, "at": 93, "raw": 2004, "on": -7}, "table": "products",
    "ts": 1_589_373_560_798, "type": "UPDATE",
}  # fmt: skip
CANAL_COLUMNS = "id int, name string, weight decimal(5, 2), at timestamp_ntz, raw binary, on boolean"


def test_maxwell_has_a_row_and_what_an_update_changed() -> None:
    update = MAXWELL | {"type": "update", "data": MAXWELL["data"] | {"m": 5.444}, "old": {"m": 4.2341}, "xoffset": 2}
    delete = MAXWELL | {"type": "delete"}
    found = decoded([MAXWELL, update, delete], MAXWELL_COLUMNS, envelope="maxwell", decimal_text="digits")
    rows = found.rows.to_pylist()
    assert causes(found) == [None] * 3
    assert [one["_op"] for one in rows] == ["c", "u", "d"]
    assert [one["m"] for one in rows] == [Decimal("4.2341"), Decimal("5.4440"), Decimal("4.2341")]
    assert rows[0]["c"].isoformat() == "2016-10-21T05:33:37.523000"
    assert rows[1]["_before"] == {"id": None, "m": Decimal("4.2341"), "c": None, "comment": None}
    assert rows[2]["_before"]["comment"] == "I am a creature of light."
    assert rows[1]["_log_position"] == f"{6:020d}.{800_911:020d}.{2:020d}"
    assert (rows[0]["_table"], rows[0]["_source_life"], rows[0]["_transaction_id"]) == (
        "test.e", "maxwell/23042", "23396",
    )  # fmt: skip


def test_maxwells_other_messages_are_counted() -> None:
    bootstrap = {"database": "test", "table": "e", "type": "bootstrap-start", "ts": 1, "data": {}}
    row = MAXWELL | {"type": "bootstrap-insert"}
    alter = {"type": "table-alter", "database": "test", "table": "e", "ts": 1, "old": {}, "def": {}, "sql": "ALTER"}
    found = decoded(
        [bootstrap, row, bootstrap | {"type": "bootstrap-complete"}, alter, {"type": "nothing"}, {"a": 1}],
        MAXWELL_COLUMNS, envelope="maxwell",
    )  # fmt: skip
    assert [found.count(kind) for kind in ("bootstrap", "schema_change", "change")] == [2, 1, 1]
    made = found.rows[1].as_py()
    assert (made["_op"], made["_snapshot"]) == ("r", "true")
    assert [cause is None for cause in causes(found)] == [True] * 4 + [False] * 2


def test_canal_has_several_rows_in_one_message() -> None:
    found = decoded([CANAL, CANAL | {"type": "DELETE", "old": None}], CANAL_COLUMNS, envelope="canal")
    rows = found.rows.to_pylist()
    assert causes(found) == [None, None]
    assert found.messages.tolist() == [0, 0, 1, 1]
    assert [(one["_op"], one["id"], one["weight"]) for one in rows] == [
        ("u", 111, Decimal("5.18")), ("u", 112, Decimal("8.10")),
        ("d", 111, Decimal("5.18")), ("d", 112, Decimal("8.10")),
    ]  # fmt: skip
    assert rows[0]["at"].isoformat() == "2020-06-18T10:11:12"
    assert (rows[0]["raw"], rows[0]["on"]) == (b"\x01\xff", True)
    assert [one["_before"]["weight"] for one in rows[:2]] == [Decimal("5.15"), None]
    assert [one["_before"]["name"] for one in rows[:2]] == [None, "battery"]
    positions = [one["_position"] for one in rows]
    assert positions == sorted(set(positions))
    assert rows[0]["_table"] == "inventory.products"


def test_canals_other_messages_are_counted_or_named() -> None:
    ddl = CANAL | dict.fromkeys(("data", "old", "mysqlType", "sqlType"))
    ddl |= {"isDdl": True, "type": "ALTER", "sql": "alter table .."}
    query = ddl | {"type": "QUERY"}
    wrong = CANAL | {"data": [{**CANAL["data"][0], "id": "x"}], "old": None}
    found = decoded([ddl, CANAL, query, wrong, CANAL | {"type": "?"}], CANAL_COLUMNS, envelope="canal")
    assert found.count("schema_change") == 2
    assert found.messages.tolist() == [0, 1, 1, 2, 3, 4]
    assert [cause is None for cause in causes(found)] == [True, True, True, False, False]
    assert "id: holds a text that is no value" in str(causes(found)[3])
    assert [one is None for one in found.rows.to_pylist()] == [True, False, False, True, True, True]


def test_a_new_column_of_canal_has_its_type() -> None:
    new = CANAL | {
        "data": [{**CANAL["data"][0], "size": "3"}], "mysqlType": CANAL["mysqlType"] | {"size": "bigint unsigned"},
    }  # fmt: skip
    with pytest.raises(UnplannedColumns, match=r"size decimal\(20,0\)"):
        decoded([CANAL, new], CANAL_COLUMNS, envelope="canal")


def test_a_new_column_of_maxwell_has_its_type() -> None:
    with pytest.raises(UnplannedColumns, match="size long"):
        decoded([MAXWELL, MAXWELL | {"data": MAXWELL["data"] | {"size": 3}}], MAXWELL_COLUMNS, envelope="maxwell")
