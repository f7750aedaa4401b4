"""The last events of streams, which have no marks between events: read from known places only, and never misread."""

from __future__ import annotations

import struct
from contextlib import closing
from typing import Any

import pytest

from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.tail.row_condition import RowCondition
from airflow_provider_streams.windows.tail.tail import Tail, known_places

pytestmark = pytest.mark.pravega


@pytest.fixture
def writer(lab, stream):
    with PravegaWriter(lab.system.endpoint, stream) as writer:
        yield writer


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        yield journal


@pytest.fixture
def tail_of(lab):
    systems = SystemPool(lambda: PravegaSystem(lab.system.endpoint))
    with closing(systems):
        yield lambda source, **more: Tail(systems, PravegaSource(source) if isinstance(source, str) else source, **more)


def numbers(events: Any) -> list[int]:
    return [int(event.payload.split()[0]) for event in events]


def numbered(first: int, end: int, keys: int = 7) -> list[tuple[str, bytes]]:
    return [(f"k{n % keys}", b"%d " % n + b"x" * (n % 300)) for n in range(first, end)]


def test_a_small_segment_is_read_from_its_start(writer, stream, tail_of):
    writer.write(numbered(0, 500))
    assert numbers(tail_of(stream).last(20).events) == [*range(480, 500)]
    assert numbers(tail_of(stream).last(1000).events) == [*range(500)]


def test_an_empty_stream(stream, tail_of):
    seen = tail_of(stream).last(20)
    assert (seen.events, seen.notes, seen.is_gone) == ((), (), False)


def test_beyond_the_limit_nothing_is_guessed(writer, stream, tail_of):
    writer.write([("k", struct.pack(">ii", 0, 4) + b"abcd" * 1000)] * 50)  # events that look like events inside
    seen = tail_of(stream, most_bytes=10_000).last(5)
    assert seen.events == ()
    (note,) = seen.notes
    assert "not read" in note
    assert "record cuts" in note


def test_recorded_cuts_are_places_to_begin_at(writer, system, stream, tail_of, journal):
    source = PravegaSource(stream)
    for first in range(0, 1000, 100):
        writer.write(numbered(first, first + 100))
        store(journal, system, sample(system, source), "test")
    writer.write(numbered(1000, 1010))
    tail = tail_of(stream, most_bytes=40_000, places=lambda plan: known_places(journal, source, plan))
    assert numbers(tail.last(20).events) == [*range(990, 1010)]
    assert numbers(tail.last(5).events) == [*range(1005, 1010)]
    seen = tail.last(1000)
    assert numbers(seen.events)[-1] == 1009
    assert "only the last" in seen.notes[0]


def test_a_scaled_stream_goes_back_to_replaced_segments(lab, writer, stream, tail_of):
    writer.write(numbered(0, 100))
    lab.split(stream)
    writer.write(numbered(100, 120))
    lab.split(stream)
    tail = tail_of(stream)
    everything = tail.last(1000).events
    assert sorted(numbers(everything)) == [*range(120)]
    assert len({event.place[0] for event in everything}) >= 2
    assert set(numbers(tail.last(30).events)) >= set(range(100, 120))
    assert len(tail.last(30).events) == 30


def test_a_truncated_stream_begins_where_it_was_cut(lab, writer, stream, tail_of):
    writer.write(numbered(0, 50))
    cut = lab.tail(stream)
    writer.write(numbered(50, 60))
    assert lab.call(stream_calls.truncate_stream(stream, cut.offsets))
    assert numbers(tail_of(stream).last(100).events) == [*range(50, 60)]


def test_following_over_scalings_until_the_stream_is_deleted(lab, writer, stream, tail_of):
    writer.write(numbered(0, 10))
    tail = tail_of(stream)
    seen = tail.last(3)
    got = []
    for turn in range(3):
        writer.write(numbered(10 + 20 * turn, 20 + 20 * turn))
        if turn:
            lab.split(stream)
        writer.write(numbered(20 + 20 * turn, 30 + 20 * turn))
        seen = tail.since(seen.plan, 10)
        got += numbers(seen.events)
    assert sorted(got) == [*range(10, 70)]
    lab.call(stream_calls.seal_stream(stream))
    seen = tail.since(seen.plan, 10)
    assert (seen.events, seen.is_gone) == ((), False)
    lab.call(stream_calls.delete_stream(stream))
    assert tail.since(seen.plan, 10).is_gone


def test_undecodable_events_keep_their_place(writer, stream, tail_of):
    writer.write([("k", b'{"id": 1}'), ("k", b"{"), ("k", b'{"id": 3}')])
    source = PravegaSource(stream, value=Json("id long"))
    one, bad, three = tail_of(source).last(20).events
    assert (one.value, three.value) == ({"id": 1}, {"id": 3})
    assert (bad.payload, bool(bad.cause)) == (b"{", True)
    (found,) = tail_of(source, condition=RowCondition("id > 1")).last(20).events
    assert found.value == {"id": 3}


def test_nothing_is_left_on_the_server(lab, writer, stream, tail_of):
    writer.write(numbered(0, 10))
    before = lab.call(stream_calls.list_streams(lab.scope))
    tail_of(stream).last(5)
    assert lab.call(stream_calls.list_streams(lab.scope)) == before
