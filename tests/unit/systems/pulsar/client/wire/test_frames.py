from __future__ import annotations

import contextlib
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import CorruptFrame, FrameTooLong, MissingDependency, ProtocolError
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire import frames
from airflow_provider_streams.systems.pulsar.client.wire.frames import FrameBuffer, encode_frame


def pour(buffer, data, sizes=(1 << 20,)):
    """Receive `data` in pieces of these sizes (the last one repeated); the frames as (buffer's view, frame)."""
    found, sizes = [], list(sizes)
    while data:
        space = buffer.space()
        size = min(len(space), len(data), sizes.pop(0) if len(sizes) > 1 else sizes[0])
        space[:size] = data[:size]
        found += [(buffer.view, frame) for frame in buffer.received(size)]
        data = data[size:]
    return found


ENTRIES = st.lists(
    st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.binary(max_size=300), st.binary(max_size=3000)),
    min_size=1,
    max_size=20,
)


@given(ENTRIES, st.lists(st.integers(1, 5000), min_size=1, max_size=50), st.booleans())
def test_frames_are_found_however_the_bytes_come(build, entries, sizes, noted):
    broker = frames.BrokerEntry(1_700_000_000_000, 41) if noted else None
    sent = [build.message_frame(*entry, consumer_id=7, broker=broker) for entry in entries]
    buffer = FrameBuffer(block_bytes=4096)
    got = []
    for piece in sent:  # an entry must be taken before the next receive
        for _, frame in pour(buffer, piece, sizes):
            assert buffer.kind(frame) == pb.BaseCommand.MESSAGE_FIELD_NUMBER
            got.append(buffer.entry(frame))
    # the views still show what they showed, although memory was received into since
    assert [(e.ledger, e.entry, bytes(e.metadata), bytes(e.payload)) for e in got] == entries
    assert {(e.consumer_id, e.broker) for e in got} == {(7, broker)}


def test_memory_is_received_into_again_when_nobody_sees_it_any_more(build):
    dice = random.Random(3)  # noqa: S311 - no secret
    buffer, blocks, held = FrameBuffer(block_bytes=1 << 17), set(), {}
    for number in range(600):
        payload = dice.randbytes(dice.randint(0, 20_000))
        for _, frame in pour(buffer, build.message_frame(1, number, b"", payload)):
            held[number] = (buffer.entry(frame).payload, payload)
        blocks.add(buffer.bytes.ctypes.data)
        if number % 10 == 9:  # all at once, as what is decoded together is let go
            held = {number: held[number] for number in dice.sample(sorted(held), 1)}
        assert all(view == sent for view, sent in held.values())
    assert len(blocks) < 20, "some 70 were filled"


def test_memory_of_one_connection_is_the_next_ones_unless_it_is_seen(build):
    first = FrameBuffer()
    at = first.bytes.ctypes.data
    frame = pour(first, build.message_frame(1, 5, b"", b"seen"))[-1][1]
    seen = first.entry(frame).payload
    del first

    others = [FrameBuffer() for _ in range(3)]
    assert at not in {one.bytes.ctypes.data for one in others}
    assert seen == b"seen"
    del others, seen

    assert at in {one.bytes.ctypes.data for one in [FrameBuffer() for _ in range(20)]}


COMMANDS = [pb.CommandPing(), pb.CommandSuccess(request_id=3), pb.CommandReachedEndOfTopic(consumer_id=9)]


@given(st.lists(st.sampled_from(COMMANDS)), st.lists(st.integers(1, 9), min_size=1))
def test_commands_come_one_by_one(commands, sizes):
    buffer = FrameBuffer()
    got = [buffer.command(frame) for _, frame in pour(buffer, b"".join(map(encode_frame, commands)), sizes)]
    assert got == commands


@given(st.binary(max_size=400), st.integers(1, 100))
def test_any_bytes_are_frames_or_a_protocol_error(data, size):
    buffer = FrameBuffer(block_bytes=1024)
    with contextlib.suppress(ProtocolError):
        pour(buffer, data, [size])


