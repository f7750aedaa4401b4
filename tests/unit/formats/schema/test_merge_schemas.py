"""Payloads of several record types: one of them, or all as one row type."""

from __future__ import annotations

import io
import json
import struct

import fastavro
import pyarrow as pa
import pytest

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema
from airflow_provider_streams.formats.decode_failures import OTHER_TYPE
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto
from airflow_provider_streams.model.schema.record_types import RecordName, read_types
from airflow_provider_streams.systems.schemas import record_name

ID = {"name": "id", "type": "long"}


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "record", "name": "t.X", "fields": []}, RecordName("t.X")),
        (["null", {"type": "record", "name": "X", "fields": []}], RecordName("X")),
        ("string", RecordName("string", is_record=False)),
        ({"type": "array", "items": "int"}, RecordName("array", is_record=False)),
        ({"type": "object"}, RecordName()),
    ],
)
def test_what_a_schema_calls_its_values(schema, name):
    assert record_name(json.dumps(schema)) == name


def record(name, *fields, **rest):
    return {"type": "record", "name": name, "fields": list(fields), **rest}


ORDER_0 = record("t.Order", ID, {"name": "cents", "type": "int"})
ORDER_1 = record("t.Order", ID, {"name": "cents", "type": "int"}, {"name": "note", "type": "string", "default": "none"})
PAYMENT = record("t.Payment", ID, {"name": "iban", "type": "string", "default": "DE0"})
WRITTEN = [
    (0, ORDER_0, {"id": 1, "cents": 100}),
    (1, PAYMENT, {"id": 2, "iban": "DE1"}),
    (2, ORDER_1, {"id": 3, "cents": 300, "note": "now"}),
    (1, PAYMENT, {"id": 4, "iban": "DE2"}),
]


