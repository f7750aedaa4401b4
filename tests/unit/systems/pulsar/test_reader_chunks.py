from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.systems.pulsar.chunks import ChunkCollector
from airflow_provider_streams.systems.pulsar.decode import EntryMetadata


def chunk(uuid, number, count, size=0):
    return EntryMetadata(publish_ms=1, uuid=uuid, chunk_id=number, num_chunks=count, total_size=size)


@given(st.lists(st.lists(st.binary(max_size=20), min_size=2, max_size=5), min_size=1, max_size=4), st.randoms())
def test_interleaved_messages_are_put_together(messages, random):
    streams = [[(number, i, part) for i, part in enumerate(parts)] for number, parts in enumerate(messages)]
    collector, got = ChunkCollector(), {}
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
    collector = ChunkCollector()
    collector.add(chunk(b"a", 0, 2), (1, 9), b"x")
    assert collector.add(chunk(b"a", 1, 2), (2, 0), b"y").places == ((1, 9), (2, 0))


def test_a_producer_that_begins_again_is_followed():
    collector = ChunkCollector()
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 1), b"2")
    collector.add(chunk(b"a", 0, 3), (1, 2), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 3), b"2")
    whole = collector.add(chunk(b"a", 2, 3), (1, 4), b"3")
    assert (whole.payload, whole.places) == (b"123", ((1, 2), (1, 3), (1, 4)))


def test_a_chunk_sent_twice_counts_once():
    collector = ChunkCollector()
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    collector.add(chunk(b"a", 1, 3), (1, 1), b"2")
    assert collector.add(chunk(b"a", 1, 3), (1, 2), b"2") is None
    assert collector.add(chunk(b"a", 2, 3), (1, 3), b"3").payload == b"123"


def test_a_message_without_its_first_chunks_is_given_without_a_payload():
    collector = ChunkCollector()
    collector.add(chunk(b"a", 1, 3), (1, 0), b"2")
    whole = collector.add(chunk(b"a", 2, 3), (1, 1), b"3")
    assert (whole.payload, whole.places) == (None, ((1, 0), (1, 1)))


def test_a_hole_between_chunks_is_no_message():
    collector = ChunkCollector()
    collector.add(chunk(b"a", 0, 3), (1, 0), b"1")
    assert collector.add(chunk(b"a", 2, 3), (1, 1), b"3").payload is None


def test_memory_is_bounded_by_forgetting_the_oldest():
    collector = ChunkCollector(memory_bytes=100)
    for number in range(50):
        collector.add(chunk(b"%d" % number, 0, 2), (1, number), bytes(30))
        assert collector.held_bytes <= 100
    assert collector.add(chunk(b"49", 1, 2), (1, 60), bytes(30)).payload == bytes(60)
    assert collector.add(chunk(b"0", 1, 2), (1, 61), bytes(30)).payload is None


def test_one_message_larger_than_the_memory_is_still_read():
    collector = ChunkCollector(memory_bytes=10)
    collector.add(chunk(b"a", 0, 2), (1, 0), bytes(30))
    assert collector.add(chunk(b"a", 1, 2), (1, 1), bytes(30)).payload == bytes(60)
