"""The plain decoder against the protobuf library, whose descriptors say what Pulsar's headers are."""

from __future__ import annotations

import random
from functools import cache

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from tests.fuzz import plain
from tests.fuzz.mutations import mutated
from tests.fuzz.plain import RefusedError, Stored
from tests.fuzz.shapes import SHAPES, Source
from tests.fuzz.writer import SINGLE, Writer

Field = descriptor_pb2.FieldDescriptorProto
SINGLE_FIELDS = (
    ("partition_key", 2, Field.TYPE_BYTES),
    ("payload_size", 3, Field.TYPE_INT32),
    ("compacted_out", 4, Field.TYPE_BOOL),
    ("event_time", 5, Field.TYPE_UINT64),
    ("partition_key_b64_encoded", 6, Field.TYPE_BOOL),
    ("ordering_key", 7, Field.TYPE_BYTES),
    ("sequence_id", 8, Field.TYPE_UINT64),
    ("null_value", 9, Field.TYPE_BOOL),
    ("null_partition_key", 10, Field.TYPE_BOOL),
)


@cache
def library_class() -> type[Message]:
    """SingleMessageMetadata; texts as bytes, as they need not be UTF-8."""
    file = descriptor_pb2.FileDescriptorProto(name="single.proto", package="streams_tests", syntax="proto2")
    pair = file.message_type.add(name="KeyValue")
    single = file.message_type.add(name="SingleMessageMetadata")
    for name, number in (("key", 1), ("value", 2)):
        pair.field.add(name=name, number=number, type=Field.TYPE_BYTES, label=Field.LABEL_OPTIONAL)
    kind = {"type": Field.TYPE_MESSAGE, "type_name": ".streams_tests.KeyValue", "label": Field.LABEL_REPEATED}
    single.field.add(name="properties", number=1, **kind)
    for name, number, kind_of in SINGLE_FIELDS:
        single.field.add(name=name, number=number, type=kind_of, label=Field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("streams_tests.SingleMessageMetadata"))


def by_library(data: bytes) -> plain.Row | None:
    """A header as the library reads it; None: it refuses it."""
    try:
        found = library_class().FromString(data)
    except DecodeError:
        return None

    def of(name):
        return getattr(found, name) if found.HasField(name) else None

    return {
        "size": of("payload_size"),
        "compacted_out": bool(of("compacted_out")),
        "null_value": bool(of("null_value")),
        "key": of("partition_key"),
        "key_base64": bool(of("partition_key_b64_encoded")),
        "event_ms": plain.signed(of("event_time"), 64) or None,
        "ordering_key": of("ordering_key"),
        "sequence_id": plain.signed(of("sequence_id"), 64),
        "properties": [(plain.text(pair.key), plain.text(pair.value)) for pair in found.properties],
    }


def by_us(data: bytes) -> plain.Row | None:
    try:
        found = plain.single_header(data)._asdict()
        properties = plain.properties(found.pop("raw_properties"))
    except RefusedError:
        return None
    return {**found, "properties": properties}


def headers(seed: int, wildness: float):
    """Headers of a few batches, with tags and lengths as wide as the library takes them."""
    dice = random.Random(seed)
    source = Source(dice, dice.choice(SHAPES), wildness, widest=5, pool=100)
    for message in source._pool:
        size = int.from_bytes(message[:4], "big")
        yield dice, message[4 : 4 + size]


@pytest.mark.parametrize("wildness", [0, 0.1, 0.9])
@pytest.mark.parametrize("seed", range(10))
def test_legal_headers_are_read_as_the_library_reads_them(seed, wildness):
    for _, data in headers(seed, wildness):
        assert by_us(data) == by_library(data) is not None


@pytest.mark.parametrize("seed", range(20))
def test_damaged_headers_are_read_as_the_library_reads_them(seed):
    taken = 0
    for dice, data in headers(seed, 0.3):
        bad = mutated(dice, Stored(0, 0, None, b"", data)).payload
        # the other way round it need not be: the library does not take tags and lengths of more than five bytes
        if (expected := by_library(bad)) is not None:
            taken += 1
            assert by_us(bad) == expected
    assert taken


def test_the_writer_uses_every_liberty():
    """Else the fuzzing would prove little."""
    writer = Writer(random.Random(1), 0.5)
    wanted = [(1, [(1, b"n"), (2, b"v")]), (2, b"key"), (3, 5), (9, 1)]
    written = {writer.write(wanted, SINGLE) for _ in range(500)}
    assert len(written) > 400
    read = [plain.fields(data) for data in written]
    wires = {wire for found in read for _, wire, _ in found}
    assert wires == {plain.VARINT, plain.FIXED64, plain.BYTES, plain.GROUP, plain.FIXED32}
    assert any(found[0][0] == 9 for found in read), "fields change places"
    assert any([number for number, _, _ in found].count(2) > 1 for found in read), "fields are repeated"
    assert {plain.single_header(data).size for data in written} == {5}
    assert any(b"\x80\x80\x80\x80\x80\x80" in data for data in written), "varints are padded"
