"""Protobuf payloads: presence, numbers without a sign, enums, Google's own types, maps, what is inside itself."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import sys
import time

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidSchema, MissingDependency
from airflow_provider_streams.formats.decode_failures import Causes
from airflow_provider_streams.formats.protobuf.reader import ProtobufReader
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.formats.schema.row_types import type_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Protobuf
from tests.fuzz.formats import rounds
from tests.fuzz.formats.rounds import Done
from tests.seeds import examples

EXAMPLES = examples(40)
Kind = descriptor_pb2.FieldDescriptorProto
GOOGLES = (timestamp_pb2, wrappers_pb2, struct_pb2)


def made(*fields, syntax="proto3", nested=()):
    """A message `t.M` of fields (name, type, more): its writer's schema and its class."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
    file.dependency.extend(module.DESCRIPTOR.name for module in GOOGLES)
    enum = file.enum_type.add(name="E")
    for number, name in enumerate(("NONE", "ONE")):
        enum.value.add(name=name, number=number)
    message = file.message_type.add(name="M")
    for name, entries in nested:
        inner = message.nested_type.add(name=name)
        inner.options.map_entry = name.endswith("Entry")
        add(inner, entries)
    add(message, fields)
    pool = DescriptorPool()
    for module in GOOGLES:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    descriptor_set = base64.b64encode(files.SerializeToString()).decode()
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))
    return WriterSchema("protobuf", descriptor_set, "t.M"), found


def add(message, fields):
    for number, (name, kind, *more) in enumerate(fields, 1):
        field = message.field.add(name=name, number=number, label=Kind.LABEL_OPTIONAL)
        if isinstance(kind, str):
            field.type, field.type_name = (Kind.TYPE_ENUM if kind == ".t.E" else Kind.TYPE_MESSAGE), kind
        else:
            field.type = kind
        for word in more:
            if word == "repeated":
                field.label = Kind.LABEL_REPEATED
            elif word == "required":
                field.label = Kind.LABEL_REQUIRED
            else:
                field.proto3_optional, field.oneof_index = word == "optional", len(message.oneof_decl)
                message.oneof_decl.add(name=f"{'_' if word == 'optional' else ''}{name}_")


def read(schema, *payloads, padded=False):
    causes = Causes()
    values, codes = ProtobufReader(schema, causes, padded=padded).read(pa.array(payloads, pa.binary()))
    values.validate(full=True)
    return values.to_pylist(), [causes.text(code) for code in codes.tolist()]


def test_fields_without_presence_have_their_default_and_others_are_null():
    schema, message = made(
        ("a", Kind.TYPE_INT32), ("g", Kind.TYPE_SINT32, "choice"), ("b", Kind.TYPE_STRING, "optional"),
        ("c", Kind.TYPE_BYTES), ("d", Kind.TYPE_BOOL),
        ("e", Kind.TYPE_DOUBLE, "optional"), ("f", Kind.TYPE_INT64, "repeated"),
    )  # fmt: skip
    empty = {"a": 0, "g": None, "b": None, "c": b"", "d": False, "e": None, "f": []}
    values, causes = read(
        schema, b"", message(b="", e=0, g=0).SerializeToString(), message(f=[1, -1]).SerializeToString()
    )
    assert values == [empty, {**empty, "b": "", "e": 0.0, "g": 0}, {**empty, "f": [1, -1]}]
    assert causes == [""] * 3
    assert [one.nullable for one in type_of(schema).fields] == [False, True, True, False, False, True, False]


def test_numbers_without_a_sign_keep_their_size():
    schema, message = made(
        ("a", Kind.TYPE_UINT32), ("b", Kind.TYPE_FIXED32), ("c", Kind.TYPE_UINT64), ("d", Kind.TYPE_FIXED64, "repeated")
    )
    small, large = (1 << 32) - 1, (1 << 64) - 1
    assert str(type_of(schema)) == "struct<a: long, b: long, c: decimal(20,0), d: array<decimal(20,0)>>"
    values, _ = read(schema, message(a=small, b=small, c=large, d=[large, 0]).SerializeToString())
    exact = decimal.Decimal(large)
    assert values == [{"a": small, "b": small, "c": exact, "d": [exact, decimal.Decimal(0)]}]


def test_an_enums_number_without_a_name_is_its_digits():
    schema, message = made(("a", ".t.E"), ("b", ".t.E", "repeated"))
    values, causes = read(schema, b"", message(a=1, b=[0, 7, -1]).SerializeToString())
    assert values == [{"a": "NONE", "b": []}, {"a": "ONE", "b": ["NONE", "7", "-1"]}]
    assert causes == ["", ""]


def test_googles_own_types():
    schema, message = made(
        ("at", ".google.protobuf.Timestamp"), ("s", ".google.protobuf.StringValue"), ("any", ".google.protobuf.Struct")
    )
    assert str(type_of(schema)) == "struct<at: timestamp, s: string, any: string>"
    one = message()
    one.at.seconds, one.at.nanos = -1, 999_999_999
    one.s.value = ""
    one.any["k"] = [1, None]
    early, late = message(), message()
    early.at.nanos, late.at.seconds = -1, 253_402_300_800
    values, causes = read(schema, b"", one.SerializeToString(), early.SerializeToString(), late.SerializeToString())
    assert values[0] == {"at": None, "s": None, "any": None}
    assert values[1]["at"] == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    assert values[1]["s"] == ""
    assert json.loads(values[1]["any"]) == {"k": [1.0, None]}
    assert causes == ["", ""] + ["at: is no time of the years 1 to 9999"] * 2


