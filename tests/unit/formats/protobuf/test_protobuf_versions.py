"""Versions of a Protobuf message: the number of a field, and of an enum's value, is its identity."""

from __future__ import annotations

import base64
import json
import random
import struct

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto

Kind = descriptor_pb2.FieldDescriptorProto
INT32, INT64, TEXT, BOOL = Kind.TYPE_INT32, Kind.TYPE_INT64, Kind.TYPE_STRING, Kind.TYPE_BOOL


class Made:
    """The message `t.M` of fields (name, number, type, label) in a file with other messages and an enum."""

    def __init__(self, *fields, syntax="proto3", values=(("ZERO", 0), ("ONE", 1)), others=None):
        file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
        enum = file.enum_type.add(name="E")
        for name, number in values:
            enum.value.add(name=name, number=number)
        for name, inner in {"M": fields, **(others or {})}.items():
            message = file.message_type.add(name=name)
            for field in inner:
                add(message, *field)
        files = descriptor_pb2.FileDescriptorSet(file=[file])
        self.schema = WriterSchema("protobuf", base64.b64encode(files.SerializeToString()).decode(), "t.M")
        pool = DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        self.type = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))

    def written(self, **values):
        return self.type(**values).SerializeToString()


def add(message, name, number, kind, label=Kind.LABEL_OPTIONAL):
    is_map = label == "map"
    field = message.field.add(name=name, number=number, label=Kind.LABEL_REPEATED if is_map else label)
    if is_map:
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        add(entry, "key", 1, TEXT)
        add(entry, "value", 2, kind)
        kind = f".t.{message.name}.{entry.name}"
    if isinstance(kind, str):
        field.type_name, field.type = kind, Kind.TYPE_ENUM if kind == ".t.E" else Kind.TYPE_MESSAGE
    else:
        field.type = kind


def pinned(*versions):
    known = {"t": {str(at): one.schema for at, one in enumerate(versions)}}
    return Decoding.from_json(json.loads(json.dumps(decoding_of(Auto(), None, known, "message").to_json())))


def decoded(versions, payload, number=0):
    """The row of one payload of a version, and its cause."""
    named = pa.array([struct.pack(">q", number)])
    found = Decoder(pinned(*versions), "t").decode(Payloads(pa.array([payload], pa.binary()), None, named))
    found.value.validate(full=True)
    return found.value.to_pylist()[0], found.causes.to_pylist()[0]


def test_a_renamed_field_keeps_its_values_and_a_renumbered_one_does_not_get_those_of_its_old_number():
    older = Made(("status", 1, TEXT), ("paid", 2, BOOL))
    newest = Made(("state", 1, TEXT), ("status", 3, TEXT), ("paid", 2, BOOL))
    payload = older.written(status="old", paid=True)
    assert decoded((older, newest), payload) == ({"state": "old", "status": None, "paid": True}, None)
    theirs = newest.type.FromString(payload)
    assert (theirs.state, theirs.status, theirs.paid) == ("old", "", True)


def test_swapped_and_dropped_numbers_within_messages_lists_and_maps():
    inner = ("a", 1, INT32), ("b", 2, INT32), ("gone", 3, INT32)
    renumbered = ("b", 1, INT32), ("a", 2, INT32), ("gone", 4, INT32)
    fields = ("one", 1, ".t.In"), ("many", 2, ".t.In", Kind.LABEL_REPEATED), ("named", 3, ".t.In", "map")
    older, newest = Made(*fields, others={"In": inner}), Made(*fields, others={"In": renumbered})
    value = {"a": 1, "b": 2, "gone": 3}
    row, cause = decoded((older, newest), older.written(one=value, many=[value], named={"k": value}))
    want = {"b": 1, "a": 2, "gone": None}
    assert (row, cause) == ({"one": want, "many": [want], "named": [("k", want)]}, None)


@pytest.mark.parametrize("newest", [TEXT, Kind.TYPE_BYTES, ".t.In"])
def test_a_number_whose_type_changed_on_the_wire_makes_its_version_unfit(newest):
    versions = Made(("a", 1, INT32)), Made(("a", 1, newest), others={"In": [("b", 1, INT32)]})
    row, cause = decoded(versions, versions[0].written(a=5))
    assert row is None
    assert "its schema version 0 does not fit the plan's columns: a is" in cause


