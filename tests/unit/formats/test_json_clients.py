"""What Pulsar's clients write as JSON, by the schemas that they register: `json_clients.json` has their own bytes.

`JacksonVectors.java` printed the lines of the Java clients: it was compiled and run against the `pulsar-client` of each
version. Those of pulsar-client are of its `JsonSchema`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.payload import Auto, Json, Registry, payload_from, payload_to_json
from airflow_provider_streams.model.schema.payload_options import payload_of_options
from airflow_provider_streams.systems.pulsar.metadata.schemas import writer_of

UTC = dt.UTC
VECTORS = json.loads((Path(__file__).parent / "json_clients.json").read_text())
NOON = dt.datetime(2026, 11, 20, 12, 0, 0, 123_456, tzinfo=UTC)
MILLIS = dt.datetime(2026, 11, 20, 10, 0, 0, 123_000, tzinfo=UTC)
WALL = dt.datetime.fromisoformat("2026-11-20T10:00:00")
WALL_NANOS = dt.datetime.fromisoformat("1969-11-20T10:00:01.123456")
UUID = "00000000-0000-0001-0000-000000000002"
RAW = b"\x00\xffA"
TYPES = {
    "aBoolean": True, "aByte": -128, "aShort": 32767, "anInt": -(2**31), "aLong": 2**63 - 1, "aFloat": 1.5,
    "aDouble": 1e300, "aChar": "ß", "text": "Zoë", "color": "GREEN", "bytes": RAW, "buffer": RAW, "chars": "ab",
    "ints": [1, 2], "booleans": [True], "doubles": [1.5], "prices": ["1.50"], "tags": ["t"], "inners": [{"x": 1}],
    "inner": {"x": 1}, "byText": [("a", 1)], "byInt": [(-7, "seven")], "byLong": [(2**63 - 1, {"x": 1})],
    "byColor": [("RED", 1)], "byUuid": [(UUID, 1)], "byDay": [(dt.date(2026, 11, 20), 1)],
    "nested": [(1, [(True, NOON)])], "price": "12.50", "thousands": "1E+3", "big": "123456789012345678901234567890",
    "uuid": UUID, "uri": "http://a/b", "locale": "de_DE", "any": '{"a": 1.50}', "self": {"v": 1, "next": '{"v": 1}'},
}  # fmt: skip
TIMES = {
    "instant": NOON, "epoch": dt.datetime(1970, 1, 1, tzinfo=UTC), "nanos": dt.datetime(1970, 1, 1, tzinfo=UTC),
    "whole": dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "day": dt.date(2026, 2, 28), "minute": dt.time(10, 1),
    "second": dt.time(10, 1, 2), "nano": dt.time(10, 1, 2, 3004), "wall": WALL,
    "wallNanos": WALL_NANOS, "zoned": NOON, "offset": NOON, "took": "1.500000000",
    "date": MILLIS, "sqlDate": dt.datetime(2026, 11, 20, tzinfo=UTC), "sqlTime": dt.time(10, 1, 2),
    "timestamp": MILLIS, "calendar": MILLIS, "textInstant": NOON, "textDay": dt.date(2026, 11, 20),
    "textDate": MILLIS,
}  # fmt: skip
PY_TYPES = {
    "a": True, "b": -1, "c": 2**62, "d": 1.5, "e": 1e300, "g": "Zoë", "h": ["a"], "i": [("x", 1)], "j": {"x": 1},
    "k": [{"x": 1}], "l": [("a", {"x": 1})], "m": None, "n": "r", "o": "ONE",
}  # fmt: skip
WANTED = {
    "types": TYPES,
    "times": TIMES,
    "flags": {"isOpen": True, "isPaid": True},
    "renamed": {"id": 1, "unitPrice": None},
    "node": {"v": 1, "next": '{"v": 1}'},
    "bare-string": "Zoë",
    "bare-int": 7,
    "bare-long": -(2**63),
    "bare-double": 1.5,
    "bare-boolean": True,
    "bare-enum": "GREEN",
    "bare-char": "c",
    "bare-ints": [1, 2],
    "bare-texts": ["a"],
    "bare-bytes": RAW,
    "bare-nodes": [{"v": 1, "next": '{"v": 1}'}],
    "bare-map": '{"a": 1}',
    "bare-decimal": "1.50",
    "bare-instant": NOON,
    "bare-day": dt.date(2026, 11, 20),
    "bare-date": MILLIS,
    "bare-uuid": UUID,
    "py-types": PY_TYPES,
}


def decode(payload, schema, *texts):
    """Values and causes, by Pulsar's schema of JSON."""
    decoding = decoding_of(payload, None, {"t": {"0": writer_of("JSON", json.dumps(schema), {})}}, "message")
    versions = pa.array([bytes(8)] * len(texts), pa.binary())
    decoded = Decoder(decoding, "t").decode(Payloads(pa.array(texts, pa.binary()), None, versions))
    return decoding.value, decoded.value.to_pylist(), decoded.causes.to_pylist()


