from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams import PravegaSource
from airflow_provider_streams.errors import EventsLost, InvalidName, InvalidRequest, ReceiptMismatch, StartUnproven
from airflow_provider_streams.model.plan.plan import Estimate, Plan, Range, SourceRef, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, plan_request
from tests.unit.systems.pravega.conftest import STREAM

NAME = "a/b/0.#epoch.0"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture
def system():
    return PravegaSystem.from_options({"controller": "tcp://localhost:9090", "scope": "mine"})


def test_the_table_of_systems_has_it():
    assert load_system("pravega") is PravegaSystem


def test_a_source_has_a_key_and_an_asset():
    source = PravegaSource("scope/stream")
    assert source.key == "pravega:pravega_default:scope/stream"
    assert source.asset_uri == "pravega://pravega_default/scope/stream"
    assert str(source) == "scope/stream"
    assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301


@pytest.mark.parametrize("name", ["stream", "a/b/c", "a_b/c", "a/", "/b", "a/b c", "a/" + "x" * 252, ""])
def test_names_that_pravega_cannot_have_are_refused(name):
    with pytest.raises(InvalidName):
        PravegaSource(name)


def test_streams_that_pravega_makes_can_be_named():
    assert PravegaSource("_system/_MARKs").stream == "_system/_MARKs"


def test_the_horizon_is_the_oldest_recorded_cut_that_is_still_held(system, world, monkeypatch):
    monkeypatch.setattr(PravegaSystem, "client", world)
    places = enumerate((0, 10, 20, 30))
    recorded = [(START + timedelta(minutes=minute), Cut({NAME: Position.of(place)}), ()) for minute, place in places]
    source = PravegaSource("a/b")
    assert system.horizon(source) is None, "without recorded cuts nothing tells the time"
    assert system.horizon(source, lambda: recorded) == START
    world.head = {0: 11}
    assert system.horizon(source, lambda: recorded) == START + timedelta(minutes=2)
    world.head = {0: 31}
    assert system.horizon(source, lambda: recorded) is None


def test_recorded_cuts_of_a_life_that_is_gone_are_not_held(system, world, monkeypatch):
    monkeypatch.setattr(PravegaSystem, "client", world)
    stream = f"{NAME.rpartition('/')[0]}"
    source, incarnations = PravegaSource(stream), []
    for life in range(2):
        world.made_ms += life
        incarnations.append(system.incarnation(source))
    cuts = [(0, ()), (9, incarnations[0]), (9, ()), (9, incarnations[0]), (0, incarnations[1]), (5, incarnations[1])]
    recorded = [
        (START + timedelta(minutes=minute), Cut({NAME: Position.of(place)}), life)
        for minute, (place, life) in enumerate(cuts)
    ]
    assert system.horizon(source, lambda: recorded) == START + timedelta(minutes=4)
    assert system.horizon(source, lambda: recorded[:4]) is None
    world.head = {0: 5}
    assert system.horizon(source, lambda: recorded) == START + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("options", "stream"),
    [
        ({"stream": "a/b"}, "a/b"),
        ({"scope": "a", "stream": "b"}, "a/b"),
        ({"stream": "b"}, "mine/b"),
        ({"scope": "a", "stream": "a/b"}, "a/b"),
        ({"streams": "a/b, c", "scope": "a"}, ["a/b", "a/c"]),
    ],
)
def test_options_name_streams(system, options, stream):
    assert system.source(options) == PravegaSource(stream)


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"scope": "a"}, PravegaSource(scope="a")),
        ({"scope": "a", "tags": "x, y"}, PravegaSource(scope="a", tags=["x", "y"])),
        ({"streamsPattern": "a/b.*"}, PravegaSource(pattern="a/b.*")),
        ({"streamsPattern": "b.*", "scope": "a", "tags": "x"}, PravegaSource(pattern="a/b.*", tags="x")),
        ({"streamsPattern": "b.*"}, PravegaSource(pattern="mine/b.*")),
    ],
)
def test_options_choose_streams(system, options, source):
    assert system.source(options) == source


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tags": "x"},
        {"scope": "x", "stream": "a/b"},
        {"stream": "a/b", "streams": "a/c"},
        {"streams": "a/b", "streamsPattern": "a/.*"},
        {"streams": "a/b", "tags": "x"},
    ],
)
def test_options_that_name_none_are_refused(system, options):
    with pytest.raises(InvalidRequest):
        system.source(options)


def test_cuts_are_taken_in_every_notation(system):
    source = PravegaSource("a/b")
    cut = StreamCut("a/b", {0: 5, 4294967297: 6})
    model = cut.to_model()
    assert system.parse_cut(source, cut.to_text()) == model
    assert system.parse_cut(source, model.to_json()) == model
    assert system.parse_cut(source, {"0.#epoch.0": "5", "1.#epoch.1": "6"}) == model
    assert system.parse_cut(source, "UNBOUNDED") == system.parse_cut(source, "unbounded") == Cut({})