def test_a_number_that_was_widened_keeps_its_values():
    versions = Made(("a", 1, INT32)), Made(("b", 1, INT64))
    assert decoded(versions, versions[0].written(a=-5)) == ({"b": -5}, None)


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_values_of_enums_have_the_newest_versions_names(syntax):
    older = Made(
        ("e", 1, ".t.E"), ("es", 2, ".t.E", Kind.LABEL_REPEATED),
        syntax=syntax, values=(("ZERO", 0), ("ONE", 1), ("GONE", 2), ("MOVED", 3)),
    )  # fmt: skip
    newest = Made(
        ("e", 1, ".t.E"), ("es", 2, ".t.E", Kind.LABEL_REPEATED),
        syntax=syntax, values=(("ZERO", 0), ("FIRST", 1), ("MOVED", 4)),
    )  # fmt: skip
    row, cause = decoded((older, newest), older.written(e=1, es=[0, 1, 2, 3]))
    assert (row, cause) == ({"e": "FIRST", "es": ["ZERO", "FIRST", "GONE", "3"]}, None)


def varint(number):
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def test_unknown_numbers_of_proto2_enums_are_their_digits_in_their_place():
    """Google's runtimes set them aside as unknown fields, from lists and maps without their place."""
    made = Made(
        ("e", 1, ".t.E"), ("es", 2, ".t.E", Kind.LABEL_REPEATED), ("em", 3, ".t.E", "map"), ("n", 4, INT32),
        syntax="proto2",
    )  # fmt: skip
    entry = b"\x0a\x01k\x10\x09"
    apart = b"\x10\x01\x10\x09\x10\x00"
    packed = b"\x12\x03\x01\x09\x00"
    minus = b"\x08" + varint((1 << 64) - 2)
    for data in (apart, packed):
        row, cause = decoded((made,), minus + data + b"\x1a" + varint(len(entry)) + entry + b"\x20\x07")
        assert (row, cause) == ({"e": "-2", "es": ["ONE", "9", "ZERO"], "em": [("k", "9")], "n": 7}, None)
    assert decoded((made,), b"")[0] == {"e": None, "es": [], "em": [], "n": None}


def test_an_unknown_number_of_a_proto2_enum_that_json_cannot_say_is_a_bad_row():
    made = Made(("e", 1, ".t.E"), ("inner", 2, ".t.M"), ("es", 3, ".t.E", Kind.LABEL_REPEATED), syntax="proto2")
    row, cause = decoded((made,), b"\x12\x04\x08\x01\x18\x00")
    assert cause is None
    assert json.loads(row["inner"]) == {"e": "ONE", "es": ["ZERO"]}
    assert decoded((made,), b"\x12\x04\x08\x01\x18\x09") == (None, "inner: cannot be said as JSON")


K = Kind
ONE, MANY = Kind.LABEL_OPTIONAL, Kind.LABEL_REPEATED
FAMILIES = (
    (INT32, INT64, K.TYPE_UINT32, K.TYPE_UINT64, BOOL, ".t.E"), (K.TYPE_SINT32, K.TYPE_SINT64),
    (K.TYPE_FIXED32, K.TYPE_SFIXED32), (K.TYPE_FIXED64, K.TYPE_SFIXED64), (TEXT, K.TYPE_BYTES),
)  # fmt: skip
"""What https://protobuf.dev/programming-guides/proto3/#updating calls compatible."""
SIGNED = {32: (-(1 << 31), -1, 0, 1, 5, (1 << 31) - 1), 64: (-(1 << 63), -1, 0, 1, 5, 1 << 40, (1 << 63) - 1)}
UNSIGNED = {32: (0, 1, 5, (1 << 32) - 1), 64: (0, 1, 5, 1 << 40, (1 << 64) - 1)}
VALUES = {
    **dict.fromkeys((INT32, K.TYPE_SINT32, K.TYPE_SFIXED32), SIGNED[32]),
    **dict.fromkeys((INT64, K.TYPE_SINT64, K.TYPE_SFIXED64), SIGNED[64]),
    **dict.fromkeys((K.TYPE_UINT32, K.TYPE_FIXED32), UNSIGNED[32]),
    **dict.fromkeys((K.TYPE_UINT64, K.TYPE_FIXED64), UNSIGNED[64]),
    BOOL: (False, True), ".t.E": (0, 1), TEXT: ("", "é"), K.TYPE_BYTES: (b"", b"x", b"\xff"),
}  # fmt: skip