def vectors(*names):
    found = [one for one in VECTORS if one["name"] in names]
    return [pytest.param(one, id=f"{one['name']} {one['clients'][0]}") for one in found]


@pytest.mark.parametrize("vector", vectors(*WANTED))
def test_what_clients_write_is_read_by_their_own_schema(vector):
    _, (value,), causes = decode(Auto(), vector["schema"], vector["payload"].encode())
    assert causes == [None]
    if isinstance(value, dict):
        assert {name: value[name] for name in WANTED[vector["name"]]} == WANTED[vector["name"]]
        left = value.keys() - WANTED[vector["name"]].keys()
        assert left == {"types": {"maybe"}, "times": {"millis"}, "py-types": {"f"}}.get(vector["name"], set())
    else:
        assert value == WANTED[vector["name"]]


def test_every_vector_is_asserted_on():
    assert {one["name"] for one in VECTORS} == {*WANTED, "before-1970", "py-enum"}


@pytest.mark.parametrize("vector", vectors("types"))
def test_an_optional_is_text_or_json_as_its_schema_has_it(vector):
    _, (value,), _ = decode(Auto(), vector["schema"], vector["payload"].encode())
    is_newer = "Java 4.2.4" in vector["clients"]
    assert value["maybe"] == ("x" if is_newer else '"x"')


@pytest.mark.parametrize("vector", vectors("before-1970"))
def test_a_fraction_of_a_second_before_1970_is_refused_for_every_version(vector):
    """The same moment, which Jackson up to 2.18 writes as -2.5, and later ones as -1.5."""
    _, values, (cause,) = decode(Auto(), vector["schema"], vector["payload"].encode())
    assert values == [None]
    assert cause == "at: is a moment before 1970 with a fraction, which versions of Jackson write differently"
    _, (as_declared,), _ = decode(Auto("at decimal(20,9)"), vector["schema"], vector["payload"].encode())
    assert as_declared["at"] == Decimal(json.loads(vector["payload"], parse_float=str)["at"])


@pytest.mark.parametrize("vector", vectors("py-enum"))
def test_a_number_of_an_enum_is_bad_by_its_symbols_or_read_as_declared(vector):
    payload = vector["payload"].encode()
    _, values, (cause,) = decode(Auto(), vector["schema"], payload)
    assert values == [None]
    assert cause.startswith("color: ")
    assert cause.endswith("of which of its symbols: RED, GREEN")
    type_, values, _ = decode(Auto("color int"), vector["schema"], payload)
    assert (str(type_), values) == ("struct<color: int>", [{"color": 2}])


def test_a_number_of_an_enum_of_one_symbol_can_mean_that_one_alone():
    fields = [{"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED"]}}]
    _, values, causes = decode(Auto(), {"type": "record", "name": "R", "fields": fields}, b'{"color": 7}')
    assert (values, causes) == ([{"color": "RED"}], [None])


@pytest.mark.parametrize("vector", vectors("times"))
def test_fields_are_read_as_declared(vector):
    fields = {"millis": "timestamp(ms)", "took": "decimal(12,9)", "textDay": "string"}
    type_, (value,), causes = decode(Auto(fields), vector["schema"], vector["payload"].encode())
    assert causes == [None]
    assert value["millis"] == NOON.replace(microsecond=123_000)
    assert value["took"] == Decimal("1.5")
    assert value["textDay"] == "2026-11-20"
    assert value["instant"] == NOON
    assert "took: decimal(12,9)" in str(type_)


@pytest.mark.parametrize("vector", vectors("types"))
def test_fields_inside_others_are_read_as_declared(vector):
    fields = (
        "price decimal(38,2), prices array<decimal(9,2)>, byLong map<string, struct<x: long>>, inner struct<x: long>"
    )
    _, (value,), causes = decode(Auto(fields), vector["schema"], vector["payload"].encode())
    assert causes == [None]
    assert (value["price"], value["prices"]) == (Decimal("12.50"), [Decimal("1.50")])
    assert value["byLong"] == [(str(2**63 - 1), {"x": 1})]
    assert value["text"] == "Zoë"


