"""MongoDB's changes have documents in a text."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.formats.change_data.debezium_messages import causes, decoded, raw

SOURCE: dict[str, Any] = {
    "version": "2.7.3.Final", "connector": "mongodb", "name": "dbz", "ts_ms": 1_762_900_000_000, "snapshot": "false",
    "db": "shop", "sequence": None, "collection": "orders", "ord": 2, "lsid": None, "txnNumber": None, "wallTime": 1,
}  # fmt: skip
ID = '{"$oid": "5e3ee2ab1fcd3e0011a1b2c3"}'
DOCUMENT = '{"_id": {"$oid": "5e3ee2ab1fcd3e0011a1b2c3"}, "name": "a", "price": 3.10}'
UPDATE = {"removedFields": None, "updatedFields": '{"name": "a"}', "truncatedArrays": None}


def change(op: str, after: str | None, update: Any = None) -> dict[str, Any]:
    return {"before": None, "after": after, "updateDescription": update, "source": SOURCE, "op": op, "ts_ms": 1,
            "transaction": None}  # fmt: skip


KEY = raw({"id": ID})


def test_documents_are_rows_of_their_id_and_their_text() -> None:
    messages = [change("c", DOCUMENT), change("u", DOCUMENT, UPDATE), change("d", None), b""]
    found = decoded(messages, "_id string, document string", [KEY] * 4, key=("_id",))
    rows = found.rows.to_pylist()
    assert causes(found) == [None] * 4
    assert [one["_op"] for one in rows[:3]] == ["c", "u", "d"]
    assert [(one["_id"], one["document"]) for one in rows[:3]] == [(ID, DOCUMENT), (ID, DOCUMENT), (ID, None)]
    assert rows[0]["_log_position"] == f"{1_762_900_000_000:020d}.{2:020d}"
    assert rows[0]["_table"] == "shop.orders"
    assert rows[3] is None


def test_declared_columns_are_read_inside_of_documents() -> None:
    found = decoded([change("c", DOCUMENT)], "_id string, name string, price decimal(8, 2)", [KEY], key=("_id",))
    made = found.rows[0].as_py()
    assert causes(found) == [None]
    assert (made["_id"], made["name"], str(made["price"])) == (ID, "a", "3.10")


def test_a_document_of_other_types_is_undecodable() -> None:
    found = decoded([change("c", DOCUMENT)], "_id string, name long", [KEY], key=("_id",))
    assert "the document: name" in str(causes(found)[0])


def test_an_update_without_its_document_names_the_setting() -> None:
    messages = [change("c", DOCUMENT), change("u", None, UPDATE)]
    found = decoded(messages, "_id string, document string", [KEY] * 2, key=("_id",))
    assert causes(found)[0] is None
    assert "capture.mode=change_streams_update_full" in str(causes(found)[1])


def test_ids_may_be_numbers() -> None:
    key = raw({"id": json.dumps(1004)})
    found = decoded([change("c", DOCUMENT)], "_id long, document string", [key], key=("_id",))
    assert found.rows[0].as_py()["_id"] == 1004
