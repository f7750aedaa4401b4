from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import CutNotAtEventBoundary, EventTooLarge
from airflow_provider_streams.systems.pravega.reading.event_decoder import EventParser
from tests.seeds import examples

SHARD = "s/t/0.#epoch.0"
PAYLOADS = st.lists(
    st.one_of(st.binary(max_size=50), st.just(b"same size"), st.just(b""), st.just(bytes(20))), max_size=120
)


def stored(payloads: list[bytes]) -> bytes:
    return b"".join(struct.pack(">ii", 0, len(payload)) + payload for payload in payloads)


def parsed(data: bytes, sizes: list[int], start: int = 0, end: int | None = None):
    """Payloads and offsets, from blocks of these sizes (the last one repeats)."""
    parser = EventParser(SHARD, start, start + len(data) if end is None else end)
    payloads, offsets, at = [], [], 0
    while at < len(data):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        assert parser.next_byte == start + at
        events = parser.feed(memoryview(data)[at : at + size])
        at += size
        if events is not None:
            assert len(events)
            assert events.end == parser.at
            payloads += events.payloads.to_pylist()
            offsets += events.offsets.tolist()
    parser.finish()
    return payloads, offsets


@settings(max_examples=examples(200))
@given(PAYLOADS, st.lists(st.integers(1, 200), min_size=1, max_size=10), st.integers(0, 1 << 40))
def test_events_are_the_same_however_their_bytes_arrive(payloads, sizes, start):
    found, offsets = parsed(stored(payloads), sizes, start)
    assert found == payloads
    wanted, at = [], start
    for payload in payloads:
        wanted.append(at)
        at += 8 + len(payload)
    assert offsets == wanted


@settings(max_examples=examples(200))
@given(PAYLOADS, st.lists(st.tuples(st.integers(1, 200), st.integers(0, 100)), min_size=1, max_size=10))
def test_room_in_front_of_blocks_changes_nothing_but_the_room(payloads, shapes):
    data = stored(payloads)
    parser, found, at = EventParser(SHARD, 0, len(data)), [], 0
    while at < len(data):
        size, room = shapes[at % len(shapes)]
        block = data[at : at + size]
        memory = memoryview(bytearray(room) + block)
        events = parser.feed(memory, room)
        assert memory[room:] == block
        at += size
        found += [] if events is None else [events]
    parser.finish()
    assert [payload for events in found for payload in events.payloads.to_pylist()] == payloads


def test_the_rest_of_a_block_is_moved_to_the_room_in_front_of_the_next_one():
    data = stored([b"abc"] * 3)
    parser = EventParser(SHARD, 0, len(data))
    parser.feed(memoryview(data[:15]))
    memory = memoryview(bytearray(20) + data[15:])
    assert parser.feed(memory, 20).payloads.to_pylist() == [b"abc"] * 2
    assert memory[:20] == bytes(16) + data[11:15]


@pytest.mark.parametrize("odd", [0, 1, 15, 16, 17, 40, 99])
@pytest.mark.parametrize("size", [0, 1, 100])
def test_one_event_of_another_size_among_equal_ones_is_seen(odd, size):
    payloads = [bytes([number % 256]) * size for number in range(100)]
    payloads[odd] = b"another size"
    assert parsed(stored(payloads), [1 << 20])[0] == payloads


def test_a_payload_that_looks_like_headers_is_no_event():
    payloads = [struct.pack(">ii", 0, 4) * 5, b"x", struct.pack(">ii", 0, 0)] * 30
    for size in (1 << 20, 13):
        assert parsed(stored(payloads), [size])[0] == payloads


def test_a_large_event_is_put_together_once():
    payload = bytes(range(256)) * 4096
    data = stored([b"before", payload, b"after"])
    assert parsed(data, [1000])[0] == [b"before", payload, b"after"]


@pytest.mark.parametrize("header", [struct.pack(">ii", 1, 5), b"\xff" * 8, struct.pack(">ii", 0, -5), b"plain text"])
def test_bytes_that_are_no_header_name_their_offset_and_both_causes(header):
    with pytest.raises(CutNotAtEventBoundary, match=r"offset 7 .* cut may point inside an event, .*byte stream"):
        parsed(header + bytes(100), [50], start=7)
    data = stored([b"abc"] * 3) + header + bytes(100)
    with pytest.raises(CutNotAtEventBoundary, match=r"offset 33 .*byte stream"):
        parsed(data, [len(data)])
    many = stored([b"abc"] * 300) + header + bytes(100)
    with pytest.raises(CutNotAtEventBoundary, match="offset 3300 "):
        parsed(many, [len(many)])


def test_a_length_beyond_the_range_is_refused_before_its_bytes_are_collected():
    parser = EventParser(SHARD, 0, 100)
    with pytest.raises(CutNotAtEventBoundary, match="offset 0"):
        parser.feed(memoryview(struct.pack(">ii", 0, 93)))
    parser = EventParser(SHARD, 0, 100)
    with pytest.raises(CutNotAtEventBoundary, match="ends at offset 100, inside the event at 11"):
        parser.feed(memoryview(stored([b"abc"]) + struct.pack(">ii", 0, 82)))


def test_an_event_that_is_too_large_is_refused_before_its_bytes_are_collected():
    header = stored([b"abc"]) + struct.pack(">ii", 0, 1000)
    parser = EventParser(SHARD, 0, 1 << 40, 1007)
    with pytest.raises(EventTooLarge, match=f"{SHARD}: the event at offset 11 says it has 1008 bytes.*max_event_bytes"):
        parser.feed(memoryview(header))
    parser = EventParser(SHARD, 0, 1 << 40, 1008)
    parser.feed(memoryview(header))
    assert len(parser.feed(memoryview(bytes(1000)))) == 1


@pytest.mark.parametrize("cut", [1, 7, 8, 10])
def test_a_range_that_ends_inside_an_event_is_refused(cut):
    data = stored([b"abc", b"abc"])[: 11 + cut]
    with pytest.raises(CutNotAtEventBoundary):
        parsed(data, [len(data)])


def test_slices_share_the_events_and_their_ends():
    parser = EventParser(SHARD, 100, 100 + 11 * 25)
    events = parser.feed(memoryview(stored([b"abc"] * 25)))
    parts = list(events.slices(10))
    assert [len(part) for part in parts] == [10, 10, 5]
    assert [part.end for part in parts] == [210, 320, 375]
    assert [int(part.offsets[0]) for part in parts] == [100, 210, 320]


def test_after_a_gap_parsing_starts_again():
    parser = EventParser(SHARD, 0, 1000)
    parser.feed(memoryview(stored([b"abc"]) + b"\0\0"))
    assert (parser.at, parser.next_byte) == (11, 13)
    parser.restart(500)
    assert (parser.at, parser.next_byte) == (500, 500)
    assert parser.feed(memoryview(stored([b"xyz"]))).offsets.tolist() == [500]
