"""Versions of a schema that nothing else holds, as text."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.formats.versions.version_reader import Newest, VersionReader
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema, newest_of
from airflow_provider_streams.model.schema.payload import Auto, payload_from, payload_to_json


def record(**types):
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return {"type": "record", "name": "R", "fields": fields}


def payload(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
INNER = {"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}]}
OLD = record(id="int", x="string", list={"type": "array", "items": "int"}, to=INNER, raw="bytes", same="double")
NEW = record(
    id="long",
    x="int",
    list={"type": "array", "items": "string"},
    to={**INNER, "fields": [{"name": "a", "type": "boolean"}]},
    raw={"type": "map", "values": "long"},
    same="double",
)
OLD_ROW = {"id": 1, "x": "seven", "list": [1, -2], "to": {"a": 5}, "raw": b"\x00\xff", "same": 0.5}
NEW_ROW = {"id": 2**40, "x": 7, "list": ["a"], "to": {"a": True}, "raw": {"k": 1}, "same": 1.5}
TEXTS = [
    {"id": 1, "x": "seven", "list": ["1", "-2"], "to": {"a": "5"}, "raw": "AP8=", "same": 0.5},
    {"id": 2**40, "x": "7", "list": ["a"], "to": {"a": "true"}, "raw": '{"k":1}', "same": 1.5},
]


def decoded(value, *versions):
    """The rows of one event of each version, and why it is none."""
    schemas = {str(number): WriterSchema("avro", json.dumps(schema)) for number, (schema, _) in enumerate(versions)}
    pinned = Decoding.from_json(json.loads(json.dumps(decoding_of(value, None, {"t": schemas}, "message").to_json())))
    causes, found = Causes(), []
    for version, schema in schemas.items():
        newest = newest_of(pinned.schemas["t"])
        reader = VersionReader(schema, version, pinned, causes, newest=Newest(newest, newest), name="")
        schema_, row = versions[int(version)]
        read = reader.read(pa.array([payload(schema_, row)]), None)
        found.append(read.codes.tolist()[0] == 0 and read.values.to_pylist()[0])
    return found


def test_fields_that_nothing_else_holds_are_text():
    assert decoded(Auto(as_text=True), (OLD, OLD_ROW), (NEW, NEW_ROW)) == TEXTS
    assert decoded(Auto(as_text=True), (NEW, NEW_ROW), (OLD, OLD_ROW)) == TEXTS[::-1]


def test_a_version_that_fits_is_as_it_was():
    versions = [(record(id="int"), {"id": 1}), (record(id="long"), {"id": 2**40})]
    assert decoded(Auto(as_text=True), *versions) == decoded(Auto(), *versions) == [{"id": 1}, {"id": 2**40}]


@pytest.mark.parametrize(("version", "good"), [("", [False, True]), (1, [False, True]), (0, [True, False])])
def test_a_version_gives_its_columns_and_others_are_undecodable(version, good):
    old, new = record(id="int", x="string"), record(id="int", x="int")
    rows = [{"id": 1, "x": "a"}, {"id": 2, "x": 2}]
    found = decoded(Auto(version=version), (old, rows[0]), (new, rows[1]))
    assert found == [row if fits else False for row, fits in zip(rows, good, strict=True)]


def test_values_that_are_no_records_are_text_next_to_records():
    assert decoded(Auto(as_text=True), ("int", 7), (record(id="int"), {"id": 1})) == ["7", '{"id":1}']


def test_numbers_and_branches_are_written_as_they_are():
    old = record(x=["int", MONEY, "null"])
    new = record(x={"type": "long", "logicalType": "timestamp-micros"})
    assert decoded(Auto(as_text=True), (old, {"x": 5}), (new, {"x": 0})) == [
        {"x": "5"},
        {"x": "1970-01-01 00:00:00.000000Z"},
    ]


def test_a_branch_that_went_makes_text_of_its_union_also_within_records():
    def within(branch):
        return record(to={"type": "record", "name": "In", "fields": [{"name": "x", "type": ["string", branch]}]})

    rows = {"to": {"x": True}}, {"to": {"x": 5}}
    found = decoded(Auto(as_text=True), (within("boolean"), rows[0]), (within("long"), rows[1]))
    assert found == [{"to": {"x": "true"}}, {"to": {"x": "5"}}]


def test_a_default_is_text_with_its_field():
    has, lacks = record(id="int", x="string"), record(id="int")
    other = {**has, "fields": [has["fields"][0], {"name": "x", "type": "int", "default": 7}]}
    found = decoded(Auto(as_text=True), (has, {"id": 1, "x": "a"}), (lacks, {"id": 2}), (other, {"id": 3, "x": 5}))
    assert [row["x"] for row in found] == ["a", "7", "5"]


def test_an_unknown_version_is_named_with_those_that_there_are():
    with pytest.raises(InvalidSchema, match=r"version='7'.*0, 1"):
        decoded(Auto(version=7), (record(id="int"), {"id": 1}), (record(id="int", x="int"), {"id": 1, "x": 1}))


def test_a_reader_of_before_asks_for_the_same():
    assert payload_to_json(Auto()) == {"format": "auto"}
    for value in (Auto(version=3), Auto(as_text=True)):
        assert payload_from(payload_to_json(value)) == value
