"""Avro schemas: names, logical types, and what is no schema."""

from __future__ import annotations

import random

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.avro_schema import (
    Enum,
    Fixed,
    Logical,
    Primitive,
    Record,
    Recursive,
    Union,
    parse,
    records,
)
from tests.fuzz.formats import avro_made
from tests.seeds import examples


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=examples(50), deadline=None)
def test_every_schema_that_fastavro_accepts_is_accepted(seed):
    schema = avro_made.schema(random.Random(seed))  # noqa: S311
    fastavro.parse_schema(schema)
    found = parse(schema)
    assert [one.name for one in found.fields] == [one["name"] for one in schema["fields"]]


@pytest.mark.parametrize("text", ["string", '"string"', '{"type": "string"}', '{"type": {"type": "string"}}'])
def test_a_primitive_in_all_its_spellings(text):
    assert parse(text) == Primitive("string")


def test_names_are_found_in_their_namespace():
    found = parse(
        {
            "type": "record",
            "name": "R",
            "namespace": "x.y",
            "fields": [
                {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
                {"name": "again", "type": "E"},
                {"name": "full", "type": "x.y.E"},
                {"name": "other", "type": {"type": "fixed", "name": "z.F", "size": 2}},
                {"name": "self", "type": ["null", "R"]},
            ],
        }
    )
    assert found.name == "x.y.R"
    assert found.fields[0].schema == found.fields[1].schema == found.fields[2].schema == Enum("x.y.E", ("A",))
    assert found.fields[3].schema == Fixed("z.F", 2)
    assert found.fields[4].schema == Union((Primitive("null"), Recursive("x.y.R")))
    assert list(records(found)) == ["x.y.R"]


@pytest.mark.parametrize(
    ("schema", "logical"),
    [
        ({"type": "int", "logicalType": "date"}, Logical("date")),
        ({"type": "long", "logicalType": "date"}, None),
        ({"type": "long", "logicalType": "timestamp-nanos"}, Logical("timestamp-nanos")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, Logical("decimal", 5, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 6}, None),
        ({"type": "bytes", "logicalType": "decimal"}, None),
        ({"type": "string", "logicalType": "uuid"}, Logical("uuid")),
        ({"type": "string", "logicalType": "no-such"}, None),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}, Logical("decimal", 4, 0)),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5}, None),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, Logical("uuid")),
    ],
)
def test_a_logical_type_that_does_not_fit_is_none_as_the_specification_asks(schema, logical):
    assert parse(schema).logical == logical


def test_defaults_and_aliases_are_kept():
    field = parse(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 5, "aliases": ["b"]}]}
    )
    assert isinstance(field, Record)
    assert (field.fields[0].default, field.fields[0].aliases) == (5, ("b",))


@pytest.mark.parametrize(
    "schema",
    ["", "nothing", "{}", "null,", '{"type":"record","name":"R"}', '{"type":"record","fields":[]}', "[]",
    '["int","int"]',
     '[["int"]]', '{"type":"enum","name":"E","symbols":[]}', '{"type":"fixed","name":"F"}',
     '{"type":"fixed","name":"F","size":true}',
     '{"type":"record","name":"a b","fields":[]}', '{"type":"record","name":"R","fields":[{"name":"a"}]}',
     '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
     '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"record","name":"R","fields":[]}}]}',
     "[" * 5000, '{"type":' * 100 + '"int"' + "}" * 100],
)  # fmt: skip
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(InvalidSchema):
        parse(schema)
