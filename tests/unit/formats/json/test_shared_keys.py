"""Several columns that read one key of an object: each of them gets its value, or the event is undecodable."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Auto, Json
from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of

COUNTS = pytest.mark.parametrize("count", [1, 3, 700], ids=["one by one", "few", "many"])
BAD = b"{"


def decoded(payload, *texts, fields=()):
    """Values, causes and the decoder. A schema of these fields is the system's, if there are any."""
    record = {"type": "record", "name": "R", "fields": [{"name": name, "type": type_} for name, type_ in fields]}
    known = {"t": {"0": writer_of("JSON", json.dumps(record), {})}} if fields else {}
    decoder = Decoder(decoding_of(payload, None, known, "message" if fields else ""), "t")
    versions = pa.array([bytes(8)] * len(texts), pa.binary()) if fields else None
    found = decoder.decode(Payloads(pa.array(texts, pa.binary()), None, versions))
    found.value.validate(full=True)
    return found.value.to_pylist(), found.causes.to_pylist(), decoder


def rows(payload, text, count, fields=()):
    """The values of an object, read many times, alone and next to a bad one, which is read one by one."""
    values, causes, _ = decoded(payload, *[text] * count, fields=fields)
    mixed, mixed_causes, _ = decoded(payload, *[text] * count, BAD, fields=fields)
    assert (mixed[:-1], mixed_causes[:-1]) == (values, causes)
    ((value, cause),) = {(repr(value), cause) for value, cause in zip(values, causes, strict=True)}
    assert cause is None, cause
    return value


@COUNTS
@pytest.mark.parametrize(
    ("columns", "text", "wanted"),
    [
        ("x long from id, y long from id", '{"id":1}', {"x": 1, "y": 1}),
        ("id long, y long from id", '{"id":1}', {"id": 1, "y": 1}),
        ("x long from id, y long from id", "{}", {"x": None, "y": None}),
        ("x long from id, y long from id", '{"id":null}', {"x": None, "y": None}),
        ("x int from id, y long from id, z int from id", '{"id":7}', {"x": 7, "y": 7, "z": 7}),
        ("id int, d double from id, t string(number) from id, j json from id", '{"id":7}',
         {"id": 7, "d": 7.0, "t": "7", "j": "7"}),
        ("s struct<x: int from a, y: int from a>", '{"s":{"a":1}}', {"s": {"x": 1, "y": 1}}),
        ("l array<struct<x: int from a, y: int from a>>", '{"l":[{"a":1},null,{"a":2}]}',
         {"l": [{"x": 1, "y": 1}, None, {"x": 2, "y": 2}]}),
        ("m map<string,struct<x: int from a, y: int from a>>", '{"m":{"k":{"a":1}}}', {"m": [("k", {"x": 1, "y": 1})]}),
        ("m map<int,struct<x: int from a, y: long from a>>", '{"m":{"1":{"a":1}}}', {"m": [(1, {"x": 1, "y": 1})]}),
        ("l array<int>, k array<int> from l", '{"l":[1]}', {"l": [1], "k": [1]}),
        ("s struct<x: int>, r struct<y: int> from s, z int", '{"s":{"x":1,"y":2},"z":3}',
         {"s": {"x": 1}, "r": {"y": 2}, "z": 3}),
    ],
)  # fmt: skip
def test_each_column_gets_the_value(columns, text, wanted, count):
    assert rows(Json(columns), text.encode(), count) == repr(wanted)


@COUNTS
def test_a_declared_field_may_read_the_key_of_another_field(count):
    of_ints = ("a", "int"), ("b", "int")
    assert rows(Auto("b int from a"), b'{"a":1,"b":2}', count, of_ints) == "{'a': 1, 'b': 1}"
    assert rows(Auto("a int from b, b int from a"), b'{"a":1,"b":2}', count, of_ints) == "{'a': 2, 'b': 1}"
    both = ("isOpen", "boolean"), ("open", "boolean")
    assert rows(Auto("isOpen boolean from open"), b'{"open":true}', count, both) == "{'isOpen': True, 'open': True}"
    getter = ("isOpen", "boolean"), ("b", "boolean")
    wanted = "{'isOpen': True, 'b': True}"
    assert rows(Auto("b boolean from open"), b'{"open":true}', count, getter) == wanted
    assert rows(Auto("b boolean from open"), b'{"open":true,"isOpen":true}', count, getter) == wanted
    assert rows(Auto("b boolean from isOpen"), b'{"isOpen":true}', count, getter) == wanted


@COUNTS
@pytest.mark.parametrize(
    ("columns", "text", "cause"),
    [
        ("id int, price string, p2 double from price", '{"id":1,"price":12.50}', "price: is no text"),
        ("id int, p2 double from price, price string", '{"id":1,"price":12.50}', "price: is no text"),
        ("x int from a, m map<string,int> from a, y int from a", '{"a":1}', "m: is no object"),
        ("a int from id, b string from id", '{"id":1}', "b: is no text"),
        ("s struct<x: int from a, y: string from a>", '{"s":{"a":1}}', "s.y: is no text"),
        ("l array<struct<x: string from a, y: int from a>>", '{"l":[{"a":1}]}', "l[].x: is no text"),
        ("x long from id, y long from id", '{"id":1,"id":2}', "x: is there twice"),
        ("x long from id, y long from id", '{"id":1,"id":1}', "x: is there twice"),
        ("x long from id, y long from id not null", "{}", "y: is lacking, or null"),
    ],
)
def test_what_one_of_them_cannot_take_is_undecodable(columns, text, cause, count):
    values, causes, _ = decoded(Json(columns), *[text.encode()] * count)
    assert (values, causes) == ([None] * count, [cause] * count)


@COUNTS
@pytest.mark.parametrize("others", ["", ', "z": 1'])
def test_a_key_that_one_of_them_takes_is_no_key_without_a_column(others, count):
    columns = "s struct<x: int>, r struct<y: int> from s, t json from u, u struct<a: int>, empty int"
    text = f'{{"s": {{"x": 1, "y": 2}}, "u": {{"a": 1, "b": 2}}{others}}}'.encode()
    *_, decoder = decoded(Json(columns), *[text] * count)
    assert decoder.unmatched.objects == (count if others else 0)
    assert decoder.unmatched.keys == (("z",) if others else ())
    *_, decoder = decoded(Json(columns), *[b'{"s": {"x": 1, "q": 2}}'] * count)
    assert decoder.unmatched.keys == ("s.q",)
