"""Avro payloads: as fastavro reads them; projected to another version by Avro's rules; hostile ones bounded."""

from __future__ import annotations

import io
import json
import random
import struct
import time

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.avro.reader import AvroReader
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Auto
from tests.fuzz.formats import avro_made
from tests.seeds import examples

EXAMPLES = examples(60)


def written(schema, *values):
    parsed = fastavro.parse_schema(schema)
    rows = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        rows.append(out.getvalue())
    return rows


def read(schema, rows):
    causes = Causes()
    values, codes = AvroReader(schema, causes).read(pa.array(rows, pa.binary()))
    return values, [causes.text(code) for code in codes.tolist()]


def record(*fields):
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": type_} for name, type_ in fields]}


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_schemas_and_values_are_read_as_fastavro_reads_them(seed):
    dice = random.Random(seed)  # noqa: S311
    schema = avro_made.schema(dice)
    plain = avro_made.without_logical(schema)
    rows = written(plain, *(avro_made.for_fastavro(schema, avro_made.datum(dice, schema)) for _ in range(12)))
    parsed = fastavro.parse_schema(plain)
    values, causes = read(plain, rows)
    for row, cause, value in zip(rows, causes, values.to_pylist(), strict=True):
        assert cause == ""
        same(plain, value, fastavro.schemaless_reader(io.BytesIO(row), parsed), {})


def same(schema, ours, theirs, named):
    """Fails where our value is not fastavro's."""
    if isinstance(schema, str):
        if schema in named:
            assert isinstance(json.loads(ours), dict)
        else:
            assert repr(ours) == repr(theirs)
        return
    if isinstance(schema, list):
        same_of_union([one for one in schema if one != "null"], ours, theirs, named)
        return
    match schema["type"]:
        case "record":
            named = {**named, schema["name"]: schema}
            for one in schema["fields"]:
                same(one["type"], ours[one["name"]], theirs[one["name"]], named)
        case "array":
            assert len(ours) == len(theirs)
            for our, their in zip(ours, theirs, strict=True):
                same(schema["items"], our, their, named)
        case "map":
            assert [key for key, _ in ours] == list(theirs)
            for (_, our), their in zip(ours, theirs.values(), strict=True):
                same(schema["values"], our, their, named)
        case _:
            assert repr(ours) == repr(theirs)


def same_of_union(branches, ours, theirs, named):
    if theirs is None:
        assert ours is None
    elif len(branches) == 1:
        same(branches[0], ours, theirs, named)
    elif set(map(str, branches)) in ({"int", "long"}, {"float", "double"}):
        assert repr(ours) == repr(theirs)
    else:
        (place,) = [place for place, value in enumerate(ours.values()) if value is not None]
        same(branches[place], list(ours.values())[place], theirs, named)


TYPES = ("int", "long", "float", "double", "string", "bytes", "boolean")
WIDER = {"int": ("int", "long", "float", "double"), "long": ("long", "float", "double"), "float": ("float", "double")}


@st.composite
def two_versions(draw):
    """A writer's schema, a newer one that reads it by Avro's rules, and values of the first."""
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    types = {name: draw(st.sampled_from(TYPES)) for name in names}
    nullable = {name: draw(st.booleans()) for name in names}
    older = [{"name": name, "type": ["null", types[name]] if nullable[name] else types[name]} for name in names]
    newer = []
    for name in draw(st.permutations(names)):
        if draw(st.integers(0, 4)) == 0:
            continue
        wider = draw(st.sampled_from(WIDER.get(types[name], (types[name],))))
        one = {"name": name, "type": ["null", wider] if nullable[name] or draw(st.booleans()) else wider}
        newer.append({**one, "name": f"{name}_new", "aliases": [name]} if draw(st.integers(0, 3)) == 0 else one)
    defaults = {"int": 5, "string": "x", "double": 0.5, "boolean": True}
    for name in draw(st.lists(st.sampled_from("xyz"), unique=True)):
        kind = draw(st.sampled_from(list(defaults)))
        if draw(st.booleans()):
            newer.insert(0, {"name": name, "type": ["null", kind], "default": None})
        else:
            newer.append({"name": name, "type": kind, "default": defaults[kind]})
    values = {
        "int": st.integers(-(1 << 31), (1 << 31) - 1), "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "float": st.floats(width=32), "double": st.floats(), "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5), "boolean": st.booleans(),
    }  # fmt: skip
    fields = {name: st.none() | values[types[name]] if nullable[name] else values[types[name]] for name in names}
    return older, newer, draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=5))


