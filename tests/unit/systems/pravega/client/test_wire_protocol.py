from __future__ import annotations

import struct
from dataclasses import fields
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import CorruptFrame, ProtocolError
from airflow_provider_streams.systems.pravega.client import wire_protocol

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
KINDS = {
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": LONG,
    "bool": st.booleans(),
    "text": st.text(max_size=40),
    "uuid": st.uuids(),
    "data": st.binary(max_size=80),
    "rest": st.binary(max_size=80),
}
MESSAGES = st.sampled_from(sorted(wire_protocol.MESSAGES.values(), key=lambda m: m.TYPE)).flatmap(
    lambda m: st.tuples(*(KINDS[kind] for kind in m.LAYOUT.split())).map(lambda values: m(*values))
)


@given(MESSAGES)
def test_every_message_survives_the_wire(message):
    frame = wire_protocol.encode(message)
    kind, length = wire_protocol.frame_size(frame[:8])
    assert length == len(frame) - 8
    assert wire_protocol.decode(kind, memoryview(frame)[8:]) == message


@given(MESSAGES, st.integers(0, 200))
def test_a_frame_cut_anywhere_is_corrupt_or_lacks_only_later_fields(message, size):
    payload = wire_protocol.encode(message)[8:]
    try:
        found = wire_protocol.decode(message.TYPE, memoryview(payload[:size]))
    except CorruptFrame:
        return
    assert type(found) is type(message)


@given(MESSAGES, st.binary(min_size=1, max_size=20))
def test_fields_of_later_versions_are_ignored(message, more):
    if message.LAYOUT.endswith("rest"):
        return
    assert wire_protocol.decode(message.TYPE, memoryview(wire_protocol.encode(message)[8:] + more)) == message


@given(st.sampled_from([*wire_protocol.MESSAGES, 0, 13, 99]), st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_corrupt_frame(kind, payload):
    try:
        wire_protocol.decode(kind, memoryview(payload))
    except CorruptFrame as error:
        assert wire_protocol.MESSAGES[kind].__name__ in str(error)  # noqa: PT017


def test_unknown_types_are_no_message():
    assert wire_protocol.decode(4711, memoryview(b"whatever")) is None


@pytest.mark.parametrize("length", [-1, 1 << 24, 0x48545450])
def test_lengths_that_no_server_sends_are_corrupt(length):
    with pytest.raises(CorruptFrame, match="claims"):
        wire_protocol.frame_size(struct.pack(">ii", 10, length))


def test_what_is_too_large_is_not_sent():
    with pytest.raises(ProtocolError, match="too long"):
        wire_protocol.encode(wire_protocol.GetStreamSegmentInfo(1, "s/t/0.#epoch.0", "t" * 65536))
    with pytest.raises(ProtocolError, match="too large"):
        wire_protocol.encode(wire_protocol.AppendBlock(UUID(int=1), bytes(1 << 24)))


def test_each_layout_names_the_fields_of_its_class():
    for message in wire_protocol.MESSAGES.values():
        assert len(message.LAYOUT.split()) == len(fields(message))


def test_data_is_not_copied():
    frame = bytearray(wire_protocol.encode(wire_protocol.SegmentRead("s", 0, False, False, b"abcdefgh", 1)))
    message = wire_protocol.decode(10, memoryview(frame)[8:])
    frame[frame.index(b"abcdefgh")] = ord("X")
    assert bytes(message.data) == b"Xbcdefgh"