def test_cuts_of_another_stream_or_without_segments_are_refused(system):
    other = StreamCut("a/c", {0: 5})
    with pytest.raises(InvalidRequest, match="a cut of a/c, not of a/b"):
        system.parse_cut(PravegaSource("a/b"), other.to_text())
    with pytest.raises(InvalidRequest, match="another stream"):
        system.parse_cut(PravegaSource("a/b"), other.to_model().to_json())
    sealed = "H4sIAAAAAAAA/zOwyjBK1k+0srICAL2dpgogKAAAA"
    with pytest.raises(InvalidRequest):
        system.parse_cut(PravegaSource("h2c/a"), sealed)
    with pytest.raises(InvalidRequest, match="no Pravega stream"):
        system.parse_cut(PulsarSource("x"), "earliest")


@pytest.mark.parametrize("start", [None, "earliest", " Earliest", "unbounded"])
@pytest.mark.parametrize("end", [None, "latest", "unbounded"])
def test_whatever_it_is_called_the_head_of_a_truncated_stream_is_unproven(system, world, monkeypatch, start, end):
    monkeypatch.setattr(PravegaSystem, "client", world)
    window = Window(START, START + timedelta(hours=1))
    world.write(0, 100)
    request = plan_request(system, WindowQuestion(PravegaSource(STREAM), window, Cuts(start, end)), "reader")
    assert [one.verdict for one in system.plan(request).ranges] == ["ok"], "it was never truncated"
    world.truncate({0: 30})
    (one,) = system.plan(request).ranges
    assert (one.start.parts[0], one.end.parts[0], one.verdict.partition(":")[0]) == (30, 100, "unproven")
    with pytest.raises(StartUnproven):
        system.plan(replace(request, on_unproven="fail"))
    known = {Segment(STREAM, 0).name: "30"}
    request = plan_request(system, WindowQuestion(PravegaSource(STREAM), window, Cuts(known, end)), "reader")
    assert [one.verdict for one in system.plan(request).ranges] == ["ok"], "from a known place it is proven"


def test_of_single_segments_only_offsets_are_said(system):
    window = Window(START, START + timedelta(hours=1))
    for name in (Segment(STREAM, 0).name, "0.#epoch.0"):
        with pytest.raises(InvalidRequest, match="'earliest', which is no byte offset"):
            plan_request(system, WindowQuestion(PravegaSource(STREAM), window, Cuts({name: "earliest"})), "reader")


def plan_of(start: int, end: int) -> Plan:
    name, first, last = NAME, Position.of(start), Position.of(end)
    return Plan(
        reader="r",
        source=SourceRef("pravega", "c:1", ("a/b",)),
        window=Window(START, START + timedelta(hours=1)),
        basis="cuts",
        filter=None,
        start_cut=Cut({name: first}),
        end_cut=Cut({name: last}),
        ranges=(Range(name, first, last, end - start),),
        splits=(Split(0, name, first, last, end - start, (Span(0, start, end),)),),
        estimate=Estimate(end - start),
        observed_at=START,
        head=Cut({name: first}),
    )


class LandingTask:
    """A client that knows one segment's info."""

    def __init__(self, info):
        self.info = info

    def run(self, steps):
        next(steps)
        try:
            steps.send({} if self.info is None else {0: self.info})
        except StopIteration as done:
            return done.value
        raise AssertionError

    def close(self):
        pass


def info(start, end):
    from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo

    return SegmentInfo(start, end, True)


PLAN = plan_of(0, 100)
GAP = SplitReceipt(0, rows=1, bytes=12, entries=20, gaps=(Span(0, 20, 100),))


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        (None, "the segment is gone"),
        (info(60, 200), "the segment now starts at 60"),
        (info(0, 50), "deleted and made again"),
    ],
)
def test_a_gap_is_loss_with_its_size_and_cause(system, known, cause):
    system._client = LandingTask(known)
    with pytest.raises(EventsLost, match=rf"80 bytes of \[20, 100\) .*{cause}"):
        system.explain(PLAN, [GAP], on_loss="fail")
    explained = system.explain(PLAN, [GAP], on_loss="record")
    receipt = compare(PLAN, explained, seconds=1)
    assert receipt.verdict == "loss recorded"
    assert receipt.totals["lost"] == 80


@pytest.mark.parametrize("on_loss", ["fail", "record"])
def test_a_gap_whose_bytes_are_still_there_is_never_accepted(system, on_loss):
    system._client = LandingTask(info(0, 100))
    with pytest.raises(ReceiptMismatch, match="never seen"):
        compare(PLAN, system.explain(PLAN, [GAP], on_loss=on_loss), seconds=1)


def test_nothing_is_asked_about_receipts_without_gaps(system):
    whole = SplitReceipt(0, rows=1, bytes=92, entries=100)
    assert system.explain(PLAN, [whole], on_loss="fail") == (whole,)
    assert system._client is None
    system.close()


def test_secrets_stay_out_of_the_repr():
    system = PravegaSystem.from_options({"controller": "tcp://a:1", "username": "u", "password": "hidden"})
    assert "hidden" not in repr(system)