def is_held(value, kind):
    """Whether the newest type has the value, as it was written; of an enum, by its name."""
    if kind in (TEXT, K.TYPE_BYTES):
        return kind == K.TYPE_BYTES or value != b"\xff"
    return min(VALUES[kind]) <= value <= max(VALUES[kind])


def as_column(value, kind):
    """A value as its column has it."""
    return {0: "ZERO", 1: "ONE"}.get(value, str(int(value))) if kind == ".t.E" else value


def is_packed(older, newest, name, syntax):
    """Whether one value is now what was a list of numbers: the runtime passes over all of them."""
    number, label = next(one[1::2] for one in newest if one[0] == name)
    kind, was = next(one[2:] for one in older if one[1] == number)
    return syntax == "proto3" and label == ONE and was == MANY and kind not in (TEXT, K.TYPE_BYTES)


def evolution(dice):
    """Two or three versions whose types differ by number within a family alone."""
    families = {number: dice.choice(FAMILIES) for number in range(1, 6)}
    for _ in range(dice.randint(2, 3)):
        names = dice.sample("abcde", dice.randint(1, 4))
        numbers = dice.sample(sorted(families), len(names))
        yield [
            (name, number, dice.choice(families[number]), dice.choice((ONE, ONE, MANY)))
            for name, number in zip(names, numbers, strict=True)
        ]


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_random_versions_are_read_as_the_newest_ones_class_reads_them(seed, syntax):
    """As Google's runtime reads them; what it would cut, or pass over, is as it was written, or the row is bad."""
    dice = random.Random(f"{seed}{syntax}")  # noqa: S311
    specs = list(evolution(dice))
    versions = [Made(*one, syntax=syntax) for one in specs]
    values = {
        number: [dice.choice(VALUES[kind]) for _ in range(dice.randint(0, 2) if label == MANY else 1)]
        for _, number, kind, label in specs[0]
    }
    written = {name: values[number] if label == MANY else values[number][0] for name, number, _, label in specs[0]}
    data = versions[0].written(**written)
    row, cause = decoded(versions, data)
    fields = [(name, kind, label, values[number]) for name, number, kind, label in specs[-1] if number in values]
    packed = {name for name, *_ in fields if is_packed(specs[0], specs[-1], name, syntax)}
    lossy = [
        name
        for name, kind, label, older in fields
        if not all(is_held(one, kind) for one in older)
        or (label == ONE and len(older) > 1)
        or (name in packed and older)
    ]
    if cause is not None:
        assert lossy
        return
    theirs = versions[-1].type.FromString(data)
    for name, kind, label, older in fields:
        if name in lossy:
            here = [as_column(one, kind) for one in older]
            assert row[name] == (here if label == MANY else here[0])
        elif label == MANY:
            assert row[name] == [as_column(one, kind) for one in getattr(theirs, name)]
        else:
            assert row[name] == (as_column(getattr(theirs, name), kind) if older else None)
    lacking = {name for name, *_ in specs[-1]} - {name for name, *_ in fields}
    assert all(row[name] is None for name in lacking)


@pytest.mark.parametrize(
    ("older", "newest", "value", "want"),
    [
        (K.TYPE_UINT32, K.TYPE_UINT64, (1 << 32) - 1, (1 << 32) - 1),
        (K.TYPE_UINT64, INT64, 5, 5),
        (INT64, K.TYPE_UINT64, -1, -1),
        (INT32, K.TYPE_UINT32, -1, -1),
        (INT64, INT32, 1 << 40, 1 << 40),
        (BOOL, INT64, True, 1),
        (INT64, BOOL, 1, True),
        (".t.E", INT32, 1, 1),
        (".t.E", K.TYPE_UINT64, 1, 1),
        (INT32, ".t.E", 1, "ONE"),
        (K.TYPE_UINT64, ".t.E", 9, "9"),
        (BOOL, ".t.E", True, "ONE"),
        (TEXT, K.TYPE_BYTES, "é", "é".encode()),
        (K.TYPE_BYTES, TEXT, "é".encode(), "é"),
    ],
)
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_a_value_of_a_compatible_type_lands(older, newest, value, want, syntax):
    for label, given, landed in ((ONE, value, want), (MANY, [value] * 2, [want] * 2)):
        versions = [Made(("a", 1, one, label), syntax=syntax) for one in (older, newest)]
        assert decoded(versions, versions[0].written(a=given)) == ({"a": landed}, None)


