"""Windows of time over recorded cuts on a real server: every event is in exactly one, whatever befalls recorders."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import InvalidRequest, NoCutNearby, SourceDeleted, SourceNotFound, WindowNotReady
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.basis import RecordedCuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, stream_calls
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.windows.plan.pravega_epoch import roll_epoch
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, check_recorded
from tests.integration.recording import AppendWindows, Recorders, now
from tests.seeds import chosen_seed

pytestmark = pytest.mark.pravega

SECOND = timedelta(seconds=1)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'journal.db'}"


@pytest.fixture
def source(stream):
    return PravegaSource(stream)


@pytest.fixture
def recorders(url, source, pravega_server):
    return Recorders(url, source, {"controller": pravega_server.controller_uri})


@pytest.fixture
def windows(url, system, source):
    return AppendWindows(url, system, source)


def numbers(events) -> Counter[str]:
    """Which of the numbered events these are, and how often."""
    return Counter(re.match(rb"[a-z]+\d+-\d+:", event).group().decode() for event in events)


class Writing:
    """Batches of numbered events, acknowledged one after the other, and what was written."""

    def __init__(self, peer, stream) -> None:
        self.peer, self.stream = peer, stream
        self.written: Counter[str] = Counter()
        self.batches = 0

    def batch(self, count=150) -> None:
        tag = f"e{self.batches}-"
        self.batches += 1
        self.peer.write(self.stream, count, tag=tag)
        self.written += Counter(f"{tag}{number}:" for number in range(count))


def test_no_event_is_lost_or_doubled_by_what_befalls_recorders(lab, peer, stream, recorders, windows):
    seed = chosen_seed()
    chance = random.Random(seed)  # noqa: S311 - a test's seed
    writing = Writing(peer, stream)
    start = now()
    recorders.once("first")
    with recorders.running("one", "two"):
        for act in (lab.split, lab.split, lab.merge):
            writing.batch()
            act(stream)
            writing.batch()
    gap_start = now()
    writing.batch()
    recorders.killed()
    lab.split(stream)
    writing.batch()
    gap_end = now()
    with recorders.running("one", "three"):
        for _ in range(4):
            writing.batch()
    recorders.once("last")
    end = windows.journal.recorded_cuts(windows.source.key, 1)[0].sampled_from
    between = sorted(start + chance.random() * (end - start) for _ in range(8))
    edges = [start, *between, gap_start + (gap_end - gap_start) / 2, end]
    plans = [windows.plan(*pair) for pair in pairwise(sorted(edges))]
    for before, after in pairwise(plans):
        assert after.start_cut == before.end_cut, f"STREAMS_SEED={seed}"
    read = [lab.read(plan)[0] for plan in plans]
    assert numbers(event for events in read for event in events) == writing.written, f"STREAMS_SEED={seed}"


def test_a_recorder_that_stood_still_moves_the_edge_and_says_so(lab, peer, stream, recorders, windows):
    writing = Writing(peer, stream)
    start = now()
    recorders.once("r")
    (first,) = windows.journal.recorded_cuts(windows.source.key, 1)
    allowed = first.skew(start)
    writing.batch()
    edge = now()
    while now() - edge <= allowed:
        writing.batch()
    before_restart, restart = writing.written.total(), now()
    recorders.once("r")
    writing.batch()
    with pytest.raises(NoCutNearby, match="no recorder ran in between"):
        windows.plan(start, edge, max_skew=allowed)
    first = windows.plan(start, edge)
    assert first.skew_seconds[1] >= (restart - edge).total_seconds() > 0
    assert len(lab.read(first)[0]) == before_restart, "the edge is at the end of the gap"
    with pytest.raises(WindowNotReady, match="no cut was recorded at or after its end; the last one is of"):
        windows.plan(edge, now())
    recorders.once("r")
    last = windows.journal.recorded_cuts(windows.source.key, 1)[0].sampled_from
    second = windows.plan(edge, last)
    assert second.start_cut == first.end_cut
    assert len(lab.read(second)[0]) == 150


def test_everything_acknowledged_before_an_edge_is_before_it(lab, peer, stream, recorders, windows):
    writing = Writing(peer, stream)
    start = now()
    recorders.once("r")
    with recorders.running("one", "two"):
        edges = [start]
        for _ in range(5):
            writing.batch(40)
            edges.append(now())
    recorders.once("last")
    for number, (begin, end) in enumerate(pairwise(edges)):
        plan = windows.plan(begin, end)
        batches = {int(name[1:].partition("-")[0]) for name in numbers(lab.read(plan)[0])}
        assert min(batches, default=number) >= number, "acknowledged before the window's start"
        # what came after its end came within the skew that the plan shows
        late = end + timedelta(seconds=plan.skew_seconds[1])
        assert all(edges[batch] <= late for batch in batches)


def test_a_window_without_a_recorder_says_what_is_missing(windows, stream):
    with pytest.raises(WindowNotReady, match="RecordCutsOperator"):
        windows.plan(now() - SECOND, now())


def test_recording_creates_nothing_and_a_typo_is_an_error(lab, stream, recorders, windows):
    before = lab.call(stream_calls.list_streams(lab.scope)).names
    recorders.once("r")
    with pytest.raises(SourceNotFound):
        lab.system.tail(PravegaSource(f"{stream}s"))
    assert lab.call(stream_calls.list_streams(lab.scope)).names == before


def test_no_cut_is_waited_for_of_a_stream_that_does_not_exist(lab, peer, stream, recorders, windows):
    journal, system, start = windows.journal, windows.system, now()
    recorders.once("r")
    peer.write(stream, 10)
    window = Window(start, now())
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.delete_stream(stream))
    waits = RecordedCuts(timedelta(hours=1))
    with pytest.raises(SourceDeleted, match="no longer exists"):
        windows.plan(window.start, window.end)
    with pytest.raises(SourceDeleted, match=stream):
        check_recorded(journal, system, WindowQuestion(windows.source, window, waits), waits)
    with pytest.raises(SourceNotFound, match=f"{stream}s does not exist"):
        check_recorded(journal, system, WindowQuestion(PravegaSource(f"{stream}s"), window, waits), waits)


def test_a_stream_made_again_is_recorded_only_when_that_is_said(lab, peer, stream, recorders, windows):
    peer.write(stream, 10)
    recorders.once("r")
    assert lab.call(stream_calls.seal_stream(stream))
    recorders.once("r")
    assert lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.create_stream(stream))
    recorders.once("r")
    (error,) = recorders.errors
    assert isinstance(error, InvalidRequest)
    assert "--start-over" in str(error)


# The rolling epoch


def test_a_rolled_window_is_a_set_of_sealed_segments_equal_to_javas(lab, peer, stream, windows):
    journal, system, source = windows.journal, windows.system, windows.source
    lab.split(stream)
    ticks = []
    for _ in range(3):
        peer.write(stream, 100)
        ticks.append(now())
        rolled = roll_epoch(journal, system, source, ticks[-1], "roll")
        assert rolled.is_edge
        assert len(rolled.ends.segments) == len(rolled.cut.segments) == 2
    assert [entry.sequence for entry in journal.recorded_cuts(source.key, 9)] == [1, 2, 3]
    for begin, end in pairwise(ticks):
        plan = windows.plan(begin, end)
        assert sum(digest[2] for digest in lab.digests(plan).values()) == 100
        start, stop = (StreamCut.from_model(stream, cut) for cut in (plan.start_cut, plan.end_cut))
        assert lab.digests(plan) == peer.digests(stream, start, stop)
        read = [split.shard for split in plan.splits]
        assert all(not lab.call(segment_calls.segment_open(stream, Segment.parse(shard).id)) for shard in read)


def test_repeating_a_tick_rolls_once(lab, peer, stream, windows, monkeypatch):
    journal, system, source, tick = windows.journal, windows.system, windows.source, now()
    peer.write(stream, 10)
    kept = Journal.record_cut

    def dies(self, key, cut, **facts):
        if key == source.key:
            raise KeyboardInterrupt
        return kept(self, key, cut, **facts)

    monkeypatch.setattr(Journal, "record_cut", dies)
    with pytest.raises(KeyboardInterrupt):
        roll_epoch(journal, system, source, tick, "roll")
    monkeypatch.undo()
    segments = lab.call(segment_calls.current_segments(stream))
    peer.write(stream, 10)
    first = roll_epoch(journal, system, source, tick, "roll")
    again = roll_epoch(journal, system, source, tick, "roll")
    assert lab.call(segment_calls.current_segments(stream)) == segments, "nothing was rolled again"
    assert (first.cut, first.is_edge, again.sequence) == (again.cut, True, None)
    assert first.ends.offsets == {0: 10 * 108}
    assert first.cut.offsets == {segments[0].segment_id: 0}
    with pytest.raises(InvalidRequest, match="has not come yet"):
        roll_epoch(journal, system, source, now() + timedelta(hours=1), "roll")


def test_a_roll_goes_on_when_auto_scaling_was_quicker(lab, stream, windows, monkeypatch):
    lab.split(stream)
    tick = now()
    tail = PravegaSystem.tail

    def then_split(self, of):
        cut = tail(self, of)
        lab.split(stream)
        return cut

    monkeypatch.setattr(PravegaSystem, "tail", then_split)
    before = {one.segment_id for one in lab.call(segment_calls.current_segments(stream))}
    rolled = roll_epoch(windows.journal, windows.system, windows.source, tick, "roll")
    assert rolled.ends.offsets.keys() == before
    assert not before & {one.segment_id for one in lab.call(segment_calls.current_segments(stream))}