@given(ENTRIES, st.data())
def test_a_damaged_message_is_refused_or_another_frame(build, entries, data):
    ledger, entry, header, payload = entries[0]
    whole = build.message_frame(ledger, entry, header, payload)
    at = data.draw(st.integers(4, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    buffer = FrameBuffer()
    frame = pour(buffer, bytes(damaged))[0][1]
    protected = at >= len(whole) - len(payload) - len(header) - 4
    try:
        got = buffer.entry(frame)
    except ProtocolError:
        return
    assert not protected, "a damaged byte under the checksum was not noticed"
    assert got.payload is not None


@given(st.binary(min_size=6, max_size=300))
def test_any_frame_is_an_entry_or_a_protocol_error(data):
    buffer = FrameBuffer()
    frame = pour(buffer, struct.pack(">I", len(data)) + data)[0][1]
    for read in (buffer.kind, buffer.entry, buffer.command):
        with contextlib.suppress(ProtocolError):
            read(frame)


def test_a_wrong_checksum_names_the_entry_and_may_be_asked_for_again(build):
    buffer = FrameBuffer()
    frame = pour(buffer, build.message_frame(43, 17, b"m", b"payload", flip=True))[0][1]
    with pytest.raises(CorruptFrame, match="43:17") as caught:
        buffer.entry(frame)
    assert caught.value.retryable


def test_entries_without_a_checksum_are_read(build):
    buffer = FrameBuffer()
    frame = pour(buffer, build.message_frame(1, 2, b"meta", b"payload", checksum=False))[0][1]
    assert bytes(buffer.entry(frame).payload) == b"payload"


def test_negative_ids_and_fields_in_another_order_are_read_too(build):
    id_ = build.message_id(-1, -1).SerializeToString()
    body = b"\x18\x02\x12" + bytes([len(id_)]) + id_ + b"\x08\x05"  # redelivery count, id, consumer
    command = b"\x08\x09\x4a" + bytes([len(body)]) + body
    tail = build.message_frame(1, 1, b"m", b"p")
    rest = tail[8 + struct.unpack(">I", tail[4:8])[0] :]
    frame = struct.pack(">I", len(command)) + command + rest
    buffer = FrameBuffer()
    entry = buffer.entry(pour(buffer, struct.pack(">I", len(frame)) + frame)[0][1])
    assert (entry.consumer_id, entry.ledger, entry.entry) == (5, -1, -1)


def test_frames_longer_than_the_broker_allows_are_refused_before_they_are_received():
    buffer = FrameBuffer()
    with pytest.raises(ProtocolError, match="allows"):
        pour(buffer, struct.pack(">I", frames.DEFAULT_MAX_MESSAGE + frames.FRAME_SLACK + 1))


def test_what_a_broker_allows_is_read_up_to_our_limit_and_named_beyond_it(build):
    buffer = FrameBuffer(limit=40_000)
    buffer.legal = 1 << 31
    small, large = build.message_frame(3, 7, b"m", b"p"), build.message_frame(3, 8, b"m", bytes(60_000))
    assert len(pour(buffer, small + build.message_frame(3, 8, b"m", bytes(40_000)), [50_000])) == 2
    for size in (1, 3, 60_000):
        buffer = FrameBuffer(limit=40_000)
        buffer.legal = 1 << 31
        with pytest.raises(FrameTooLong, match="max_entry_bytes is 40000") as caught:
            pour(buffer, large, [size])
        assert caught.value.place == (3, 8)
        assert len(buffer.view) <= max(frames.BLOCK_BYTES, 100_000)


def test_frames_before_one_that_is_too_long_are_given_first(build):
    buffer = FrameBuffer(limit=40_000)
    buffer.legal = 1 << 31
    data = build.message_frame(3, 7, b"m", b"p") + build.message_frame(3, 8, b"m", bytes(60_000))
    buffer.space()[: len(data)] = data
    assert len(buffer.received(len(data))) == 1
    with pytest.raises(FrameTooLong):
        buffer.space()


def test_what_the_broker_noted_wrongly_names_the_entry(build):
    noted = frames.BrokerEntry(5, 6)
    frame = build.message_frame(4, 9, b"m", b"p", broker=noted)
    damaged = frame.replace(build.broker_entry(noted), b"\xff\xff\xff\xff")
    buffer = FrameBuffer()
    with pytest.raises(CorruptFrame, match="entry 4:9"):
        buffer.entry(pour(buffer, damaged)[0][1])


def test_a_frame_larger_than_a_block_is_read(build):
    buffer = FrameBuffer(block_bytes=1024)
    payload = bytes(100_000)
    small = build.message_frame(1, 1, b"m", b"p")
    found = pour(buffer, small + build.message_frame(1, 2, b"m", payload) + small, [700])
    assert len(found) == 3


@pytest.mark.parametrize(
    ("head", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x28", r"pulsar\+ssl"),
        (b"\0\0\0\1x", "allows"),
    ],
)
def test_other_protocols_are_named(head, hint):
    with pytest.raises(ProtocolError, match=hint):
        pour(FrameBuffer(), head)


def test_without_crc32c_the_missing_extra_is_named(build, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "google_crc32c", None)
    frames.checksum.cache_clear()
    buffer = FrameBuffer()
    frame = pour(buffer, build.message_frame(1, 2, b"m", b"p"))[0][1]
    with pytest.raises(MissingDependency, match=r"\[pulsar\]"):
        buffer.entry(frame)
    frames.checksum.cache_clear()
