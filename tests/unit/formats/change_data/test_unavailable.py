"""Values that the database did not log: each shape of the placeholder is found, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from tests.unit.formats.change_data.debezium_messages import causes, change, decoded, field, schema_of, with_schema

TEXT = "__debezium_unavailable_value"
IN_BASE64 = base64.b64encode(TEXT.encode()).decode()


def made_uuid(text: str) -> str:
    """Java's `UUID.nameUUIDFromBytes`, written down again: MD5 with the version and variant of RFC 4122."""
    digest = bytearray(hashlib.md5(text.encode(), usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    raw = digest.hex()
    return f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"


INT32 = {"type": "int32", "optional": True}
STRING = {"type": "string", "optional": True}
UUIDS = {"type": "string", "optional": True, "name": "io.debezium.data.Uuid", "version": 1}


@pytest.mark.parametrize(
    ("schema", "column", "placeholder", "alike"),
    [
        (field("v", "string"), "string", TEXT, TEXT + "s"),
        (field("v", "string", "io.debezium.data.Json"), "string", TEXT, json.dumps({"a": TEXT})),
        (field("v", "string", "io.debezium.data.Json"), "string", f'{{"{TEXT}":"{TEXT}"}}', "{}"),
        (field("v", "bytes"), "binary", IN_BASE64, "AA=="),
        (field("v", "array", items=INT32), "array<int>", list(TEXT.encode()), list(TEXT.encode())[::-1]),
        (field("v", "array", items=INT32), "array<int>", list(TEXT.encode()), [*TEXT.encode(), 1]),
        (field("v", "array", items=INT32 | {"type": "int64"}), "array<long>", list(TEXT.encode()), [95]),
        (field("v", "array", items=STRING), "array<string>", [TEXT], [TEXT, TEXT]),
        (field("v", "array", items=UUIDS), "array<string>", [made_uuid(TEXT)], []),
        (field("v", "array", items={"type": "bytes", "optional": True}), "array<binary>", [IN_BASE64], [None]),
        (
            field("v", "map", keys={"type": "string"}, values=STRING), "map<string, string>", {TEXT: TEXT},
            {"a": TEXT},
        ),
    ],
)  # fmt: skip
def test_each_shape_is_found_and_its_neighbours_are_values(
    schema: Any, column: str, placeholder: Any, alike: Any
) -> None:
    envelope = schema_of([field("id", "int64"), schema])
    messages = [
        with_schema(change("u", {"id": row, "v": value}), envelope)
        for row, value in enumerate([alike, placeholder, None, placeholder])
    ]
    found = decoded(messages, f"id long, v {column}")
    assert causes(found) == [None] * 4
    rows = found.rows.to_pylist()
    assert [one["_unavailable"] for one in rows] == [[], ["v"], [], ["v"]]
    assert rows[0]["v"] is not None
    assert [one["v"] for one in rows[1:]] == [None, None, None]


def test_several_columns_are_named_in_each_row() -> None:
    values = [(TEXT, "x"), (TEXT, TEXT), ("x", TEXT), ("x", "x")]
    found = decoded(
        [change("u", {"id": 1, "a": one, "b": other}) for one, other in values], "id long, a string, b string"
    )
    assert [one["_unavailable"] for one in found.rows.to_pylist()] == [["a"], ["a", "b"], ["b"], []]


def test_a_configured_placeholder_takes_the_place_of_the_usual_one() -> None:
    messages = [change("u", {"id": 1, "a": one}) for one in ("?é?", TEXT)]
    rows = decoded(messages, "id long, a string", placeholder="?é?").rows.to_pylist()
    assert [(one["a"], one["_unavailable"]) for one in rows] == [(None, ["a"]), (TEXT, [])]


def test_a_row_before_the_change_has_null_there() -> None:
    found = decoded([change("u", {"id": 1, "a": "x"}, {"id": 1, "a": TEXT})], "id long, a string")
    made = found.rows[0].as_py()
    assert (made["a"], made["_before"], made["_unavailable"]) == ("x", {"id": 1, "a": None}, [])
