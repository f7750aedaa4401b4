"""Streams of a scope, each in its own table, by cuts that are recorded of the scope as a whole."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_streams import PravegaSource, Window
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.backfill import Selection, parse_select
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window_schedule import schedule_through
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.plan.cut_recording import sample, store
from airflow_provider_streams.windows.run.request import ReadRequest, WindowsOfSpan
from tests.integration.fanning_out import READER, FanOut

pytestmark = pytest.mark.pravega


class Streams:
    """Streams of one scope, whose events are numbers, and edges at which cuts of all were recorded."""

    def __init__(self, fan: FanOut, lab: Any) -> None:
        self.fan, self.lab, self.written = fan, lab, Counter[str]()
        self.edges: list[datetime] = []

    def make(self, *names: str) -> None:
        for name in names:
            assert self.lab.call(stream_calls.create_stream(f"{self.lab.scope}/{name}", Settings()))

    def write(self, count: int, *names: str) -> None:
        for name in names:
            with PravegaWriter(self.lab.system.endpoint, f"{self.lab.scope}/{name}") as writer:
                numbers = range(self.written[name], self.written[name] + count)
                writer.write((f"k{number}", b"%d" % number) for number in numbers)
            self.written[name] += count

    def record(self) -> None:
        self.edges.append(datetime.now(UTC))
        with Journal.open(self.fan.journal_url) as journal:
            store(journal, self.lab.system, sample(self.lab.system, self.fan.source), "tests")

    def window(self, number: int) -> Window:
        return Window(*self.edges[number : number + 2])

    def holds(self, name: str, first: int, end: int) -> bool:
        """Whether a stream's table has these numbers, each once, and no other."""
        counts = self.fan.counts(name, "event")
        return {int(value): count for value, count in counts.items()} == dict.fromkeys(range(first, end), 1)

    def only(self, name: str) -> PravegaSource:
        return PravegaSource(f"{self.lab.scope}/{name}")


@pytest.fixture
def streams(lab: Any, pravega_server: Any, tmp_path: Any) -> Streams:
    options = {"controller": pravega_server.controller_uri}
    return Streams(FanOut(tmp_path, PravegaSource(scope=lab.scope), options, RecordedCuts()), lab)


def test_each_stream_of_a_scope_lands_in_its_own_table(streams: Streams) -> None:
    fan = streams.fan
    streams.make("a", "b.c", "d")
    streams.record()
    streams.write(10, "a", "b.c")
    streams.record()
    streams.make("late")
    streams.lab.split(f"{streams.lab.scope}/a")
    streams.write(20, "a", "late")
    streams.record()
    first = fan.read(streams.window(0), "one")
    assert not first.failures
    assert fan.jobs == 1
    assert streams.holds("a", 0, 10)
    assert {int(value) for value in fan.counts("b_c", "event")} == set(range(10))
    assert fan.rows("d") == []
    assert fan.states(streams.only("d"), streams.window(0)) == ["covered"]
    assert not fan.read(streams.window(1), "two").failures
    assert streams.holds("a", 0, 30)
    assert streams.holds("late", 0, 20)
    assert fan.states(streams.only("late"), streams.window(0)) == ["covered"], "it holds nothing of what was before it"


def test_a_stream_that_was_made_after_a_window_holds_nothing_of_it(streams: Streams) -> None:
    fan = streams.fan
    streams.make("a")
    streams.record()
    streams.write(5, "a")
    streams.record()
    streams.write(5, "a")
    streams.record()
    streams.make("late")
    streams.write(7, "late", "a")
    streams.record()
    span = Window(streams.edges[0], streams.edges[3])
    assert not fan.read(streams.window(2), "three").failures
    assert streams.holds("late", 0, 7)
    for number in (0, 1):
        assert not fan.read(streams.window(number), f"again-{number}").failures
    assert streams.holds("late", 0, 7)
    assert streams.holds("a", 0, 17)
    assert fan.states(streams.only("late"), span) == ["covered"] * 3


def test_a_backfill_fills_what_each_stream_lacks(streams: Streams) -> None:
    fan = streams.fan
    streams.make("a", "b")
    streams.record()
    streams.write(5, "a", "b")
    streams.record()
    whole = streams.window(0)
    with Journal.open(fan.journal_url) as journal:
        request = ReadRequest(
            fan.source,
            READER,
            WindowsOfSpan(whole, Selection(parse_select("missing"))),
            TaskInstanceKey("dag", "fill", "fill", 1),
            basis=RecordedCuts(),
            window_schedule=schedule_through(whole.end - whole.start, whole.start),
            tables=fan.sink,
        )
        outcome = fan.run(journal, request)
    assert not outcome.failures
    assert fan.jobs == 1
    assert streams.holds("a", 0, 5)
    assert streams.holds("b", 0, 5)


def test_a_stream_that_was_deleted_before_it_ever_landed_is_lost_where_a_cut_names_it(streams: Streams) -> None:
    """The cuts of the whole say of which windows it held events, and of which it held none."""
    fan, scope = streams.fan, streams.lab.scope
    streams.make("a")
    streams.record()
    streams.write(5, "a")
    streams.record()
    streams.make("brief")
    streams.write(5, "a", "brief")
    streams.record()
    for gone in (stream_calls.seal_stream, stream_calls.delete_stream):
        assert streams.lab.call(gone(f"{scope}/brief"))
    streams.write(5, "a")
    streams.record()
    streams.write(5, "a")
    streams.record()
    failures = [fan.read(streams.window(number), f"run-{number}").failures for number in range(4)]
    named = [{(name, one.error_type) for (name, _), one in failed.items()} for failed in failures]
    lost = {(f"{scope}/brief", "StartTrimmed")}
    assert named == [set(), lost, lost, set()]
    assert streams.holds("a", 0, 20)
    assert not fan.read(streams.window(1), "accepted", on_loss="record").failures
