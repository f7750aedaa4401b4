"""JSON payloads: each rule with payloads that break it, in blocks and row by row."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.json import reader as reader_module
from airflow_provider_streams.formats.json.columns import of_avro_style, of_json_schema
from airflow_provider_streams.formats.json.reader import JsonReader
from airflow_provider_streams.formats.schema.row_types import type_of
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import to_json
from airflow_provider_streams.model.schema.types import Field, Simple, StructOf
from tests.fuzz.formats import rounds
from tests.fuzz.formats.rounds import Done
from tests.seeds import examples

EXAMPLES = examples(60)
UTC = dt.UTC
BAD = object()


def schema(columns):
    type_ = parse_columns(columns) if isinstance(columns, str) else columns
    return WriterSchema("json", json.dumps(to_json(type_)))


def read(columns, *payloads, padded=False):
    causes = Causes()
    values, codes = JsonReader(schema(columns), causes, padded=padded).read(pa.array(payloads, pa.binary()))
    values.validate(full=True)
    return values.to_pylist(), [causes.text(code) for code in codes.tolist()]


def counted(word, unit):
    return StructOf((Field("a", Simple(word, unit)),))


MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
RULES = [
    ("long", "9223372036854775807", (1 << 63) - 1),
    ("long", "-9223372036854775808", -(1 << 63)),
    ("long", "9223372036854775808", BAD),
    ("long", "9007199254740993", 9_007_199_254_740_993),
    ("long", "1.0", BAD),
    ("long", "1e2", BAD),
    ("long", '"1"', BAD),
    ("long", "true", BAD),
    ("long", "-0", 0),
    ("long", "01", BAD),
    ("long", "9" * 5000, BAD),
    ("int", "2147483648", BAD),
    ("short", "-32769", BAD),
    ("byte", "-128", -128),
    ("double", "0.1", 0.1),
    ("double", "1e999", BAD),
    ("double", "NaN", math.nan),
    ("double", '"NaN"', math.nan),
    ("double", "-Infinity", -math.inf),
    ("double", '"Infinity"', math.inf),
    ("double", "Inf", BAD),
    ("double", "-0.0", -0.0),
    ("double", '"0.1"', BAD),
    ("float", "1e39", BAD),
    ("float", "16777217", 16_777_216.0),
    ("decimal(10,2)", "12.30", decimal.Decimal("12.30")),
    ("decimal(10,2)", '"12.3"', decimal.Decimal("12.30")),
    ("decimal(10,2)", "12.345", BAD),
    ("decimal(10,2)", "123456789.00", BAD),
    ("decimal(3,2)", "1e2", BAD),
    ("decimal(38,0)", "9" * 38, decimal.Decimal("9" * 38)),
    ("decimal(20,0)", "18446744073709551615", decimal.Decimal((1 << 64) - 1)),
    ("decimal(10,2)", '"NaN"', BAD),
    ("decimal(10,2)", "1e-999999999", BAD),
    ("decimal(10,2)", '"1\\u0065-999999999"', BAD),
    ("decimal(10,2)", "1e-77", BAD),
    ("decimal(10,2)", "0." + "0" * 76 + "1", BAD),
    ("decimal(10,2)", '"\\u0031.5"', decimal.Decimal("1.50")),
    ("boolean", "false", False),
    ("boolean", "0", BAD),
    ("string", '"\\ud83d\\ude00"', "😀"),
    ("string", '"\\ud83d"', BAD),
    ("string", '"a\\u0000b"', "a\0b"),
    ("string", "5", BAD),
    ("string", '"a\tb"', BAD),
    ("string", '"a\nb"', BAD),
    ("string", "{}", BAD),
    ("binary", '"AP8="', b"\0\xff"),
    ("binary", '"AP8"', BAD),
    ("binary", '"AP 8="', BAD),
    ("date", '"2026-01-02"', dt.date(2026, 1, 2)),
    ("date", '"2026-02-30"', BAD),
    ("date", '"0000-01-01"', BAD),
    ("date", "20000", BAD),
    ("time", '"03:04:05.678901"', dt.time(3, 4, 5, 678_901)),
    ("time", '"24:00:00"', BAD),
    ("timestamp", '"2026-01-02T03:04:05.678901Z"', MOMENT),
    ("timestamp", '"2026-01-02T03:04:05.678901999Z"', MOMENT),
    ("timestamp", '"2026-01-02 05:04:05.678901+02:00"', MOMENT),
    ("timestamp", '"2026-01-02T03:04:05"', BAD),
    ("timestamp", "1767323045678", BAD),
    ("timestamp_ntz", '"2026-01-02T03:04:05.678901"', MOMENT.replace(tzinfo=None)),
    ("timestamp_ntz", '"2026-01-02T03:04:05Z"', BAD),
    (("timestamp", "ms"), "1767323045678", MOMENT.replace(microsecond=678_000)),
    (("timestamp", "ms"), '"2026-01-02T03:04:05.678901Z"', MOMENT),
    (("timestamp", "ms"), "253402300800000", BAD),
    (("timestamp", "ns"), "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    (("date", "d"), "1", dt.date(1970, 1, 2)),
    (("time", "ms"), "86400000", BAD),
    ("array<int>", "[1, null, 2]", [1, None, 2]),
    ("array<int>", "{}", BAD),
    ("array<int>", '[1, "2"]', BAD),
    ("map<string,int>", '{"x": 1, "y": null}', [("x", 1), ("y", None)]),
    ("map<string,int>", '{"x": 1, "x": 2}', BAD),
    ("struct<b: int not null>", '{"b": 1, "c": [{}]}', {"b": 1}),
    ("struct<b: int not null>", '{"c": 1}', BAD),
    ("struct<b: int not null>", "null", None),
    ("struct<b: int>", '{"b": 1, "b": 1}', BAD),
    ("struct<b: int>", "[]", BAD),
]


@pytest.mark.parametrize(("column", "text", "expected"), RULES, ids=[f"{one[0]} {one[1][:30]}" for one in RULES])
def test_a_value_of_a_column(column, text, expected):
    columns = counted(*column) if isinstance(column, tuple) else f"a {column}"
    good = b'{"a":null}'
    values, causes = read(columns, good, b'{"a": %s}' % text.encode(), good)
    alone, alone_causes = read(columns, b'{"a": %s}' % text.encode())
    assert values[0] == values[2] == {"a": None}
    assert causes[0] == causes[2] == ""
    assert (causes[1] != "") == (alone_causes[0] != "") == (expected is BAD)
    if expected is not BAD:
        assert repr(values[1]["a"]) == repr(alone[0]["a"])
        assert repr(values[1]["a"]).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == repr(expected)


WHOLE = [
    (b'{"a":1}', {"a": 1}),
    (b' {"a":1}\r\n', {"a": 1}),
    (b'{\n"a"\r:\t1}', {"a": 1}),
    (b"{}", {"a": None}),
    (b'{"z":1,"z":2}', {"a": None}),
    (b'{"a":1,"\\u0061":2}', BAD),
    (b'{"a":1}{"a":2}', BAD),
    (b'{"a":1},{"a":2}', BAD),
    (b'{"a":1}\n{"a":2}', BAD),
    (b'{"a":1} x', BAD),
    (b'{"a":1,}', BAD),
    (b'{"a":1', BAD),
    (b'"b":1}', BAD),
    (b"", BAD),
    (b"  ", BAD),
    (b"null", BAD),
    (b"[]", BAD),
    (b"1", BAD),
    (b'\xef\xbb\xbf{"a":1}', BAD),
    (b'{"a":1}\0', BAD),
    (b'{"a":1,"z":"\xff"}', BAD),
    (b"{'a':1}", BAD),
    (b'{"a":1 /* */}', BAD),
    (b'{"z":Inf,"a":1}', BAD),
    (b'{"z":NaN,"a":1}', {"a": 1}),
    (b'{"z":' + b"[" * 99 + b"]" * 99 + b',"a":1}', {"a": 1}),
    (b'{"z":' + b"[" * 100 + b"]" * 100 + b',"a":1}', BAD),
    (b'{"z":"' + b"[" * 300 + b'","a":1}', {"a": 1}),
    (b'{"z":[' + b"[]," * 300 + b'[]],"a":1}', {"a": 1}),
    (b'{"z":' + b"[" * 100_000 + b"}", BAD),
]


@pytest.mark.parametrize("among", [0, 3, 600])
def test_a_payload_is_one_object_whatever_stands_around_it(among):
    """What a row is cannot depend on its neighbours: a block of many is read as each of them alone."""
    for payload, expected in WHOLE:
        rows = [b'{"a":%d}' % number for number in range(among)] + [payload] + [b'{"a":7}'] * among
        values, causes = read("a int", *rows)
        assert [bool(cause) for cause in causes] == [False] * among + [expected is BAD] + [False] * among
        if expected is not BAD:
            assert values[among] == expected
        assert [one["a"] for one in values[:among]] == list(range(among))


def test_rows_that_make_up_for_each_other_are_not_mixed_up():
    for pair in (
        (b'{"a":1}{"a":2}', b""),
        (b'{"a":1,', b'"a":2}'),
        (b'{"a":1}{"a":2', b"}"),
        (b"{", b'"a":1}{"a":2}'),
        (b'{"b":[{}', b'{"a":2}]}'),
        (b'{"b":"}', b'{"a":1}{"b":"}'),
    ):
        for rows in (pair, pair[::-1], (b'{"a":0}', *pair, b'{"a":0}')):
            values, causes = read("a int", *rows)
            taken = [value["a"] for value, cause in zip(values, causes, strict=True) if not cause]
            expected = [one.get("a") for row in rows if (one := _object(row)) is not None]
            assert taken == expected


def _object(row):
    try:
        return json.loads(row)
    except ValueError:
        return None


def test_padding_is_no_part_of_the_value():
    values, causes = read("a int", b'{"a":1}' + bytes(100), b'{"a":1}', b"\0", padded=True)
    assert values[:2] == [{"a": 1}] * 2
    assert [bool(cause) for cause in causes] == [False, False, True]


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_types_and_texts_are_read_as_the_plain_decoder_reads_them(seed):
    rounds.json_(seed, Done(), most=40)


def test_one_bad_row_does_not_make_its_block_slow(monkeypatch):
    """A block is split until few rows are left, and only those are read one by one."""
    read_singly = []
    true = reader_module.JsonReader._converted

    def counting(self, rows, values, codes):
        read_singly.extend(values)
        return true(self, rows, values, codes)

    monkeypatch.setattr(reader_module.JsonReader, "_converted", counting)
    rows = [b'{"a":%d}' % number for number in range(16_000)]
    rows[5000] = b'{"a":"x"}'
    values, causes = read("a int", *rows)
    assert [number for number, cause in enumerate(causes) if cause] == [5000]
    assert values[5001] == {"a": 5001}
    assert 0 < len(read_singly) <= reader_module.FEW_ROWS


def test_rows_with_maps_are_made_columns_many_at_a_time_by_the_same_rules():
    """Arrow's blocks hold no maps: what Python parses is looked at column by column."""
    texts = {
        b'{"m":{"a":1},"d":-0}': ({"m": [("a", 1)], "d": -0.0}, None),
        b'{"m":{"a":1,"a":2}}': (None, "m: a key is there twice"),
        b'{"m":{"a":true}}': (None, "m.{}: is no whole number"),
        b'{"m":null,"m":null}': (None, "m: is there twice"),
        b'{"z":1,"z":2,"d":NaN}': ({"m": None, "d": float("nan")}, None),
        b'{"d":1e400}': (None, "d: is beyond its type"),
        b' {"m":{}} ': ({"m": [], "d": None}, None),
        b'{"m":[]}': (None, "m: is no object"),
        b"null": (None, "the value: is null"),
    }
    payloads = [b'{"m":{"k":%d}}' % number for number in range(1000)]
    places = range(50, 50 + 100 * len(texts), 100)
    for place, text in zip(places, texts, strict=True):
        payloads[place] = text
    values, causes = read("m map<string,int>, d double", *payloads)
    found = [(None if causes[place] else values[place], causes[place] or None) for place in places]
    assert repr(found) == repr(list(texts.values()))
    others = [number for number in range(1000) if number not in places]
    assert all(not causes[number] and values[number]["m"] == [("k", number)] for number in others)