@pytest.mark.parametrize("vector", vectors("renamed"))
def test_a_property_under_another_name_is_read_as_declared(vector):
    _, values, causes = decode(Auto("unitPrice double from unit_price"), vector["schema"], vector["payload"].encode())
    assert (values, causes) == ([{"id": 1, "unitPrice": 2.5}], [None])


def test_declared_fields_are_those_of_a_json_schema():
    record = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
    with pytest.raises(InvalidSchema, match="no version of the schema has prise"):
        decode(Auto("prise int, id int"), record, b"{}")
    with pytest.raises(InvalidSchema, match=r"they are for JSON, and its schema is of utf8"):
        decoding_of(Auto("id int"), None, {"t": {"0": writer_of("STRING", "", {})}}, "message")


def test_declared_fields_are_those_of_any_version():
    old, new = ({"type": "record", "name": "R", "fields": [{"name": n, "type": "string"} for n in names]}
                for names in (["a"], ["a", "b"]))  # fmt: skip
    known = {"t": {str(n): writer_of("JSON", json.dumps(one), {}) for n, one in enumerate((old, new))}}
    assert str(decoding_of(Auto("b string(number)"), None, known, "message").value) == "struct<a: string, b: string>"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"id": "long", "a b": "string not null"}, "id long, `a b` string not null"),
        ({"inner": {"x": "int", "y": {"z": "date"}}}, "inner struct<x: int, y: struct<z: date>>"),
    ],
)
def test_columns_may_be_a_mapping(columns, text):
    assert Json(columns) == Json(text)
    assert payload_from(payload_to_json(Json(columns))) == Json(text)
    assert payload_to_json(Json(text)) == {"format": "json", "columns": text}


@pytest.mark.parametrize("wrong", [{"id": int}, {}, ["id"], None, {"id": "lon"}])
def test_columns_that_are_none_are_refused_with_an_example(wrong):
    with pytest.raises(InvalidSchema, match="long"):
        Json(wrong)


@pytest.mark.parametrize("kind", [Json, Auto])
def test_a_mapping_of_columns_may_be_written_as_json(kind):
    told = {"id": "long", "of": {"unit price": "decimal(9,2)"}}
    assert kind(json.dumps(told)) == kind(told) == kind("id long, of struct<`unit price`: decimal(9,2)>")
    assert payload_of_options("value", {"format": kind.format, "schema": f" {json.dumps(told)}"}) == kind(told)


@pytest.mark.parametrize("wrong", ['{"id": "lon"}', '{"id"', '{"id": "int", "id": "long"}', '{"type": []}', "{}", "id"])
@pytest.mark.parametrize("kind", [Json, Auto])
def test_text_that_names_no_columns_is_refused_with_both_ways_to_write_them(kind, wrong):
    with pytest.raises(InvalidSchema) as caught:
        kind(wrong)
    assert str(caught.value).endswith(
        """Write "id long, tags array<string>", or {"id": "long", "tags": "array<string>"}."""
    )


def test_options_also_declare_fields():
    told = {"format": "auto", "schema": "price decimal(9,2)"}
    assert payload_of_options("value", told) == Auto({"price": "decimal(9,2)"})
    assert payload_of_options("value", {"format": "auto"}) == Auto()
    assert payload_to_json(Auto()) == {"format": "auto"}
    again = payload_from(payload_to_json(Auto("a int", refuse_unmatched=True)))
    assert again == Auto("a int", refuse_unmatched=True)


@pytest.mark.parametrize("columns", ["a timestamp(minutes)", "a string(ms)", "a long(ms)", "a int from", "a json(x)"])
def test_forms_that_are_none_are_refused(columns):
    with pytest.raises(InvalidSchema):
        Json(columns)


