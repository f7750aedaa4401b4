"""Fields as users declare them: of values that are no objects, and whether they may be null."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Auto
from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of

COLOR = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}
DIGITS = {"type": "string", "java-class": "java.math.BigDecimal"}


def record(*fields, name="R"):
    return {"type": "record", "name": name, "fields": [dict(zip(("name", "type"), one, strict=True)) for one in fields]}


INNER = record(("x", "int"), ("y", "int"), name="Inner")


def decode(payload, *schemas, texts):
    """The type, values and causes of texts of the newest of these versions."""
    known = {"t": {str(number): writer_of("JSON", json.dumps(one), {}) for number, one in enumerate(schemas)}}
    decoding = decoding_of(payload, None, known, "message")
    versions = pa.array([(len(schemas) - 1).to_bytes(8, "big")] * len(texts), pa.binary())
    found = Decoder(decoding, "t").decode(Payloads(pa.array(texts, pa.binary()), None, versions))
    return decoding.value, found.value.to_pylist(), found.causes.to_pylist()


@pytest.mark.parametrize(
    ("schema", "fields", "text", "type_", "value"),
    [
        ("int", "value long", b"7", "long", 7),
        ("int", {"value": "string(number)"}, b"7", "string", "7"),
        ("int", "value long not null", b"7", "long", 7),
        (COLOR, "value int", b"2", "int", 2),
        (COLOR, "value string(number)", b"2", "string", "2"),
        (COLOR, "value json", b'"RED"', "string", '"RED"'),
        (DIGITS, "value decimal(12,2)", b"12.50", "decimal(12,2)", Decimal("12.50")),
        ({"type": "array", "items": COLOR}, "value array<int>", b"[2]", "array<int>", [2]),
        ({"type": "array", "items": INNER}, "value array<struct<x: long>>", b'[{"x":1,"y":2}]',
         "array<struct<x: long, y: int>>", [{"x": 1, "y": 2}]),
    ],
)  # fmt: skip
def test_a_value_that_is_no_object_is_declared_as_value(schema, fields, text, type_, value):
    found, values, causes = decode(Auto(fields), schema, texts=[text])
    assert (str(found), values, causes) == (type_, [value], [None])


@pytest.mark.parametrize(
    ("schema", "fields", "lost"),
    [
        ("int", "nosuch long", "nosuch"),
        ("int", "value long, nosuch long", "nosuch"),
        ("int", "Value long", "Value"),
        ("int", "value long from x", "value from x"),
        (COLOR, "color int", "color"),
        ({"type": "array", "items": INNER}, "value array<struct<z: int>>", r"value\.z"),
        (INNER, "value long", "value"),
    ],
)
def test_other_names_are_no_fields_of_a_value_that_is_no_object(schema, fields, lost):
    with pytest.raises(InvalidSchema, match=rf"no version of the schema has {lost}\. .*'value long'"):
        decode(Auto(fields), schema, texts=[])


def test_a_field_of_some_version_may_be_a_value_of_others():
    fields = Auto("value long")
    type_, values, causes = decode(fields, "int", record(("value", "int")), texts=[b'{"value":1}'])
    assert (str(type_), values, causes) == ("struct<value: long>", [{"value": 1}], [None])


@pytest.mark.parametrize("count", [1, 700])
@pytest.mark.parametrize("text", [b'{"a":1}', b'{"a":1,"b":null}'])
@pytest.mark.parametrize("fields", ["b int", "b long", {"b": "int"}, "b json", "b string(number)"])
def test_a_declared_field_may_be_null(fields, text, count):
    schema = record(("a", "int"), ("b", "int"))
    assert decode(Auto(), schema, texts=[text])[2] == ["b: is lacking, or null"]
    _, values, causes = decode(Auto(fields), schema, texts=[text] * count)
    assert (values, causes) == ([{"a": 1, "b": None}] * count, [None] * count)


@pytest.mark.parametrize("count", [1, 700])
@pytest.mark.parametrize(
    ("fields", "text", "cause"),
    [
        ("b int not null", b'{"a":1}', "b: is lacking, or null"),
        ("b long not null", b'{"a":1,"b":null}', "b: is lacking, or null"),
        ("b int", b'{"b":1}', "a: is lacking, or null"),
        ("c int not null", b'{"a":1,"b":1}', "c: is lacking, or null"),
    ],
)
def test_not_null_and_fields_that_are_not_declared_stay_required(fields, text, cause, count):
    schema = record(("a", "int"), ("b", "int"), ("c", ["null", "int"]))
    assert decode(Auto(fields), schema, texts=[text] * count)[2] == [cause] * count


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        ("inner struct<x: int>", [None, {"x": None, "y": 1}, BaseException]),
        ("inner struct<x: int> not null", [BaseException, {"x": None, "y": 1}, BaseException]),
        ("inner struct<x: int not null>", [None, BaseException, BaseException]),
        ({"inner": {"y": "int"}}, [None, BaseException, {"x": 1, "y": None}]),
    ],
)
def test_inner_fields_may_be_null_as_they_are_declared(fields, values):
    texts = [b"{}", b'{"inner":{"y":1}}', b'{"inner":{"x":1}}']
    _, found, causes = decode(Auto(fields), record(("inner", INNER)), texts=texts)
    shown = [BaseException if cause else value["inner"] for value, cause in zip(found, causes, strict=True)]
    assert shown == values


def test_a_version_without_a_declared_field_has_null():
    old, new = record(("a", "int")), record(("a", "int"), ("b", "int"))
    _, values, causes = decode(Auto("b int"), new, old, new, texts=[b'{"a":1}'])
    assert (values, causes) == ([{"a": 1, "b": None}], [None])