def test_messages_in_messages_lists_and_maps():
    entry = ("CEntry", [("key", Kind.TYPE_UINT64), ("value", ".t.M.N")])
    schema, message = made(
        ("a", ".t.M.N"), ("b", ".t.M.N", "repeated"), ("c", ".t.M.CEntry", "repeated"), ("again", ".t.M"),
        nested=[("N", [("x", Kind.TYPE_INT32)]), entry],
    )  # fmt: skip
    assert str(type_of(schema)) == (
        "struct<a: struct<x: int>, b: array<struct<x: int>>, c: map<string,struct<x: int>>, again: string>"
    )
    one = message()
    one.a.x = 1
    one.b.add(x=2)
    one.b.add()
    one.c[(1 << 64) - 1].x = 3
    one.again.a.x = 4
    values, _ = read(schema, one.SerializeToString(), b"")
    inside = values[0].pop("again")
    assert json.loads(inside) == {"a": {"x": 4}}
    assert values[0] == {"a": {"x": 1}, "b": [{"x": 2}, {"x": 0}], "c": [(str((1 << 64) - 1), {"x": 3})]}
    assert values[1] == {"a": None, "b": [], "c": [], "again": None}


def test_bad_payloads_are_named_one_by_one():
    schema, message = made(("a", Kind.TYPE_STRING), ("b", Kind.TYPE_INT32))
    good = message(a="x", b=1).SerializeToString()
    bad = [good + b"\0", good[:-1], b"\x0a\x02\xff\xfe", b"\xff", b"\x0b"]
    values, causes = read(schema, good, *bad, good + b"\xf8\x01\x05")
    assert values[0] == values[-1] == {"a": "x", "b": 1}
    assert causes == ["", *["it is no message of its type"] * 5, ""]


def test_proto2_text_that_is_no_utf8_and_required_fields_that_lack():
    schema, _ = made(("a", Kind.TYPE_STRING), ("b", Kind.TYPE_INT32, "required"), syntax="proto2")
    values, causes = read(schema, b"\x10\x01", b"\x0a\x01\xff\x10\x01", b"\x0a\x01x", b"\x0a\x01x\x10\x02")
    assert values[0] == {"a": None, "b": 1}
    assert values[3] == {"a": "x", "b": 2}
    assert causes == ["", "one of its texts is not UTF-8", "it lacks a field that its type requires", ""]


def test_padding_is_cut_where_the_message_ends_and_nowhere_else():
    schema, message = made(
        ("a", Kind.TYPE_STRING), ("b", Kind.TYPE_FIXED64), ("c", Kind.TYPE_BYTES), ("d", Kind.TYPE_FIXED32)
    )
    payloads = [
        message(a="x\0\0"),
        message(b=1),
        message(c=bytes(5)),
        message(d=0x01000000),
        message(a="x", b=1 << 56),
        message(),
    ]
    whole = [one.SerializeToString() for one in payloads]
    plain = [read(schema, one)[0][0] for one in whole]
    for padding in (b"", b"\0", bytes(100)):
        values, causes = read(schema, *(one + padding for one in whole), padded=True)
        assert causes == [""] * len(whole)
        assert values == plain
    assert read(schema, whole[0] + b"\0\1", padded=True)[1] == ["it is no message of its type"]


@pytest.mark.parametrize(
    "payload", [b"\x0a\xff\xff\xff\xff\x07", b"\x1b" * 100_000, b"\x12\x80" * 100_000, b"\x80" * 1_000_000]
)
def test_hostile_payloads_cost_little(payload):
    schema, _ = made(("a", Kind.TYPE_STRING), ("self", ".t.M"))
    began = time.process_time()
    assert all(read(schema, payload)[1])
    assert time.process_time() - began < 5


def test_itself_inside_itself_many_times_is_refused():
    schema, _ = made(("self", ".t.M"))
    payload = b""
    for _ in range(3000):
        size = len(payload)
        payload = b"\x0a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + payload
    assert read(schema, payload)[1] == ["it is no message of its type"]


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_types_and_messages_are_read_as_the_runtime_reads_them(seed):
    rounds.protobuf(seed, Done(), most=16)


@pytest.mark.parametrize(
    ("descriptor", "message", "why"),
    [("AAAA", "t.M", "descriptor set"), ("", "t.M", "no message"), ("@@", "t.M", "descriptor set")],
)
def test_what_is_no_descriptor_set_is_refused(descriptor, message, why):
    with pytest.raises(InvalidSchema, match=why):
        type_of(WriterSchema("protobuf", descriptor, message))


def test_a_set_that_lacks_a_file_is_refused_with_the_way_to_make_it():
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", dependency=["other.proto"])
    lacking = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
    with pytest.raises(InvalidSchema, match="--include_imports"):
        type_of(WriterSchema("protobuf", lacking, "t.M"))
    files = [
        descriptor_pb2.FileDescriptorProto(name=f"{one}.proto", dependency=[f"{two}.proto"])
        for one, two in ("ab", "ba")
    ]
    circle = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()).decode()
    with pytest.raises(InvalidSchema, match="descriptor set"):
        type_of(WriterSchema("protobuf", circle, "t.M"))


def test_without_protobufs_runtime_the_error_names_the_extra(monkeypatch):
    schema, _ = made(("a", Kind.TYPE_INT32))
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pool", None)
    with pytest.raises(MissingDependency, match=r"airflow-provider-streams\[formats\]"):
        decoding_of(Protobuf(schema.schema, "t.M"), None, {})
