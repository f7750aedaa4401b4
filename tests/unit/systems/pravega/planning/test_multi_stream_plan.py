"""Several streams in one source: which they are, and how their plans join; each stream is a world of its own."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidName, InvalidRequest, InvalidSchema, SourceNotFound, StartTrimmed
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, RecordedBounds
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller.stream_calls import Page
from airflow_provider_streams.systems.pravega.declaration import Pravega
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentQuery
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import multi_stream_plan
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from tests.seeds import examples
from tests.unit.systems.pravega.conftest import World

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
SHOP = PravegaSource(scope="shop")
REQUEST = PlanRequest(SHOP, Window(START, START + timedelta(hours=1)), "reader", basis="append")

SOURCES = {
    "one": PravegaSource("shop/a", "c"),
    "two": PravegaSource(["shop/b", "shop/a"], "c"),
    "scope": PravegaSource(scope="shop", conn_id="c"),
    "pattern": PravegaSource(pattern="shop/order-.*", conn_id="c"),
    "tags": PravegaSource(scope="shop", tags=["gdpr", "a,b:c"], conn_id="c", event_time_unit="us"),
    "keys": PravegaSource("shop/a", "c", routing_keys=["k", "b"]),
    "tagged pattern": PravegaSource(pattern="shop/order-.*", tags="eu", conn_id="c"),
}


class Cluster(World):
    """Streams by name, each with its tags, asked by several threads."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[str, World] = {}
        self.tags: dict[str, set[str]] = {}
        self.threads: set[int] = set()
        self.broken: set[str] = set()
        self.meets: threading.Barrier | None = None

    def make(self, name: str, *tags: str, size: int = 0) -> World:
        self.streams[name], self.tags[name] = World(), set(tags)
        self.streams[name].write(0, size)
        return self.streams[name]

    def remove(self, name: str) -> None:
        del self.streams[name]

    def call(self, call):
        return self.answer(call)

    def answer(self, question):
        self.threads.add(threading.get_ident())
        if isinstance(question, SegmentQuery):
            return self._of(question.stream).answer(question)
        if question.method in ("listStreamsInScope", "listStreamsInScopeForTag"):
            return self._page(question)
        if question.method == "checkStreamExists":
            return question.about in self.streams and (
                question.about in self.broken or not self.streams[question.about].missing
            )
        if self.meets is not None:
            self.meets.wait(10)
        return self._of(question.about).answer(question)

    def _of(self, stream):
        if stream not in self.streams:
            raise SourceNotFound(stream)
        return self.streams[stream]

    def _page(self, question):
        if question.message.page.token if hasattr(question.message, "page") else question.message.token:
            return Page((), "end")
        tag = getattr(question.message, "tag", "")
        names = [name for name in self.streams if name.startswith(f"{question.about}/")]
        return Page(tuple(name for name in names if not tag or tag in self.tags[name]), "end")


@pytest.fixture
def cluster(monkeypatch):
    made = Cluster()
    monkeypatch.setattr(PravegaSystem, "client", made)
    return made


@pytest.fixture
def system():
    return PravegaSystem.from_options({"controller": "tcp://localhost:9090", "scope": "mine"})


def cut(**offsets: int) -> Cut:
    """A place in the first segment of each stream of the scope."""
    return Cut({Segment(f"shop/{name}", 0).name: Position.of(offset) for name, offset in offsets.items()})


def spans(made: Plan) -> list[tuple[int, str, int, int]]:
    streams = [Segment.parse(one.shard).stream for one in made.splits]
    return [(s.index, stream, s.start.parts[0], s.end.parts[0]) for s, stream in zip(made.splits, streams, strict=True)]