@pytest.mark.parametrize(
    ("column", "text", "wanted"),
    [
        ("json", '{"b": [1.50, "x", null, true, -0]}', '{"b": [1.50, "x", null, true, -0]}'),
        ("json", '"x"', '"x"'),
        ("json", "null", None),
        ("string(number)", "1.500", "1.500"),
        ("string(number)", "-0", "-0"),
        ("string(number)", '"1.5"', "1.5"),
        ("timestamp", "1795176000.123456789", NOON),
        ("timestamp", "-0.000000001", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("timestamp(s)", "1795176000", NOON.replace(microsecond=0)),
        ("date", "[2026,2,28]", dt.date(2026, 2, 28)),
        ("map<long,date>", '{"-1": "2026-02-28"}', [(-1, dt.date(2026, 2, 28))]),
        ("map<double,boolean>", '{"1.5": true}', [(1.5, True)]),
    ],
)
def test_what_a_column_says_of_its_json(column, text, wanted):
    decoding = decoding_of(Json(f"a {column}"), None, {})
    decoded = Decoder(decoding, "t").decode(Payloads(pa.array([f'{{"a": {text}}}'.encode()], pa.binary())))
    assert decoded.causes.to_pylist() == [None]
    assert decoded.value.to_pylist() == [{"a": wanted}]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("string(number)", "true"),
        ("string(number)", "NaN"),
        ("string", "1"),
        ("timestamp", "1795176000"),
        ("timestamp", "1795176000.5"),
        ("timestamp", "1e400"),
        ("timestamp", "99999999999999.000000000"),
        ("timestamp", "-1.500000000"),
        ("date", "[2026,2,30]"),
        ("date", "[2026,2]"),
        ("date", "[2026,2,1.5]"),
        ("time", "[10,1,2,1000000000]"),
        ("time", "[24,0]"),
        ("timestamp_ntz", "[10000,1,1,0,0]"),
        ("map<int,int>", '{"1.0": 1}'),
        ("map<int,int>", '{"01": 1}'),
        ("map<int,int>", '{"2147483648": 1}'),
        ("map<boolean,int>", '{"yes": 1}'),
    ],
)
def test_what_is_none_of_its_column_is_bad(column, text):
    decoding = decoding_of(Json(f"a {column}"), None, {})
    decoded = Decoder(decoding, "t").decode(Payloads(pa.array([f'{{"a": {text}}}'.encode()], pa.binary())))
    (cause,) = decoded.causes.to_pylist()
    assert cause.startswith("a")


def test_a_boolean_of_two_keys_is_one_column():
    record = {"type": "record", "name": "R", "fields": [{"name": "isOpen", "type": "boolean"}]}
    texts = [
        b'{"isOpen":true}',
        b'{"open":true}',
        b'{"open":true,"isOpen":null}',
        b'{"open":true,"isOpen":true}',
        b'{"open":true,"isOpen":false}',
        b"{}",
    ]
    for repeated in (texts, [one for one in texts for _ in range(300)]):  # row by row, and in blocks
        _, values, causes = decode(Auto(), record, *repeated)
        assert {(str(value), cause) for value, cause in zip(values, causes, strict=True)} == {
            ("{'isOpen': True}", None),
            ("None", "isOpen: is there twice, with different values"),
            ("None", "isOpen: is lacking, or null"),
        }
    both = {"type": "record", "name": "R", "fields": [*record["fields"], {"name": "open", "type": "boolean"}]}
    _, values, _ = decode(Auto(), both, b'{"open":true,"isOpen":false}')
    assert values == [{"isOpen": False, "open": True}]


def test_nan_of_pulsar_client():
    (vector,) = [one for one in VECTORS if one["name"] == "py-types"]
    _, (value,), _ = decode(Auto(), vector["schema"], vector["payload"].encode())
    assert math.isnan(value["f"])


def unmatched(payload, *objects):
    """The count of a split whose batches are these lists of objects, and all causes."""
    decoder = Decoder(decoding_of(payload, None, {}), "t")
    causes = set()
    for batch in objects:
        texts = [json.dumps(one).encode() for one in batch]
        causes |= set(decoder.decode(Payloads(pa.array(texts, pa.binary()))).causes.to_pylist())
    return decoder.unmatched.objects, causes


RENAMED = [{"id": number, "unit_price": 2.5} for number in range(1000)]
COLUMNS = "id long, unitPrice double"