@pytest.mark.parametrize(
    "payload",
    [b"[" * 5_000_000, b'{"a":' * 1_000_000, b'{"z":"' + b"\\" * 5_000_000, b'{"a":' + b"9" * 5_000_000 + b"}"],
    ids=["arrays", "objects", "an endless text", "an endless number"],
)
def test_hostile_payloads_cost_little(payload):
    began = time.process_time()
    _, causes = read("a decimal(38,0)", b'{"a":1}', payload)
    assert [bool(cause) for cause in causes] == [False, True]
    assert time.process_time() - began < 10  # not for ever


def test_pulsars_json_schemas_are_avros():
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "blob", "type": "bytes"},
        {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ]
    found = of_avro_style(json.dumps({"type": "record", "name": "R", "fields": fields}))
    assert str(type_of(found)) == (
        "struct<id: long, at: timestamp, tags: array<string>, blob: binary, money: decimal(9,2)>"
    )
    text = b'{"id":1,"at":1767323045678,"blob":"AA==","money":1.5}'
    values, codes = JsonReader(found, Causes()).read(pa.array([text, b'{"at":1,"blob":"","money":1}']))
    assert codes.tolist()[0] == 0
    assert codes.tolist()[1] != 0
    assert values[0].as_py()["at"] == MOMENT.replace(microsecond=678_000)


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ({"name": "u", "type": ["string", "long"]}, b'{"u": 1.0}', {"u": "1.0"}),
        ({"name": "u", "type": ["null", "R"]}, b'{"u": {"u": null}}', {"u": '{"u": null}'}),
        (
            {"name": "u", "type": {"type": "map", "values": {"type": "array", "items": ["int", "string"]}}},
            b'{"u": {"a": [1, "x"]}}',
            {"u": [("a", ["1", '"x"'])]},
        ),
    ],
)
def test_what_json_does_not_tell_of_an_avro_schema_stays_json(field, value, wanted):
    found = of_avro_style(json.dumps({"type": "record", "name": "R", "fields": [field]}))
    values, codes = JsonReader(found, Causes()).read(pa.array([value]))
    assert (values.to_pylist(), codes.tolist()) == ([wanted], [0])


def test_json_schemas_of_a_registry():
    text = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "required": True},
            "b": {"type": ["integer", "null"]},
            "c": {"type": "array", "items": {"type": "number"}},
            "d": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "e": {
                "type": "object",
                "properties": {"f": {"type": "integer", "format": "utc-millisec"}},
                "required": ["f"],
            },
        },
        "required": ["c"],
    }
    found = type_of(of_json_schema(json.dumps(text)))
    assert str(found) == (
        "struct<a: string, b: long, c: array<double>, d: map<string,boolean>, e: struct<f: timestamp>>"
    )
    assert [one.nullable for one in found.fields] == [False, True, False, True, True]


@pytest.mark.parametrize(
    "text", ["", "1", '{"type":"object"}', '{"type":["string","integer"]}', '{"type":"any"}', "[" * 9999]
)
def test_what_says_no_rows_is_refused(text):
    with pytest.raises(InvalidSchema, match="JSON Schema"):
        of_json_schema(text)