def test_each_form_has_a_key_an_asset_and_a_name_of_its_own():
    assert {name: (source.key, source.asset_uri, str(source)) for name, source in SOURCES.items()} == {
        "one": ("pravega:c:shop/a", "pravega://c/shop/a", "shop/a"),
        "two": ("pravega:c:shop/a,shop/b", "pravega://c/shop/a,shop/b", "shop/b, shop/a"),
        "keys": ("pravega:c:routing_keys:Yg==,aw==:shop/a", "pravega://c/shop/a", "shop/a (routing keys 'b', 'k')"),
        "scope": ("pravega:c:scope:shop", "pravega://c/shop", "shop/*"),
        "pattern": ("pravega:c:pattern:shop/order-.*", "pravega://c/shop/order-.*", "shop/order-.*"),
        "tags": (
            "pravega:c:tags:a%2Cb%3Ac,gdpr:scope:shop",
            "pravega://c/shop;tags=a%2Cb%3Ac,gdpr",
            "shop/* tagged a,b:c, gdpr",
        ),
        "tagged pattern": (
            "pravega:c:tags:eu:pattern:shop/order-.*",
            "pravega://c/shop/order-.*;tags=eu",
            "shop/order-.* tagged eu",
        ),
    }


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_each_form_survives_json_and_what_is_stored_of_one_stream_still_reads(source):
    assert source_from_json(source_to_json(source)) == source
    old = {"system": "pravega", "stream": "shop/a", "conn_id": "c", "event_time_unit": "ms"}
    assert source_from_json(old) == SOURCES["one"]


@pytest.mark.parametrize("name", ["one", "two", "keys", "scope", "pattern", "tagged pattern"])
def test_each_form_is_named_on_a_command_line(name):
    declared, source = Pravega(), SOURCES[name]
    names, details = declared.names_of(source)
    assert all(isinstance(value, str) for value in details.values())
    assert declared.source(names, "c", details) == source


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, InvalidRequest),
        ({"stream": "a/b", "scope": "a"}, InvalidRequest),
        ({"scope": "a", "pattern": "a/.*"}, InvalidRequest),
        ({"stream": "a/b", "tags": "x"}, InvalidRequest),
        ({"scope": "a/b"}, InvalidName),
        ({"pattern": "orders-.*"}, InvalidName),
        ({"pattern": "a.*/b"}, InvalidName),
        ({"pattern": "a/("}, InvalidName),
        ({"stream": ["a/b", "c"]}, InvalidName),
        ({"scope": "a", "value": "auto"}, InvalidSchema),
    ],
)
def test_what_names_no_streams_is_refused(given, error):
    with pytest.raises(error):
        PravegaSource(**given)


@pytest.mark.parametrize("source", [SOURCES["two"], SHOP, SOURCES["pattern"]])
def test_the_first_of_several_is_not_taken_for_all(source):
    with pytest.raises(InvalidRequest, match="may be several streams: name the one that is meant"):
        _ = source.stream


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (SHOP, ["a", "b", "ba"]),
        (PravegaSource(pattern="shop/b"), ["b"]),
        (PravegaSource(pattern="shop/b.*"), ["b", "ba"]),
        (PravegaSource(scope="shop", tags="x"), ["a", "ba"]),
        (PravegaSource(scope="shop", tags=["x", "y"]), ["ba"]),
        (PravegaSource(pattern="shop/a", tags="x"), ["a"]),
        (PravegaSource(["shop/b", "shop/a"]), ["a", "b"]),
    ],
)
def test_scope_pattern_and_tags_choose_streams(system, cluster, source, found):
    for name, tags in (("a", "x"), ("b", "y"), ("ba", "xy"), ("_MARKa", "")):
        cluster.make(f"shop/{name}", *tags, size=5)
    cluster.make("other/b", size=5)
    assert system.tail(source) == cut(**dict.fromkeys(found, 5))
    made = system.plan(replace(REQUEST, source=source, basis="cuts"))
    assert made.source.names == tuple(f"shop/{name}" for name in found)


def test_nothing_that_is_chosen_is_no_source(system, cluster):
    cluster.make("shop/a")
    with pytest.raises(SourceNotFound, match=r"shop/b\.\*"):
        system.tail(PravegaSource(pattern="shop/b.*"))
    with pytest.raises(SourceNotFound, match="shop/b"):
        system.tail(PravegaSource(["shop/a", "shop/b"]))


