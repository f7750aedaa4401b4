"""What is advised for an undecodable JSON event can be declared, and takes the event."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.json.declarations import declarations
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Auto, Json
from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of

COLOR = {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}
LIST = {"type": "array", "items": "Inner"}
INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "at.x", "type": COLOR}, {"name": "n", "type": "int"}],
}
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": name, "type": ["null", type_]}
        for name, type_ in {
            "in": INNER, "l": LIST, "m": {"type": "map", "values": LIST}, "e": "Color",
            "eu": {"type": "int", "logicalType": "date"}, "at": {"type": "long", "logicalType": "timestamp-millis"},
            "clock": {"type": "int", "logicalType": "time-millis"}, "i": "int", "b": "boolean", "t": "string",
            "raw": "bytes", "now": {"type": "record", "name": "java.time.ZonedDateTime", "fields": []},
            "a b": "int", "far": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        }.items()
    ],
}  # fmt: skip
REQUIRED = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": name, "type": type_}
        for name, type_ in {
            "in": INNER,
            "e": "Color",
            "at": {"type": "long", "logicalType": "timestamp-millis"},
        }.items()
    ],
}


def cause_and_advice(payload, schema, text):
    writer = schema if isinstance(schema, WriterSchema) else writer_of("JSON", json.dumps(schema), {})
    decoding = decoding_of(payload, None, {"t": {"0": writer}}, "message")
    versions = pa.array([bytes(8)], pa.binary())
    found = Decoder(decoding, "t").decode(Payloads(pa.array([text.encode()], pa.binary()), None, versions))
    (cause,) = found.causes.to_pylist()
    return cause, None if cause is None else declarations(decoding, "t", "0", cause)


@pytest.mark.parametrize(
    ("schema", "text", "advice"),
    [
        (SCHEMA, '{"e":1}', "e int"),
        (SCHEMA, '{"eu":"1.2.26"}', "eu string"),
        (SCHEMA, '{"clock":"10 pm"}', "clock string"),
        (SCHEMA, '{"at":"now"}', "at string"),
        (SCHEMA, '{"now":1795176000}', "now json"),
        (SCHEMA, '{"now":-1.500000000}', "now decimal(20,9)"),
        (SCHEMA, '{"i":2147483648}', "i long"),
        (SCHEMA, '{"i":1.5}', "i json"),
        (SCHEMA, '{"a b":{}}', "`a b` json"),
        (SCHEMA, '{"b":0}', "b json"),
        (SCHEMA, '{"t":1.50}', "t string(number)"),
        (SCHEMA, '{"raw":"é"}', "raw string"),
        (SCHEMA, '{"far":1234567}', "far json"),
        (SCHEMA, '{"l":{}}', "l json"),
        (SCHEMA, '{"in":[]}', "in json"),
        (SCHEMA, '{"in":{"at.x":1,"n":1}}', "in struct<`at.x`: int>"),
        (SCHEMA, '{"l":[{"at.x":2,"n":1},{"at.x":1,"n":1}]}', "l array<struct<`at.x`: int>>"),
        (SCHEMA, '{"m":{"k":[{"at.x":"RED","n":1.5}]}}', "m map<string,array<struct<n: json>>>"),
        (SCHEMA, '{"m":{"k":1}}', "m map<string,json>"),
        (SCHEMA, '{"l":[{"at.x":"RED"}]}', "l array<struct<n: int>>"),
        (REQUIRED, '{"in":{"at.x":"RED","n":1},"at":1}', "e string"),
        (REQUIRED, '{"in":{"at.x":"RED","n":1},"e":"RED"}', "at timestamp(ms)"),
        (REQUIRED, '{"e":"RED","at":1}', "in struct<`at.x`: string not null>"),
        (REQUIRED, '{"in":{"n":1},"e":"RED","at":1}', "in struct<`at.x`: string> not null"),
        (COLOR, "1", "value int"),
        ("int", '"x"', "value json"),
        ({"type": "array", "items": COLOR}, "[1]", "value array<int>"),
    ],
)  # fmt: skip
def test_an_undecodable_event_is_decoded_as_it_is_advised(schema, text, advice):
    cause, found = cause_and_advice(Auto(), schema, text)
    assert cause
    assert found == (advice,)
    assert cause_and_advice(Auto(*found), schema, text) == (None, None)


def test_a_value_under_another_key_is_advised_before_null():
    text = '{"in":{"at.x":"RED","n":1},"at":1,"E":"RED"}'
    _, found = cause_and_advice(Auto(), REQUIRED, text)
    assert found == ("e string from ..", "e string")
    for one in found:
        assert cause_and_advice(Auto(one.replace("..", "E")), REQUIRED, text) == (None, None)
    optional = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]}
    assert cause_and_advice(Auto(refuse_unmatched=True), optional, '{"A":1}')[1] == ("a int from ..",)


@pytest.mark.parametrize(
    "text", ["{", "null", "[]", '{"i":1,"i":1}', '{"i":1} x', '{"t":"\\ud800"}', '{"m":{"a":[],"a":[]}}']
)
def test_nothing_is_advised_if_no_declaration_takes_the_event(text):
    cause, found = cause_and_advice(Auto(), SCHEMA, text)
    assert cause
    assert found == ()


def test_nothing_is_advised_where_users_declare_no_fields():
    assert cause_and_advice(Auto(), WriterSchema("avro", json.dumps({**COLOR, "type": "enum"})), "x")[1] == ()
    decoding = decoding_of(Json("e int"), None, {"t": {}})
    assert declarations(decoding, "t", "", "e: is no whole number") == ()
    registry = decoding_of(Auto(), None, {"t": {"0": writer_of("JSON", json.dumps(SCHEMA), {})}}, "header")
    assert declarations(registry, "t", "0", "e: is the number of an enum") == ()
    known = decoding_of(Auto(), None, {"t": {"0": writer_of("JSON", json.dumps(SCHEMA), {})}}, "message")
    assert declarations(known, "t", "9", "its schema version 9 is none of those that the plan pinned") == ()
    assert declarations(known, "t", "0", "the key: e: is no text") == ()


def test_a_name_that_a_message_cannot_quote_is_not_advised():
    odd = WriterSchema("json", json.dumps({"struct": [{"name": "it's", "type": "int"}]}))
    assert cause_and_advice(Auto(), odd, '{"it\'s":"x"}') == ("it's: is no whole number", ())