@pytest.mark.parametrize("more", ["", ", m map<string,int>"], ids=["in blocks", "row by row"])
@pytest.mark.parametrize(
    ("batches", "count"),
    [
        ([RENAMED], 1000),
        ([RENAMED[:10], RENAMED[10:]], 1000),
        ([RENAMED, [{"id": 1}] * 5], 1000),
        ([[{"id": 1}] * 5], 0),
        ([[{"id": 1, "z": None}] * 300], 0),
        ([[{"id": 1, "z": number if number % 2 else "text"} for number in range(300)]], 300),
        ([[{"id": 1, "z": {"unit": 1} if number % 3 else []} for number in range(300)]] * 2, 600),
    ],
)
def test_objects_with_keys_of_no_column_count_while_a_column_is_empty(batches, count, more):
    assert unmatched(Json(COLUMNS + more), *batches) == (count, {None})


@pytest.mark.parametrize("more", ["", ", m map<string,int>"], ids=["in blocks", "row by row"])
def test_the_keys_and_the_empty_columns_are_named(more):
    columns = "id long, unitPrice double, s struct<a: int, b: struct<c: int>>, l array<struct<d: int>>"
    one = {"id": 1, "unit_price": 2.5, "s": {"a": 1, "B": 2, "n": None}, "l": [{"d": 1, "e": {"f": 1}}], "x" * 99: 0}
    decoder = Decoder(decoding_of(Json(columns + more), None, {}), "t")
    decoder.decode(Payloads(pa.array([json.dumps(one).encode()] * 300, pa.binary())))
    empty = ("m", "s.b", "unitPrice") if more else ("s.b", "unitPrice")
    assert decoder.unmatched == (300, ("l.e", "s.B", "unit_price", "x" * 60), empty)
    decoder = Decoder(decoding_of(Json(columns + more), None, {}), "t")
    many = json.dumps({"id": 1, **{f"k{number:02}": 1 for number in range(99)}}).encode()
    decoder.decode(Payloads(pa.array([many], pa.binary())))
    assert decoder.unmatched.keys == tuple(f"k{number:02}" for number in range(8))


@pytest.mark.parametrize("filled", [[*RENAMED, {"id": 1, "unitPrice": 1}], [{"id": 1, "unitPrice": 1}, *RENAMED]])
def test_a_column_that_any_object_of_the_split_fills_is_not_empty(filled):
    assert unmatched(Json(COLUMNS), filled) == (0, {None})
    assert unmatched(Json(COLUMNS), *[[one] for one in filled[-2:]], filled[:2]) == (0, {None})


def test_objects_inside_objects_have_keys_of_no_column():
    columns = "id long, s struct<a: int, b: int>, l array<struct<c: int>>"
    inner = [{"id": 1, "s": {"a": 1, "x": 2}, "l": [{"c": 1}]}] * 300
    assert unmatched(Json(columns), inner) == (300, {None})
    in_list = [{"id": 1, "s": {"a": 1, "b": 2}, "l": [{}, {"d": 1}]}, {"id": 1, "s": None, "l": None}] * 300
    assert unmatched(Json(columns), in_list) == (300, {None})


@pytest.mark.parametrize("count", [1, 1000])
def test_such_objects_are_refused_on_demand(count):
    strict = Json(COLUMNS, refuse_unmatched=True)
    cause = "unitPrice: is lacking; the object has keys that no column takes"
    assert unmatched(strict, RENAMED[:count])[1] == {cause}
    good = [{"id": 1, "unitPrice": 2.5, "z": 1}, {"id": 1}, {"id": 1, "unitPrice": None, "z": 1}, {"id": 1, "z": None}]
    assert unmatched(strict, good * count)[1] == {None}
    assert unmatched(Json(f"s struct<{COLUMNS}>", refuse_unmatched=True), [{"s": RENAMED[0]}] * count)[1] == {
        f"s.{cause}"
    }


def test_a_required_field_under_another_name_is_bad_with_both_reasons():
    found = unmatched(Json("id long, unitPrice double not null"), RENAMED)
    assert found == (1000, {"unitPrice: is lacking, or null; the object has keys that no column takes"})


def test_auto_also_refuses_unmatched_objects():
    (vector,) = [one for one in VECTORS if one["name"] == "renamed"]
    for payload in (Auto(refuse_unmatched=True), Registry(refuse_unmatched=True)):
        _, _, (cause,) = decode(payload, vector["schema"], vector["payload"].encode())
        assert cause == "unitPrice: is lacking; the object has keys that no column takes"


