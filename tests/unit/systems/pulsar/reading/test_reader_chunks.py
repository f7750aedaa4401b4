from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.systems.pulsar.reading.chunked_messages import ChunkCollector
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits, TooLarge


def chunk(uuid, number, count, size=0):
    return EntryMetadata(publish_ms=1, uuid=uuid, chunk_id=number, num_chunks=count, total_size=size)


@given(st.lists(st.lists(st.binary(max_size=20), min_size=2, max_size=5), min_size=1, max_size=4), st.randoms())
def test_interleaved_messages_are_put_together(messages, random):
    streams = [[(number, i, part) for i, part in enumerate(parts)] for number, parts in enumerate(messages)]
    collector, got = ChunkCollector(Limits()), {}
    entry = 0
    while any(streams):
        number, i, part = random.choice([s for s in streams if s]).pop(0)
        whole = collector.add(chunk(b"%d" % number, i, len(messages[number])), (1, entry), part)
        if whole:
            got[number] = whole.payload
        entry += 1
    assert got == {number: b"".join(parts) for number, parts in enumerate(messages)}
    assert collector.held_bytes == 0


def test_the_places_of_all_chunks_are_known():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 2), (1, 9), b"x")
    assert collector.add(chunk(b"a", 1, 2), (2, 0), b"y").places == ((1, 9), (2, 0))


def test_a_producer_that_begins_again_is_followed():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 1), b"2")
    collector.add(chunk(b"a", 0, 3), (1, 2), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 3), b"2")
    whole = collector.add(chunk(b"a", 2, 3), (1, 4), b"3")
    assert (whole.payload, whole.places) == (b"123", ((1, 2), (1, 3), (1, 4)))


def test_a_chunk_sent_twice_counts_once():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 1), b"2")
    assert collector.add(chunk(b"a", 1, 3), (1, 2), b"2") is None
    assert collector.add(chunk(b"a", 2, 3), (1, 3), b"3").payload == b"123"


def test_last_chunks_that_come_again_are_no_message_without_its_first_ones():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 2), (1, 0), b"1")
    assert collector.add(chunk(b"a", 1, 2), (1, 1), b"2").payload == b"12"
    assert collector.add(chunk(b"a", 1, 2), (1, 2), b"2") is None
    assert collector.has_finished(b"a")
    # a producer that begins again writes it again
    collector.add(chunk(b"a", 0, 2), (1, 3), b"1")
    assert collector.add(chunk(b"a", 1, 2), (1, 4), b"2").payload == b"12"


def test_a_message_without_its_first_chunks_is_given_without_a_payload():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 1, 3), (1, 0), b"2")
    whole = collector.add(chunk(b"a", 2, 3), (1, 1), b"3")
    assert (whole.payload, whole.places) == (None, ((1, 0), (1, 1)))


def test_a_hole_between_chunks_is_no_message():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    assert collector.add(chunk(b"a", 2, 3), (1, 1), b"3").payload is None


@pytest.mark.parametrize("size", [0, 3000])
def test_memory_is_bounded_by_forgetting_the_oldest(size):
    collector = ChunkCollector(Limits(), memory_bytes=10_000)
    for number in range(50):
        collector.add(chunk(b"%d" % number, 0, 2), (1, number), bytes(size))
        assert collector.held_bytes <= 10_000
    assert collector.add(chunk(b"49", 1, 2), (1, 60), bytes(size)).payload == bytes(2 * size)
    assert collector.add(chunk(b"0", 1, 2), (1, 61), bytes(size)).payload is None


def test_more_than_the_message_states_is_not_held():
    collector = ChunkCollector(Limits())
    for number in range(9):
        assert collector.add(chunk(b"a", number, 10, size=150), (1, number), bytes(100)) is None
        assert collector.held_bytes < 1500
    whole = collector.add(chunk(b"a", 9, 10, size=150), (1, 9), bytes(100))
    assert (whole.payload, whole.places, collector.held_bytes) == (None, ((1, 0), (1, 9)), 0)
    assert "hold 200 bytes, their message 150" in str(whole.wrong)


def test_less_than_the_message_states_is_wrong():
    collector = ChunkCollector(Limits())
    collector.add(chunk(b"a", 0, 2, size=150), (1, 0), bytes(70))
    assert collector.add(chunk(b"a", 1, 2, size=150), (1, 1), bytes(70)).wrong is not None


@pytest.mark.parametrize("limits", [Limits(max_entry_bytes=250), Limits(max_entry_rows=2)])
def test_more_than_the_limits_allow_is_not_held(limits):
    collector = ChunkCollector(limits)
    for number in range(3):
        collector.add(chunk(b"a", number, 4), (1, number), bytes(100))
    assert collector.held_bytes < 1000
    assert isinstance(collector.add(chunk(b"a", 3, 4), (1, 3), bytes(100)).wrong, TooLarge)


def test_a_producer_that_begins_again_after_too_much_is_followed():
    collector = ChunkCollector(Limits(max_entry_bytes=250))
    for number in range(3):
        collector.add(chunk(b"a", number, 4), (1, number), bytes(100))
    collector.add(chunk(b"a", 0, 2), (1, 4), b"1")
    assert collector.add(chunk(b"a", 1, 2), (1, 5), b"2").payload == b"12"


@pytest.mark.parametrize(("number", "count"), [(-1, 3), (3, 3), (1 << 30, 2)])
def test_a_chunk_that_is_none_of_its_message_is_wrong_at_once(number, count):
    whole = ChunkCollector(Limits()).add(chunk(b"a", number, count), (1, 0), b"x")
    assert (whole.payload, whole.places) == (None, ((1, 0),))
    assert f"chunk {number} of {count}" in str(whole.wrong)


def test_one_message_larger_than_the_memory_is_still_read():
    collector = ChunkCollector(Limits(), memory_bytes=10)
    collector.add(chunk(b"a", 0, 2), (1, 0), bytes(30))
    assert collector.add(chunk(b"a", 1, 2), (1, 1), bytes(30)).payload == bytes(60)