def test_plans_of_streams_join(system, cluster):
    for name, size in (("a", 100), ("b", 0), ("c", 30)):
        cluster.make(f"shop/{name}", size=size)
    made = system.plan(replace(REQUEST, start_cut=cut(a=10, b=0, c=0), end_cut=cut(a=60, b=0, c=30)))
    assert spans(made) == [(0, "shop/a", 10, 60), (1, "shop/c", 0, 30)]
    assert (made.start_cut, made.end_cut) == (cut(a=10, b=0, c=0), cut(a=60, b=0, c=30))
    assert made.tail == cut(a=100, b=0, c=30)
    assert made.head == cut(a=0, b=0, c=0)
    assert made.estimate.bytes == 80
    assert [shard for shard, _ in made.source.incarnation] == list(cut(a=0, b=0, c=0))
    assert Plan.from_json(made.to_json()) == made
    system.check_origin(made)
    assert [Pravega().dataset(made.source.names, one.shard) for one in made.ranges] == ["shop/a", "shop/b", "shop/c"]


def test_streams_are_asked_side_by_side(system, cluster):
    for name in "ab":
        cluster.make(f"shop/{name}")
    cluster.meets = threading.Barrier(2)
    system.tail(SHOP)
    assert len(cluster.threads) > 1


def test_a_stream_made_between_two_cuts_is_read_from_its_beginning(system, cluster):
    cluster.make("shop/a", size=20)
    cluster.make("shop/b", size=30)
    made = system.plan(replace(REQUEST, start_cut=cut(a=10), end_cut=cut(a=20, b=25)))
    assert spans(made) == [(0, "shop/a", 10, 20), (1, "shop/b", 0, 25)]
    assert any("shop/b: new since" in remark for remark in made.remarks)
    before = system.plan(replace(REQUEST, start_cut=cut(a=0), end_cut=cut(a=10)))
    assert before.source.names == ("shop/a",), "what was made later belongs to later windows"


def test_a_chain_goes_on_in_old_streams_and_begins_new_ones(system, cluster):
    cluster.make("shop/a", size=20)
    cluster.make("shop/b", size=30)
    made = system.plan(replace(REQUEST, basis="chained", start_cut=cut(a=20)))
    assert spans(made) == [(0, "shop/b", 0, 30)]
    assert made.end_cut == cut(a=20, b=30)


@pytest.mark.parametrize(
    ("basis", "end", "at"), [("append", {"a": 20}, 5), ("append", {"a": 20, "b": 9}, 9), ("chained", None, 5)]
)
def test_a_stream_that_vanished_is_a_loss_of_its_window_and_of_no_later_one(system, cluster, basis, end, at):
    cluster.make("shop/a", size=20)
    asked = replace(REQUEST, basis=basis, start_cut=cut(a=0, b=5), end_cut=end and cut(**end))
    with pytest.raises(StartTrimmed, match=r"shop/b.*no longer exists, or is none of the source's any more"):
        system.plan(asked)
    made = system.plan(replace(asked, on_loss="record"))
    assert spans(made) == [(0, "shop/a", 0, 20)]
    assert [(one.shard, one.start, one.end) for one in made.losses] == [
        (Segment("shop/b", 0).name, Position.of(5), Position.of(at))
    ]
    assert [one.verdict[:4] for one in made.ranges] == ["ok", "lost"]
    assert Plan.from_json(made.to_json()) == made
    if basis == "chained":
        assert not system.plan(replace(asked, start_cut=made.end_cut)).losses


def test_a_stream_that_vanished_with_nothing_of_it_in_the_window_is_none(system, cluster):
    cluster.make("shop/a", size=20)
    made = system.plan(replace(REQUEST, start_cut=cut(a=0, b=5), end_cut=cut(a=20, b=5)))
    assert made.source.names == ("shop/a",)
    assert not made.losses


def test_all_streams_of_a_window_may_be_gone(system, cluster):
    cluster.make("shop/c", size=20)
    made = system.plan(replace(REQUEST, start_cut=cut(a=0), end_cut=cut(a=20), on_loss="record"))
    assert made.is_empty
    assert made.source.names == ("shop/a",)
    assert len(made.losses) == 1


