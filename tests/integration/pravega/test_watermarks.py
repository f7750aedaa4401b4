"""Basis `event` on a real server, with Java writers that note times: what windows hold, and what is late."""

from __future__ import annotations

import itertools
import re
import time
from datetime import timedelta

import pytest

from airflow_provider_streams.errors import StartTrimmed, WindowNotReady
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pravega import calls, watermarks
from airflow_provider_streams.systems.pravega.calls import Settings
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.watermarks import Mark
from airflow_provider_streams.testing.servers.waiting import wait_until

pytestmark = pytest.mark.pravega


def marks(lab, stream):
    return [Mark.parse(stream, data) for data in watermarks.stored_marks(lab.system.client, stream)]


def window(since, until, unit=timedelta(milliseconds=1)):
    return Window(*(watermarks._EPOCH + moment * unit for moment in (since, until)))


def rows(lab, plan):
    """Writer, time and offset of every event of a plan."""
    found = []
    for split in plan.splits:
        for batch in lab.system.read(plan, split, ["event", "offset"]):
            for event, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                writer, noted = event.decode().split(":")
                found.append((writer, int(noted), offset))
    return found


def test_marks_narrow_a_window_of_event_time_to_a_superset(lab, peer, stream):
    peer.ask("note", *stream.split("/"), 40, 200, 1000)
    wait_until(lambda: len(marks(lab, stream)) >= 4, "watermarks")
    found = marks(lab, stream)
    assert found[0].lower <= found[0].upper < found[-1].lower
    every, _ = lab.read(lab.plan(stream))
    times = [int(event.split(b":")[0]) for event in every]
    assert times == [1000 * number for number in range(40)]
    since, until = found[1].upper + 1, found[-2].lower
    plan = lab.plan(stream, basis="event", window=window(since, until))
    read = {int(event.split(b":")[0]) for event in lab.read(plan)[0]}
    assert {moment for moment in times if since <= moment < until} <= read
    assert len(read) < 40, "and it is narrower than the stream"
    with pytest.raises(WindowNotReady, match=r"have noted times up to \d+ \(ms since 1970\)"):
        lab.plan(stream, basis="event", window=window(since, since + 10**9))
    # the same marks, by writers who note other units
    micro = PravegaSource(stream, event_time_unit="us")
    same = window(since, until, timedelta(microseconds=1))
    assert lab.plan(stream, basis="event", source=micro, window=same).end_cut == plan.end_cut
    assert lab.call(calls.truncate_stream(stream, found[0].cut.offsets))
    first = window(0, until)
    with pytest.raises(StartTrimmed, match="no watermark is held that is early enough"):
        lab.plan(stream, basis="event", window=first)
    accepted = lab.plan(stream, basis="event", window=first, on_loss="record")
    assert accepted.ranges[0].verdict.startswith("unproven"), "nobody knows whether anything was lost"


def test_what_is_noted_behind_a_mark_is_in_no_window_and_the_plans_say_which_rows_these_are(lab, peer):
    stream = f"{lab.scope}/late"
    waits = 10  # less than from one mark to the next
    assert lab.call(calls.create_stream(stream, Settings(timestamp_aggregation_ms=waits)))
    clock = 0

    def say(writer, noted):
        peer.ask("say", writer, *stream.split("/"), noted, f"{writer}:{noted}")

    def go_on_until(count, *writers):
        """The writers note the same times, until there are so many marks."""
        nonlocal clock
        deadline = time.monotonic() + 60
        while len(marks(lab, stream)) < count and time.monotonic() < deadline:
            for writer in writers:
                say(writer, clock)
            clock += 100
            time.sleep(0.2)
        assert len(marks(lab, stream)) >= count

    go_on_until(2, "a", "b")
    go_on_until(4, "a")
    behind = marks(lab, stream)[2].lower
    for noted in (behind - 300, behind - 200, behind - 100):
        say("b", noted)
    go_on_until(5, "a")
    say("b", clock)
    go_on_until(6, "a", "b")
    for writer in ("a", "b"):
        peer.ask("hush", writer)

    edges = [0, *(mark.lower for mark in marks(lab, stream))]
    every = [row for row in rows(lab, lab.plan(stream)) if row[1] < edges[-1]]
    in_windows, late = [], []
    for since, until in itertools.pairwise(edges):
        plan = lab.plan(stream, basis="event", window=window(since, until))
        superset, told = plan.remarks
        assert "a superset of the window" in superset
        assert f"silent for more than {waits} ms" in told
        settled = int(re.search(r"0\.#epoch\.0@(\d+)$", told)[1])
        read = rows(lab, plan)
        in_windows += [row for row in read if since <= row[1] < until]
        late += [row for row in read if row[1] < since and row[2] >= settled]
    assert len(set(in_windows)) == len(in_windows)
    assert len(set(late)) == len(late)
    assert {row[0] for row in late} == {"b"}
    assert len(late) == 3
    assert sorted(in_windows + late) == sorted(every), "each event is in one window, or late in one"