@pytest.mark.parametrize("indent", [None, 3])
def test_texts_that_look_like_keys_are_none(indent):
    odd = ['":', '\\":\\', 'a":1,"b', "\\", '"', "null", "\t", ":", '{"z":1}', "é\u2028\n"]
    objects = [{"id": number, "t": text, "l": [{"c": text}], "n": None} for number, text in enumerate(odd * 30)]
    columns = "id long, t string, l array<struct<c: string>>, lacks string"
    for others, count in (({}, 0), ({"z": None}, 0), ({"z": "null"}, 300), ({"z": {}}, 300), ({'z"\\': 0}, 300)):
        texts = [json.dumps(one | others, indent=indent, ensure_ascii=False).encode() for one in objects]
        blocks, rows = (Decoder(decoding_of(Json(columns + more), None, {}), "t") for more in ("", ", m map<int,int>"))
        for decoder in (blocks, rows):
            causes = decoder.decode(Payloads(pa.array([*texts, b'{"a":1}'], pa.binary()))).causes
            assert causes.null_count == len(causes)
        assert blocks.unmatched.objects == rows.unmatched.objects == count + 1
        named = tuple(key for key, one in others.items() if one is not None) or ("a",)
        assert blocks.unmatched.keys == rows.unmatched.keys == named


PAIR = {"type": "record", "namespace": "org.apache.avro.reflect"}


def pairs(name, key, value):
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    return {"type": "array", "items": {**PAIR, "name": name, "fields": fields}, "java-class": "java.util.Map"}


def test_a_field_and_its_getter_of_one_value_are_one():
    """What Java 4.0.8 writes of `public boolean isMain` with `isMain()`: both keys."""
    schema = {"type": "record", "name": "Address", "fields": [{"name": "isMain", "type": "boolean"}]}
    within = {"type": "record", "name": "R", "fields": [{"name": "to", "type": {"type": "array", "items": schema}}]}
    texts = b'{"isMain":true,"main":true}', b'{"isMain":false,"main":null}', b'{"isMain":true,"main":false}'
    _, values, causes = decode(Auto(), schema, *texts)
    assert values == [{"isMain": True}, {"isMain": False}, None]
    assert causes == [None, None, "isMain: is there twice, with different values"]
    _, values, causes = decode(Auto(), within, *(b'{"to":[%b,%b]}' % (text, text) for text in texts))
    assert values == [{"to": [{"isMain": True}] * 2}, {"to": [{"isMain": False}] * 2}, None]
    assert causes == [None, None, "to[].isMain: is there twice, with different values"]
    _, values, causes = decode(Auto(), schema, *[texts[0]] * 300)
    assert values == [{"isMain": True}] * 300
    assert decode(Auto(refuse_unmatched=True), schema, texts[0])[1:] == ([{"isMain": True}], [None])


def test_numbers_that_are_not_finite_are_keys_and_values_of_maps():
    """What Java 4.0.8 writes of `Map<Double, String>` and `Map<Float, Double>`."""
    fields = [
        {"name": "byDouble", "type": ["null", pairs("PairDoubleString", "double", "string")]},
        {"name": "byFloat", "type": ["null", pairs("PairFloatDouble", "float", "double")]},
    ]
    text = (
        b'{"byDouble":{"NaN":"v","Infinity":"v","-Infinity":"v","1.5":"v","1.0E300":"v"},'
        b'"byFloat":{"NaN":"NaN","Infinity":1.0E300,"-Infinity":"-Infinity","1.5":1.5}}'
    )
    _, (value,), causes = decode(Auto(), {"type": "record", "name": "R", "fields": fields}, text)
    assert causes == [None]
    assert [str(key) for key, _ in value["byDouble"]] == ["nan", "inf", "-inf", "1.5", "1e+300"]
    assert str(value["byFloat"]) == "[(nan, nan), (inf, 1e+300), (-inf, -inf), (1.5, 1.5)]"
    twice = b'{"byDouble":{"NaN":"v","NaN":"w"}}', b'{"byDouble":{"nan":"v"}}', b'{"byDouble":{"1":"v","1.0":"w"}}'
    _, _, causes = decode(Auto(), {"type": "record", "name": "R", "fields": fields}, *twice)
    assert causes == ["byDouble: a key is there twice", "byDouble.{}: is no number", "byDouble: a key is there twice"]


def test_a_whole_number_has_no_key_that_is_not_finite():
    fields = [{"name": "byInt", "type": pairs("PairIntString", "int", "string")}]
    _, _, causes = decode(Auto(), {"type": "record", "name": "R", "fields": fields}, b'{"byInt":{"NaN":"v"}}')
    assert causes == ["byInt.{}: is no whole number"]
