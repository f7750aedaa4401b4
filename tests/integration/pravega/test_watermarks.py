"""Basis `event` on a real server, with Java writers that note times: what windows hold, and what is late."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, WindowNotReady
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.client.stream_configuration import Settings
from airflow_provider_streams.systems.pravega.planning import watermarks
from airflow_provider_streams.systems.pravega.planning.watermarks import Mark
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from stream_servers.waiting import wait_until
from tests.integration.event_rows import Rows

pytestmark = pytest.mark.pravega


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


def marks(lab, stream):
    return [Mark.parse(stream, data) for data in watermarks.stored_marks(lab.system.client, stream)]


def window(since, until, unit=timedelta(milliseconds=1)):
    return Window(*(watermarks._EPOCH + moment * unit for moment in (since, until)))


def superset(lab, stream, since, until, **more):
    """The plan of all between the marks around a window."""
    asked = EventTime(timedelta(0), rows="superset")
    return lab.plan(
        stream, **{"basis": "event", "slack": timedelta(0), "event": asked, "window": window(since, until)} | more
    )


def exact(lab, stream, since, until):
    """The plan of a window's own rows."""
    asked = EventTime(timedelta(0), timedelta(0), "noted", "ms")
    source = PravegaSource(stream, value=Json("noted long"))
    return superset(lab, stream, since, until, event=asked, source=source)


def rows(lab, plan):
    """Writer, time and offset of every event of a plan that has a time."""
    found = []
    for split in plan.splits:
        for batch in lab.system.read(plan, split, ["event", "offset"]):
            for event, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                writer, noted = event.decode().split(":")
                found += [(writer, int(noted), offset)] if noted else []
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
    plan = superset(lab, stream, since, until)
    read = {int(event.split(b":")[0]) for event in lab.read(plan)[0]}
    assert {moment for moment in times if since <= moment < until} <= read
    assert len(read) < 40, "and it is narrower than the stream"
    with pytest.raises(WindowNotReady, match=r"have noted times up to \d+ \(ms since 1970\)"):
        superset(lab, stream, since, since + 10**9)
    # the same marks, by writers who note other units
    micro = PravegaSource(stream, event_time_unit="us")
    same = window(since, until, timedelta(microseconds=1))
    assert superset(lab, stream, since, until, source=micro, window=same).end_cut == plan.end_cut
    assert lab.call(stream_calls.truncate_stream(stream, found[0].cut.offsets))
    with pytest.raises(StartTrimmed, match="no watermark is held that is early enough"):
        superset(lab, stream, 0, until)
    accepted = superset(lab, stream, 0, until, on_loss="record")
    assert accepted.ranges[0].verdict.startswith("unproven"), "a loss can be neither proven nor excluded"


@pytest.mark.slow
def test_what_is_noted_after_a_mark_is_in_no_window_and_the_plans_say_which_rows_these_are(lab, peer, journal):
    stream = f"{lab.scope}/late"
    waits = 10  # less than from one mark to the next
    assert lab.call(stream_calls.create_stream(stream, Settings(timestamp_aggregation_ms=waits)))
    clock = 0

    def say(writer, noted):
        peer.ask("say", writer, *stream.split("/"), noted, f"{writer}:{noted}")

    def go_on_until(count, *writers):
        """The writers note the same times, until there are so many marks."""
        nonlocal clock
        deadline = time.monotonic() + 600
        while len(marks(lab, stream)) < count and time.monotonic() < deadline:
            for writer in writers:
                say(writer, clock)
            clock += 100
            time.sleep(0.2)
        assert len(marks(lab, stream)) >= count

    go_on_until(2, "a", "b")
    go_on_until(4, "a")
    late_from = marks(lab, stream)[2].lower
    for noted in (late_from - 300, late_from - 200, late_from - 100):
        say("b", noted)
    go_on_until(5, "a")
    for number in range(3):
        peer.ask("say", "c", *stream.split("/"), "-", f"c{number}:")  # without a time
    say("b", clock)
    go_on_until(6, "a", "b")
    for writer in ("a", "b", "c"):
        peer.ask("hush", writer)

    edges = [0, *(mark.lower for mark in marks(lab, stream))]
    every = [row for row in rows(lab, lab.plan(stream)) if row[1] < edges[-1]]
    in_windows, late = [], []
    for since, until in itertools.pairwise(edges):
        plan = superset(lab, stream, since, until)
        wide, told = plan.remarks
        assert "a superset of the window" in wide
        assert f"a silence of more than {waits} ms" in told
        settled = int(re.search(r"0\.#epoch\.0@(\d+)$", told)[1])
        read = rows(lab, plan)
        in_windows += [row for row in read if since <= row[1] < until]
        late += [row for row in read if row[1] < since and row[2] >= settled]
    assert len(set(in_windows)) == len(in_windows)
    assert len(set(late)) == len(late)
    assert {row[0] for row in late} == {"b"}
    assert len(late) == 3
    assert sorted(in_windows + late) == sorted(every), "each event is in one window, or late in one"
    untimed = Counter([b"c0:", b"c1:", b"c2:"])
    landed, counted, whole = by_field(lab, journal, stream, edges)
    assert landed == Counter(f"{row[0]}:{row[1]}".encode() for row in in_windows) + untimed
    assert counted == Counter(f"{row[0]}:{row[1]}".encode() for row in late)
    assert whole == landed + counted