@given(two_versions())
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_older_version_is_projected_to_the_newest_as_fastavro_resolves_it(made):
    older, newer, values = made
    if not newer:
        return
    schemas = [{"type": "record", "name": "R", "fields": fields} for fields in (older, newer)]
    rows = written(schemas[0], *values)
    parsed = [fastavro.parse_schema(one) for one in schemas]
    theirs = [fastavro.schemaless_reader(io.BytesIO(row), *parsed) for row in rows]
    known = {"t": {str(number): WriterSchema("avro", json.dumps(one)) for number, one in enumerate(schemas)}}
    decoder = Decoder(decoding_of(Auto(), None, known, "message"), "t")
    versions = pa.array([struct.pack(">q", 0)] * len(rows), pa.binary())
    found = decoder.decode(Payloads(pa.array(rows, pa.binary()), None, versions))
    assert found.causes.null_count == len(rows)
    ours = found.value.to_pylist()
    for our, their in zip(ours, theirs, strict=True):
        assert list(our) == [one["name"] for one in newer]
        assert {name: said(value) for name, value in our.items()} == {
            name: said(value) for name, value in their.items()
        }


def said(value):
    """Text that is the same for the same value; numbers of other types may be equal."""
    return repr(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)


def test_the_column_of_each_type():
    logical = {
        "date": ("int", pa.date32()),
        "time-millis": ("int", pa.time64("ns")),
        "timestamp-micros": ("long", pa.timestamp("us", "UTC")),
        "timestamp-nanos": ("long", pa.timestamp("us", "UTC")),
        "local-timestamp-millis": ("long", pa.timestamp("us")),
    }
    for name, (kind, column) in logical.items():
        values, causes = read(record(("a", {"type": kind, "logicalType": name})), [b"\x02"])
        assert values.field(0).type == column
        assert causes == [""]
    values, _ = read(
        record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0})), [b"\x02\x01"]
    )
    assert values.field(0).type == pa.binary()


def test_a_default_that_its_type_cannot_hold_is_none():
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1 << 40}]}
    older = WriterSchema("avro", json.dumps(record(("b", "int"))))
    decoding = decoding_of(Auto(), None, {"t": {"0": older, "1": WriterSchema("avro", json.dumps(schema))}}, "message")
    found = Decoder(decoding, "t").decode(Payloads(pa.array([b"\2"]), None, pa.array([struct.pack(">q", 0)])))
    assert found.value.to_pylist() == [{"a": None}]


HOSTILE = {
    "an array of 2^40 nulls": ({"type": "array", "items": "null"}, b"\x80\x80\x80\x80\x80\x80\x80\x01"),
    "an array of 2^40 empty records": (
        {"type": "array", "items": record()}, b"\x80\x80\x80\x80\x80\x80\x80\x01" + b"\0" * 20,
    ),
    "an array of more items than bytes": ({"type": "array", "items": "long"}, b"\xfe\xff\xff\xff\x0f\x00"),
    "the least count of items": ({"type": "array", "items": "long"}, b"\xff" * 9 + b"\x01\x00"),
    "a text of 2^62 bytes": ("string", b"\x80" * 8 + b"\x80\x01"),
    "a text of less than no bytes": ("string", b"\x03xx"),
    "a varint without an end": ("long", b"\x80" * 5000),
    "bytes after the value": ("long", b"\x02" * 100_000),
    "itself inside itself": (
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}, b"\x02" * 200_000,
    ),
    "a list of itself inside itself": (
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": {"type": "array", "items": "R"}}]},
        b"\x02" * 200_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payloads_are_bad_rows_and_cost_little(name):
    schema, payload = HOSTILE[name]
    began = time.process_time()
    values, causes = read(schema, [payload] * 50)
    assert all(causes)
    assert values.nbytes < 1 << 20
    assert time.process_time() - began < 5  # of hours, if their claims were believed


@pytest.mark.parametrize(
    "schema",
    ["", "{", "[]", '{"type":"record","name":"R"}', '"no.such.type"', '{"type":"enum","name":"E","symbols":[]}',
     '["null","null"]', "[" * 3000, '{"type":"fixed","name":"F","size":-1}', '[["int"],"null"]', "null ", "3"],
)  # fmt: skip
def test_what_is_no_avro_schema_is_refused(schema):
    with pytest.raises(InvalidSchema):
        AvroReader(schema, Causes()) if schema != "null " else AvroReader("nul", Causes())


def test_a_schema_of_a_few_lines_that_unfolds_to_millions_of_columns_is_refused():
    inner = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}
    types = [inner]
    for number in range(1, 25):
        last = types[-1] if number == 1 else f"R{number - 1}"
        named = {"type": "record", "name": f"R{number}"}
        types.append({**named, "fields": [{"name": "a", "type": last}, {"name": "b", "type": f"R{number - 1}"}]})
    whole = types[1]
    for one in types[2:]:
        one["fields"][0]["type"] = whole
        whole = one
    with pytest.raises(InvalidSchema, match="unfolds"):
        AvroReader(whole, Causes())
