from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.testing.fake import FakeSource, FakeSystem, dump
from airflow_provider_streams.windows.tail import tail as module
from airflow_provider_streams.windows.tail.event import Event
from airflow_provider_streams.windows.tail.row_condition import RowCondition
from airflow_provider_streams.windows.tail.tail import Tail


@pytest.fixture
def server(tmp_path):
    """Two shards of 10,000 events of 100 bytes; its facts can be changed."""

    class Server:
        def set(self, **facts):
            dump(tmp_path / "truth.json", **facts)

        def tail(self, **more) -> Tail:
            options = {"truth": str(tmp_path / "truth.json"), "token": "", "password": ""}
            return Tail(SystemPool(lambda: FakeSystem.from_options(options)), FakeSource("numbers"), **more)

    server = Server()
    server.set(events=10_000, value_bytes=100)
    return server


def every(step: int):
    """A known place every so many events."""
    return lambda plan: {shard: [Position.of(n) for n in range(0, 10_000, step)] for shard in plan.end_cut}


def numbers(events) -> list[tuple[str, int]]:
    return [(event.place[0], event.place[1][0]) for event in events]


def of_both(first: int, end: int) -> list[tuple[str, int]]:
    return [(f"numbers-{shard}", number) for shard in (0, 1) for number in range(first, end)]


@pytest.mark.parametrize("step", [1, 7, 999, 100_000])
def test_the_last_events_wherever_the_known_places_are(server, step):
    seen = server.tail(places=every(step)).last(20)
    assert numbers(seen.events) == of_both(9_990, 10_000)
    assert seen.notes == ()


def test_a_limit_of_bytes_is_kept_and_said(server):
    tail = server.tail(places=every(10), most_bytes=40_000, condition=RowCondition("_number < 9_900"))
    seen = tail.last(1000)
    assert numbers(seen.events) == of_both(9_800, 9_900)
    first, second = seen.notes
    assert "numbers-0: only the last 20,000 of 1,000,000 stored bytes" in first
    assert second.startswith("numbers-1: only")


def test_without_a_place_near_enough_nothing_is_read(server):
    seen = server.tail(most_bytes=40_000).last(1)
    assert seen.events == ()
    assert "numbers-0: not read. Events begin at known places only, and the nearest one is 1,000,000" in seen.notes[0]


def test_events_that_come_are_given_once(server):
    tail = server.tail(places=every(10))
    seen = tail.last(2)
    server.set(events=10_005, value_bytes=100)
    seen = tail.since(seen.plan, 2)
    assert numbers(seen.events) == of_both(10_000, 10_005)
    seen = tail.since(seen.plan, 2)
    assert (seen.events, seen.is_gone) == ((), False)


def test_more_events_than_may_be_looked_through_are_left_out_and_counted(server):
    tail = server.tail(places=every(10), most_bytes=4_000)
    seen = tail.last(2)
    server.set(events=10_100, value_bytes=100)
    tail = replace(tail, places=lambda plan: {shard: [Position.of(10_090)] for shard in plan.end_cut})
    seen = tail.since(seen.plan, 2)
    assert numbers(seen.events) == of_both(10_099, 10_100)
    assert "20,000 stored bytes came meanwhile" in seen.notes[0]


def test_removed_events_are_said(server):
    tail = server.tail(places=every(10))
    seen = tail.last(2)
    server.set(events=10_100, value_bytes=100, head=10_050)
    seen = tail.since(seen.plan, 2)
    assert numbers(seen.events) == of_both(10_050, 10_100)
    assert "events were removed before they were read: trimmed" in seen.notes[0]


def test_a_shard_that_cannot_be_read_does_not_hide_the_others(server, monkeypatch):
    read = module._events

    def broken(reading, system, piece, count):
        if piece.shard == "numbers-0":
            raise module.ProtocolError("numbers-0: a malformed entry")
        return read(reading, system, piece, count)

    monkeypatch.setattr(module, "_events", broken)
    seen = server.tail(places=every(10)).last(2)
    assert numbers(seen.events) == [("numbers-1", 9_998), ("numbers-1", 9_999)]
    assert "a malformed entry" in seen.notes[0]


def test_a_missing_package_is_an_error_and_no_event_that_cannot_be_shown(server, monkeypatch):
    def fails(*_):
        raise module.MissingDependency("fastavro", "formats")

    monkeypatch.setattr(module, "_events", fails)
    with pytest.raises(module.MissingDependency, match="fastavro"):
        server.tail().last(5)


def test_events_are_ordered_by_time_where_there_is_one():
    start = datetime(2026, 11, 20, tzinfo=UTC)

    def found(shard: str, *seconds: int | None):
        times = [None if one is None else start + timedelta(seconds=one) for one in seconds]
        events = [Event((shard, (n,)), {}, time, None, None, b"") for n, time in enumerate(times)]
        return module._Found(None, events, None)

    events = module._last_of([found("a", 1, 9, 5), found("b", 2, None)], [], 4)
    assert numbers(events) == [("b", 0), ("a", 2), ("a", 1), ("b", 1)]