@pytest.mark.slow
def test_events_without_a_time_are_in_one_window_when_their_writers_begin_to_note_times(lab, peer, journal, stream):
    source, sent = PravegaSource(stream, value=Json("noted long")), []
    second = timedelta(seconds=1)
    basis = EventTime(second / 2, second / 2, "noted", "ms")

    def write(*, notes):
        number, now = len(sent), time.time_ns() // 1_000_000
        sent.append(f"{number}:{'' if number % 3 == 0 else now}".encode())
        peer.ask("say", "writer", *stream.split("/"), now if notes else "-", sent[-1].decode())
        [done] = record(journal, {source.conn_id: lab.system}, [source], "tests")
        assert done.error is None
        time.sleep(0.05)

    def pinned(since, until):
        read = WindowRead(WindowQuestion(source, Window(since, until), basis), "tests")
        return journal.pin(source.key, fresh_plan(journal, lab.system, read))

    edges = [datetime.now(UTC)]
    for _ in range(2):
        began = len(sent)
        while len(sent) < began + 6 or datetime.now(UTC) < edges[-1] + second:  # each window holds several, untimed too
            write(notes=False)
        edges.append(datetime.now(UTC))
    while datetime.now(UTC) < edges[-1] + second:
        write(notes=False)
    plans = [pinned(*edges[1:])]
    edges += [edges[-1] + number * second for number in (3, 8)]
    ready = [mark.lower for mark in marks(lab, stream)]
    deadline = time.monotonic() + 600
    while not any(watermarks._EPOCH + timedelta(milliseconds=lower) >= edges[-1] + second for lower in ready):
        assert time.monotonic() < deadline
        write(notes=True)
        ready = [mark.lower for mark in marks(lab, stream)]
    peer.ask("hush", "writer")
    plans += [pinned(*edges[-2:]), pinned(*edges[-3:-1]), pinned(*edges[:2])]
    assert ["recorded" in plan.remarks[0] for plan in plans] == [True, False, False, False]
    landed = Counter()
    for plan in plans:
        landed += decoded(lab, plan)
    assert set(landed.values()) == {1}
    untimed = [event for event in sent if event.endswith(b":")]
    found = [event for event in untimed if event in landed]
    assert found == untimed[untimed.index(found[0]) :][: len(found)], "and none of those in between is missing"
    assert all(decoded(lab, plan).keys() & set(untimed) for plan in plans[:2] + plans[3:])
    timed = [one for one in sent if edges[0] <= of(one) < edges[-1]]
    assert Counter(timed) + Counter(found) == landed


def test_times_ahead_of_the_clock_are_told_and_what_they_make_late_is_counted(lab, peer, journal, stream):
    source, hour = PravegaSource(stream, value=Json("noted long")), timedelta(hours=1)

    def now():
        return (datetime.now(UTC) - watermarks._EPOCH) // timedelta(milliseconds=1)

    while len(marks(lab, stream)) < 2:
        moment = now() + 3_600_000
        peer.ask("say", "ahead", *stream.split("/"), moment, f"ahead:{moment}")
        time.sleep(0.2)
    peer.ask("hush", "ahead")
    since, sent = now(), Counter()
    for number in range(5):
        sent[f"{number}:{now()}".encode()] += 1
        peer.ask("say", "right", *stream.split("/"), "-", *[one.decode() for one in sent][-1:])
        time.sleep(0.02)
    until = now() + 1
    with pytest.raises(WindowNotReady, match="is to come"):
        exact(lab, stream, since, until + 60_000)
    time.sleep(0.1)
    plan = exact(lab, stream, since, until)
    assert any(re.match("watermarks are 0:59:5.* ahead of the clock", remark) for remark in plan.remarks)
    assert decoded(lab, plan) == Counter()
    for lookback in (timedelta(0), hour):
        assert decoded(lab, LateRows(journal, lab.system, source, lookback).after(plan)) == sent
        assert decoded(lab, LateRows(journal, lab.system, source, lookback).included(plan)) == sent
    # the same watermarks, read as another unit
    seconds = PravegaSource(stream, event_time_unit="s", value=Json("noted long"))
    with pytest.raises(InvalidRequest, match=r"its writers note a smaller unit .* event_time_unit='us'"):
        superset(lab, stream, since, until, source=seconds)


def of(event):
    """Its time; of one without, one of no window."""
    return watermarks._EPOCH + timedelta(milliseconds=int(event.split(b":")[1] or 0))


def by_field(lab, journal, stream, edges):
    """What windows by a decoded field hold, what is late for them, and what they hold after a lookback."""
    source, day = PravegaSource(stream, value=Json("noted long")), timedelta(days=1)
    landed, counted, whole = Counter(), Counter(), Counter()
    for since, until in itertools.pairwise(edges):
        plan = exact(lab, stream, since, until)
        assert "counted by a recount" in plan.remarks[1]
        assert ("stored before the first watermark" in plan.remarks[-1]) == (since <= edges[1])
        after = LateRows(journal, lab.system, source, day).after(plan)
        again = LateRows(journal, lab.system, source, day).included(plan)
        for rows_of, part in ((landed, plan), (counted, after), (whole, again)):
            rows_of.update(decoded(lab, part))
    return landed, counted, whole


def decoded(lab, plan):
    def noted(payload):
        text = payload.split(b":")[1]
        return {"noted": int(text) if text else None}

    return Counter(Rows(pa.struct([("noted", pa.int64())]), noted, "event").kept(lab.system, plan))