def test_a_stream_that_is_not_chosen_any_more_is_still_read_in_the_windows_in_which_it_was(system, cluster):
    cluster.make("shop/a", "x", size=20)
    cluster.make("shop/b", size=20)
    source = PravegaSource(scope="shop", tags="x")
    made = system.plan(replace(REQUEST, source=source, start_cut=cut(a=0, b=0), end_cut=cut(a=20, b=20)))
    assert spans(made) == [(0, "shop/a", 0, 20), (1, "shop/b", 0, 20)]
    with pytest.raises(StartTrimmed, match="or is none of the source's any more"):
        system.plan(replace(REQUEST, source=source, start_cut=cut(a=0, b=0), end_cut=cut(a=20)))


def test_a_stream_that_is_named_and_was_there_is_lost_and_one_that_never_was_is_missed(system, cluster):
    cluster.make("shop/a", size=20)
    asked = replace(REQUEST, source=PravegaSource(["shop/a", "shop/b"]), basis="chained", on_loss="record")
    with pytest.raises(SourceNotFound, match="shop/b"):
        system.plan(asked)
    assert len(system.plan(replace(asked, start_cut=cut(a=0, b=5))).losses) == 1
    cluster.remove("shop/a")
    assert len(system.plan(replace(asked, start_cut=cut(a=0, b=5))).losses) == 2
    with pytest.raises(SourceNotFound, match="shop/b"):
        system.plan(replace(asked, start_cut=cut(a=0)))


@pytest.mark.parametrize("source", [PravegaSource("shop/a"), PravegaSource(["shop/a", "shop/b"]), SHOP])
def test_a_stream_that_was_deleted_is_lost_where_a_sighting_or_both_cuts_prove_it(system, cluster, source):
    if len(source.streams) > 1:
        cluster.make("shop/b", size=20)
    seen = TailObservation(START + timedelta(minutes=1), cut(a=7))
    chained = replace(REQUEST, source=source, basis="chained", first_seen=seen)
    cuts = replace(REQUEST, source=source, start_cut=cut(a=0), end_cut=cut(a=20))
    for asked in (chained, cuts):
        with pytest.raises(StartTrimmed, match=r"shop/a.*no longer exists"):
            system.plan(asked)
        accepted = system.plan(replace(asked, on_loss="record"))
        assert [loss.shard for loss in accepted.losses] == ["shop/a/0.#epoch.0"]
        assert "shop/a" in accepted.source.names
        assert Plan.from_json(accepted.to_json()) == accepted
    quiet = system.plan(replace(cuts, end_cut=cut(a=0)))
    assert (quiet.losses, quiet.splits, quiet.unproven) == ((), (), ())
    with pytest.raises(SourceNotFound):
        system.plan(replace(chained, first_seen=None))


def test_a_users_cut_of_a_stream_that_was_never_seen_proves_nothing(system, cluster):
    cluster.make("shop/b")
    asked = replace(REQUEST, source=PravegaSource("shop/a"), basis="cuts", start_cut=cut(a=0), end_cut=cut(a=20))
    with pytest.raises(SourceNotFound, match="shop/a"):
        system.plan(asked)


def test_a_stream_that_was_seen_and_is_gone_is_a_loss_of_the_first_window(system, cluster):
    cluster.make("shop/a", size=20)
    seen = TailObservation(START, cut(a=0, b=7))
    asked = replace(REQUEST, basis="chained", first_seen=seen)
    with pytest.raises(StartTrimmed, match="shop/b"):
        system.plan(asked)
    assert Plan.from_json(system.plan(replace(asked, on_loss="record")).to_json()).losses
    # the first window of a chain holds all that was written before it was planned; a given end is where it ends
    with pytest.raises(StartTrimmed, match="shop/b"):
        system.plan(replace(asked, first_seen=replace(seen, at=REQUEST.window.end)))
    given = replace(asked, basis="cuts", end_cut=cut(a=20))
    assert not system.plan(replace(given, first_seen=replace(seen, at=REQUEST.window.end))).losses