def body(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def name_of(schema):
    return RecordName(schema["name"], tuple(schema.get("aliases", ()))) if isinstance(schema, dict) else RecordName()


def writer_of(schema):
    return WriterSchema("avro", json.dumps(schema))


def each(function, versions):
    return [(str(number), function(schema)) for number, schema in enumerate(versions)]


def pinned(schemas, wanted=(), *, all_types=False, **others):
    """What a plan pins of topic `t`, and of others, whose versions these schemas are."""
    told = {"t": schemas, **others}
    names = {name: dict(each(name_of, versions)) for name, versions in told.items()}
    types = read_types(names, wanted, all_types=all_types)
    known = {
        name: {version: one for version, one in each(writer_of, versions) if types.reads(name, version)}
        for name, versions in told.items()
    }
    made = decoding_of(Auto(), None, known, "message", types)
    assert Decoding.from_json(json.loads(json.dumps(made.to_json()))) == made
    return made


def decoded(decoding, written, name="t"):
    bodies = [None if value is None else body(schema, value) for _, schema, value in written]
    versions = [struct.pack(">q", version) for version, _, _ in written]
    return Decoder(decoding, name).decode(
        Payloads(pa.array(bodies, pa.binary()), None, pa.array(versions, pa.binary()))
    )


def test_all_types_become_the_union_of_their_fields_and_a_column():
    """An older version has its own type's default; of another type's fields there is none."""
    decoding = pinned([ORDER_0, PAYMENT, ORDER_1], all_types=True)
    assert str(decoding.value) == "struct<id: long, cents: int, note: string, iban: string, _type: string>"
    found = decoded(decoding, WRITTEN)
    assert found.causes.null_count == 4
    assert found.value.to_pylist() == [
        {"id": 1, "cents": 100, "note": "none", "iban": None, "_type": "t.Order"},
        {"id": 2, "cents": None, "note": None, "iban": "DE1", "_type": "t.Payment"},
        {"id": 3, "cents": 300, "note": "now", "iban": None, "_type": "t.Order"},
        {"id": 4, "cents": None, "note": None, "iban": "DE2", "_type": "t.Payment"},
    ]


@pytest.mark.parametrize("newest", [ORDER_1, PAYMENT])
def test_one_type_is_read_by_its_own_versions_whichever_is_the_newest(newest):
    schemas = [ORDER_0, PAYMENT, ORDER_1] if newest is ORDER_1 else [ORDER_0, PAYMENT, ORDER_1, PAYMENT]
    found = decoded(pinned(schemas, ["Order"]), WRITTEN)
    assert found.value.to_pylist() == [
        {"id": 1, "cents": 100, "note": "none"},
        None,
        {"id": 3, "cents": 300, "note": "now"},
        None,
    ]
    assert found.causes.to_pylist() == [None, OTHER_TYPE, None, OTHER_TYPE]


def test_tombstones_of_another_type_are_set_aside_and_the_types_own_are_rows():
    found = decoded(pinned([ORDER_0, PAYMENT], ["Order"]), [(0, ORDER_0, None), (1, PAYMENT, None)])
    assert found.causes.to_pylist() == [None, OTHER_TYPE]
    found = decoded(pinned([ORDER_0, PAYMENT], all_types=True), [(0, ORDER_0, None), (1, PAYMENT, None)])
    assert (found.value.to_pylist(), found.causes.null_count) == ([None, None], 2)


def test_a_name_without_any_event_of_the_chosen_type_has_no_rows():
    decoding = pinned([ORDER_0], ["Order"], u=[PAYMENT])
    assert str(decoding.value) == "struct<id: long, cents: int>"
    assert decoded(decoding, [(0, PAYMENT, {"id": 2, "iban": "DE1"})], "u").causes.to_pylist() == [OTHER_TYPE]


def test_a_version_that_no_plan_knows_is_bad_and_not_of_another_type():
    found = decoded(pinned([ORDER_0, PAYMENT], ["Order"]), [(7, ORDER_0, {"id": 1, "cents": 1})])
    assert "version 7 is none of those" in found.causes.to_pylist()[0]


def test_topics_of_different_types_get_null_not_the_other_topics_default():
    decoding = pinned([ORDER_1], u=[PAYMENT])
    assert str(decoding.value) == "struct<id: long, cents: int, note: string, iban: string>"
    (order,) = decoded(decoding, [(0, ORDER_1, {"id": 3, "cents": 300, "note": "now"})]).value.to_pylist()
    (payment,) = decoded(decoding, [(0, PAYMENT, {"id": 2, "iban": "DE1"})], "u").value.to_pylist()
    assert order == {"id": 3, "cents": 300, "note": "now", "iban": None}
    assert payment == {"id": 2, "cents": None, "note": None, "iban": "DE1"}
    same = pinned([ORDER_0], u=[ORDER_1])
    assert same.types is None
    (older,) = decoded(same, WRITTEN[:1]).value.to_pylist()
    assert older == {"id": 1, "cents": 100, "note": "none"}, "one type in two topics: its own default"


def test_aliases_of_one_type_say_nothing_of_another():
    one = record("A", {"name": "status", "type": "string"})
    other = record("B", {"name": "state", "type": "string", "aliases": ["status"]})
    decoding = pinned([one, other], all_types=True)
    assert [field.name for field in decoding.value.fields] == ["status", "state", "_type"]
    found = decoded(decoding, [(0, one, {"status": "x"}), (1, other, {"state": "y"})])
    assert found.value.to_pylist() == [
        {"status": "x", "state": None, "_type": "A"},
        {"status": None, "state": "y", "_type": "B"},
    ]


def test_an_alias_within_one_type_still_finds_the_older_field():
    older = record("A", {"name": "status", "type": "string"})
    newer = record("B", {"name": "state", "type": "string", "aliases": ["status"]}, aliases=["A"])
    decoding = pinned([older, newer, PAYMENT], all_types=True)
    found = decoded(decoding, [(0, older, {"status": "x"}), (1, newer, {"state": "y"})])
    assert [(row["state"], row["_type"]) for row in found.value.to_pylist()] == [("x", "B"), ("y", "B")]


NESTED = record("Inner", {"name": "a", "type": "int", "default": 5})
NESTED_2 = record("Inner2", {"name": "a", "type": "long"}, {"name": "b", "type": "int", "default": 6})


def test_records_within_records_are_united_alike():
    one = record("A", {"name": "x", "type": {"type": "array", "items": NESTED}})
    other = record("B", {"name": "x", "type": {"type": "array", "items": NESTED_2}})
    decoding = pinned([one, other], all_types=True)
    assert str(decoding.value) == "struct<x: array<struct<a: long, b: int>>, _type: string>"
    found = decoded(decoding, [(0, one, {"x": [{"a": 1}]}), (1, other, {"x": [{"a": 2, "b": 3}]})])
    assert [row["x"] for row in found.value.to_pylist()] == [[{"a": 1, "b": None}], [{"a": 2, "b": 3}]]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("string", "int", r"n is string and int \(A and B\)"),
        ("long", "double", r"n is long and double"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, r"n\[\] is int and string"),
        (["null", "int", "string"], "int", "n is struct"),
    ],
)
def test_fields_of_one_name_and_different_types_are_refused_by_name(first, second, said):
    with pytest.raises(IncompatibleSchemas, match=said):
        pinned([record("A", {"name": "n", "type": first}), record("B", {"name": "n", "type": second})], all_types=True)


@pytest.mark.parametrize(
    ("one", "other", "both"), [("int", "long", "long"), ("float", "double", "double"), ("int", "double", "double")]
)
def test_numbers_that_lose_nothing_are_widened(one, other, both):
    for first, second in ((one, other), (other, one)):
        schemas = [record("A", {"name": "n", "type": first}), record("B", {"name": "n", "type": second})]
        assert str(pinned(schemas, all_types=True).value) == f"struct<n: {both}, _type: string>"


def test_fields_that_differ_by_case_only_are_refused():
    with pytest.raises(IncompatibleSchemas, match="ID differs from id by case only"):
        pinned([record("A", ID), record("B", {"name": "ID", "type": "long"})], all_types=True)


def test_a_field_of_the_columns_name_is_refused():
    with pytest.raises(InvalidSchema, match=r"_Type: A has this field, but types=.all. adds a column _type"):
        pinned([record("A", {"name": "_Type", "type": "long"})], all_types=True)
    assert pinned([record("A", {"name": "_type", "type": "long"})]).value


def test_values_that_are_no_records_have_no_type():
    with pytest.raises(InvalidSchema, match="not records with fields"):
        pinned(["string"], all_types=True)


def test_one_type_alone_is_pinned_as_ever():
    assert "types" not in pinned([ORDER_0, ORDER_1]).to_json()
    (row,) = decoded(pinned([ORDER_0, ORDER_1], all_types=True), WRITTEN[:1]).value.to_pylist()
    assert row == {"id": 1, "cents": 100, "note": "none", "_type": "t.Order"}