UNFIT = "a: does not fit the plan's columns: "


@pytest.mark.parametrize(
    ("older", "newest", "value", "cause"),
    [
        (K.TYPE_UINT64, INT64, 1 << 63, "it is no int64, which the newest version has"),
        (INT64, BOOL, 2, "it is no bool, which the newest version has"),
        (K.TYPE_BYTES, TEXT, b"\xff", "it is no string, which the newest version has"),
        (TEXT, ".t.E", "ONE", "it is no enum, which the newest version has"),
    ],
)
def test_a_value_that_the_newest_type_does_not_hold_is_bad(older, newest, value, cause):
    versions = Made(("a", 1, older)), Made(("a", 1, newest))
    assert decoded(versions, versions[0].written(a=value)) == (None, UNFIT + cause)


def test_a_list_of_one_value_is_it_and_a_value_is_a_list_of_it():
    for syntax, kind, value in (("proto3", INT32, 5), ("proto2", TEXT, "x"), ("proto3", ".t.In", {"b": 5})):
        one, many = (
            Made(("a", 1, kind, label), others={"In": [("b", 1, INT32)]}, syntax=syntax) for label in (ONE, MANY)
        )
        assert decoded((one, many), one.written(a=value)) == ({"a": [value]}, None)
        assert decoded((one, many), one.written()) == ({"a": []}, None)
        assert decoded((many, one), many.written(a=[value])) == ({"a": value}, None)
        assert decoded((many, one), many.written()) == ({"a": None}, None)
        cause = UNFIT + "it has several values, and in the newest version one"
        assert decoded((many, one), many.written(a=[value, value])) == (None, cause)


def test_keys_and_values_of_maps_become_those_of_compatible_types():
    def version(key, value):
        made = Made(("a", 1, value, "map"))
        file = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(made.schema.schema)).file[0]
        file.message_type[0].nested_type[0].field[0].type = key
        pool = DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        files = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
        made.schema = WriterSchema("protobuf", files, "t.M")
        made.type = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))
        return made

    older = version(INT32, ".t.E")
    payload = older.written(a={-5: 1, 7: 0})
    for key, want in ((INT64, [(-5, 1), (7, 0)]), (K.TYPE_UINT64, [("-5", 1), ("7", 0)])):
        row, cause = decoded((older, version(key, INT64)), payload)
        assert (sorted(row["a"]), cause) == (want, None)
    row, cause = decoded((older, version(BOOL, INT64)), payload)
    assert (row, cause) == (None, UNFIT + "it is no bool, which the newest version has")


def test_types_that_changed_within_messages_are_read_by_their_place():
    """One message at two places, of which the newest version has another one at each."""
    older = Made(("one", 1, ".t.In"), ("many", 2, ".t.In", MANY), ("named", 3, ".t.In", "map"), others={
        "In": [("a", 1, K.TYPE_UINT32), ("b", 2, BOOL)]
    })  # fmt: skip
    newest = Made(("one", 1, ".t.In"), ("many", 2, ".t.Other", MANY), ("named", 3, ".t.In", "map"), others={
        "In": [("a", 1, K.TYPE_UINT64), ("b", 2, ".t.E")], "Other": [("a", 1, K.TYPE_UINT32, MANY), ("b", 2, INT32)]
    })  # fmt: skip
    value = {"a": 5, "b": True}
    payload = older.written(one=value, many=[value], named={"k": value})
    want = {"one": {"a": 5, "b": "ONE"}, "many": [{"a": [5], "b": 1}], "named": [("k", {"a": 5, "b": "ONE"})]}
    assert decoded((older, newest), payload) == (want, None)