@pytest.mark.parametrize(
    ("at", "made", "is_lost"), [(7, -1, True), (7, 3, False), (0, -1, False)], ids=["seen", "made later", "empty"]
)
def test_a_stream_that_was_seen_only_after_a_window_is_a_loss_if_it_may_have_held_some_of_it(at, made, is_lost):
    life = (("shop/b/0.#epoch.0", (REQUEST.window.end + timedelta(hours=made)).isoformat()),)
    seen = TailObservation(REQUEST.window.end + timedelta(hours=4), cut(a=0, b=at), life)
    asked = replace(REQUEST, basis="event", event=EventTime(event_time="at"), first_seen=seen, on_loss="record")
    found = multi_stream_plan.gone(asked, SHOP, ["shop/a"])
    assert [one.stream for one in found] == (["shop/b"] if is_lost else [])


def test_a_stream_that_came_and_went_between_two_cuts_is_a_loss_if_it_was_seen(system, cluster):
    cluster.make("shop/a", size=20)
    inside = TailObservation(START + timedelta(minutes=1), cut(a=5, b=7))
    for basis, end in (("chained", None), ("append", cut(a=20))):
        asked = replace(REQUEST, basis=basis, start_cut=cut(a=0), end_cut=end, first_seen=inside)
        with pytest.raises(StartTrimmed, match="shop/b"):
            system.plan(asked)
        (loss,) = system.plan(replace(asked, on_loss="record")).losses
        assert loss.shard.startswith("shop/b/")
        before = replace(inside, at=START - timedelta(minutes=1))
        assert not system.plan(replace(asked, first_seen=before)).losses, "the start cut says that it was gone"
    # one that is there now, and that the end cut does not name, was made later
    cluster.make("shop/b", size=20)
    asked = replace(REQUEST, basis="append", start_cut=cut(a=0), end_cut=cut(a=20), first_seen=inside)
    assert not system.plan(asked).losses


def test_a_stream_that_vanished_is_also_a_loss_of_windows_of_event_time():
    around = RecordedBounds(cut(a=0, b=5), cut(a=10, b=7), cut(a=15), cut(a=20))
    asked = replace(REQUEST, basis="event", around=around)
    with pytest.raises(StartTrimmed, match="shop/b"):
        multi_stream_plan.gone(asked, SHOP, ["shop/a"])
    accepted = replace(asked, on_loss="record")
    assert [(one.stream, one.start, one.end) for one in multi_stream_plan.gone(accepted, SHOP, ["shop/a"])] == [
        ("shop/b", cut(b=5), Cut({}))
    ]
    later = replace(asked, around=RecordedBounds(*[cut(a=offset) for offset in (0, 10, 15, 20)]))
    assert multi_stream_plan.gone(later, SHOP, ["shop/a"]) == ()


def test_a_truncated_stream_is_lost_by_itself(system, cluster):
    cluster.make("shop/a", size=20)
    cluster.make("shop/b", size=20).truncate({0: 8})
    asked = replace(REQUEST, start_cut=cut(a=0, b=0), end_cut=cut(a=20, b=20))
    with pytest.raises(StartTrimmed, match="shop/b"):
        system.plan(asked)
    made = system.plan(replace(asked, on_loss="record"))
    assert spans(made) == [(0, "shop/a", 0, 20), (1, "shop/b", 8, 20)]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ({"a": 0}, {"a": 1, "b": 1}, "start cut does not name shop/b"),
        ({"a": 0, "b": 0}, {"b": 1}, "end cut does not name shop/a"),
        ({"a": 0, "b": 0, "c": 3}, {"a": 1, "b": 1}, "names shop/c, which is none of its streams"),
    ],
)
def test_cuts_that_a_user_gives_name_every_stream_and_no_other(system, cluster, start, end, message):
    for name in "ab":
        cluster.make(f"shop/{name}", size=5)
    source = PravegaSource(["shop/a", "shop/b"])
    with pytest.raises(InvalidRequest, match=message):
        system.plan(replace(REQUEST, source=source, basis="cuts", start_cut=cut(**start), end_cut=cut(**end)))


def test_a_stream_that_goes_while_it_is_asked_is_left_out_but_one_that_is_named_is_missed(system, cluster):
    for name in "abc":
        cluster.make(f"shop/{name}", size=5)
    cluster.streams["shop/b"].missing = True
    assert system.tail(SHOP) == system.observe_tail(SHOP).tail == cut(a=5, c=5)
    with pytest.raises(SourceNotFound):
        system.tail(PravegaSource(["shop/a", "shop/b"]))


def test_a_stream_that_is_there_and_cannot_be_asked_is_not_left_out(system, cluster):
    for name in "abc":
        cluster.make(f"shop/{name}", size=5)
    cluster.streams["shop/b"].missing = True
    cluster.broken.add("shop/b")
    for act in (
        system.tail,
        system.observe_tail,
        lambda source: system.plan(replace(REQUEST, source=source, basis="cuts")),
    ):
        with pytest.raises(SourceNotFound, match="shop/b"):
            act(SHOP)


def test_cuts_go_on_stream_by_stream(system):
    earlier = cut(a=5, b=5)
    assert system.go_on(earlier, cut(a=5, b=6, c=0)) == cut(a=5, b=6, c=0), "a stream came"
    assert system.go_on(earlier, cut(a=9)) == cut(a=9), "a stream went"
    assert system.go_on(earlier, cut(a=9, b=4)) is None, "one of them is before"
    assert system.go_on(earlier, Cut({})) is None


def test_another_life_of_any_stream_is_found(system, cluster):
    for name in "ab":
        cluster.make(f"shop/{name}", size=5)
    seen = system.observe_tail(SHOP)
    assert system.other_incarnation(SHOP, seen.incarnation) is None
    cluster.streams["shop/b"].made_ms += 1
    assert "shop/b" in str(system.other_incarnation(SHOP, seen.incarnation))


def test_the_horizon_is_that_of_the_stream_which_reaches_back_least(system, cluster):
    cluster.make("shop/a", size=90)
    b = cluster.make("shop/b", size=90)
    places = [cut(a=1), cut(a=2), cut(a=3, b=10), cut(a=4, b=20)]
    recorded = [(START + timedelta(minutes=minute), place, ()) for minute, place in enumerate(places)]
    assert system.horizon(SHOP, lambda: recorded) == START, "before it was made nothing of a stream is missing"
    b.truncate({0: 15})
    assert system.horizon(SHOP, lambda: recorded) == START + timedelta(minutes=3)
    b.truncate({0: 21})
    assert system.horizon(SHOP, lambda: recorded) is None


def test_the_horizon_of_many_streams_looks_into_few_of_many_cuts(system, cluster):
    names = [f"s{number}" for number in range(20)]
    for name in names:
        cluster.make(f"shop/{name}", size=2000).truncate({0: 1000})
    recorded = [
        (START + timedelta(minutes=minute), cut(**dict.fromkeys(names, minute)), system.observe_tail(SHOP).incarnation)
        for minute in range(2000)
        if minute in (0, 1999) or not minute % 100
    ]
    assert system.horizon(SHOP, lambda: recorded) == START + timedelta(minutes=1000)


def test_cuts_of_several_streams_are_written_with_full_names(system):
    source, made = PravegaSource(["shop/a", "shop/b"]), cut(a=1, b=2)
    assert system.parse_cut(source, made.to_json()) == made
    assert system.parse_cut(source, Pravega().cut_text(source, made)) == made
    with pytest.raises(InvalidRequest, match="may be several streams"):
        system.parse_cut(source, StreamCut("shop/a", {0: 1}).to_text())
    with pytest.raises(InvalidRequest, match="another stream, shop/c"):
        system.parse_cut(source, cut(c=1).to_json())
    with pytest.raises(InvalidRequest, match="names no segment"):
        system.parse_cut(source, "{}")


def test_a_plan_of_one_stream_is_what_it_always_was(system, monkeypatch, world):
    """Plans that are pinned keep their fingerprints."""
    monkeypatch.setattr(PravegaSystem, "client", world)
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 10)
    world.write(b, 20)
    ends = [StreamCut("scope/stream", offsets).to_model() for offsets in ({0: 40}, {a: 10, b: 5})]
    request = replace(REQUEST, source=PravegaSource("scope/stream"), basis="cuts", start_cut=ends[0], end_cut=ends[1])
    monkeypatch.setattr(type(system.endpoint), "cluster", "c:9090")
    assert system.plan(request).fingerprint == "f981334b627785fc65a47c5421269cd2"


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "make", "delete", "split", "merge", "edge", "edge"]), st.integers(0, 9)
    ),
    max_size=25,
)


def cells(made: Plan) -> list[tuple[str, int]]:
    """Every byte that a plan reads."""
    return [(s.shard, at) for s in made.splits for at in range(s.start.parts[0], s.end.parts[0])]


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTS, st.sampled_from(["append", "chained"]))
def test_windows_tile_whatever_becomes_of_the_streams(system, acts, basis):
    """Each byte of a stream that is left is in exactly one window; one that vanished unread is missed by one."""
    cluster = Cluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PravegaSystem, "client", cluster)
        tape = _Tape(system, cluster, basis)
        for act, choice in [("make", 0), ("edge", 0), *acts, ("edge", 0)]:
            tape.do(act, choice)
        plans = tape.plans()
    read = [cell for made in plans for cell in cells(made)]
    assert len(set(read)) == len(read)
    left = {
        (Segment(name, key).name, at)
        for name, world in cluster.streams.items()
        for key, one in world.segments.items()
        for at in range(one.end)
    }
    assert left <= set(read)
    missed = {Segment.parse(loss.shard).stream for made in plans for loss in made.losses}
    assert missed == tape.known - cluster.streams.keys()


class _Tape:
    """What becomes of streams, and windows over them: planned at once (a chain), or at the end, by recorded cuts."""

    def __init__(self, system, cluster, basis) -> None:
        self.system, self.cluster, self.basis = system, cluster, basis
        self.cuts: list[Cut] = []
        self.known: set[str] = set()
        self.chain: list[Plan] = []
        self.made = 0

    def do(self, act, choice) -> None:
        names = sorted(self.cluster.streams)
        world = self.cluster.streams[names[choice % len(names)]] if names else None
        if act == "make":
            self.made += 1
            self.cluster.make(f"shop/s{self.made}")
        elif act == "delete" and len(names) > 1:
            self.cluster.remove(names[choice % len(names)])
        elif act == "edge":
            self._edge()
        elif world:
            self._change(world, act, choice)

    def _change(self, world, act, choice) -> None:
        ordered = sorted(world.open, key=lambda one: world.segments[one].low)
        if act == "write":
            world.write(ordered[choice % len(ordered)], choice)
        elif act == "split":
            world.replace([ordered[choice % len(ordered)]], 2)
        elif act == "merge" and len(ordered) > 1:
            world.replace(ordered[:2], 1)

    def _edge(self) -> None:
        tail = self.system.tail(SHOP)
        following = self.system.go_on(self.cuts[-1], tail) if self.cuts else tail
        assert following is not None
        self.cuts.append(following)
        self.known |= {Segment.parse(shard).stream for shard in tail}
        start = self.chain[-1].end_cut if self.chain else None
        asked = replace(REQUEST, basis="chained", start_cut=start, on_loss="record")
        self.chain.append(self.system.plan(asked))

    def plans(self) -> list[Plan]:
        if self.basis == "chained":
            return self.chain
        first = Cut(dict.fromkeys(self.cuts[0], Position.of(0)))
        pairs = pairwise([first, *self.cuts])
        asked = [replace(REQUEST, start_cut=start, end_cut=end, on_loss="record") for start, end in pairs]
        return [self.system.plan(one) for one in asked]
