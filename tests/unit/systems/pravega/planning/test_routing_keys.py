"""Routing keys: hashed as Java's clients do, and only segments that cannot hold them are left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning.routing_keys import place_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from tests.seeds import examples
from tests.unit.systems.pravega.conftest import World

# by io.pravega.common.hash.HashHelper, seeded with "EventRouter", of Pravega 0.13.0
PLACES = {
    "": 0.24117842791623523,
    "a": 0.9433912753816884,
    "ab": 0.059155362905886966,
    "abc": 0.8244720474051517,
    "abcdefgh": 0.6842544941776125,
    "order-7": 0.20031266188327357,
    "order-12345": 0.07827427072428472,
    "grüße-€-\U0001f600": 0.9866916503257053,
    "x" * 100: 0.8769755246338502,
    "0": 0.8056356837424186,
    "1": 0.36758584297933905,
}
START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(("key", "place"), PLACES.items())
def test_places_are_those_of_java(key, place):
    assert place_of(key) == place


def plan(world, monkeypatch_client, keys, start=None, end=None) -> Plan:
    monkeypatch_client.setattr(PravegaSystem, "client", world)
    system = PravegaSystem.from_options({"controller": "tcp://c:9090"})
    cuts = [None if offsets is None else StreamCut("scope/stream", offsets).to_model() for offsets in (start, end)]
    request = PlanRequest(
        PravegaSource("scope/stream", routing_keys=keys),
        Window(START, START + timedelta(hours=1)),
        "r",
        basis="cuts",
        start_cut=cuts[0],
        end_cut=cuts[1],
    )
    made = system.plan(request)
    assert Plan.from_json(made.to_json()) == made
    return made


def read(made: Plan) -> set[int]:
    return {Segment.parse(split.shard).id for split in made.splits}


def test_only_segments_that_may_hold_the_keys_are_read_and_cuts_stay_whole(world, monkeypatch):
    world.write(0, 10)
    low, high = world.replace([0], 2)
    for key in (low, high):
        world.write(key, 10)
    made = plan(world, monkeypatch, ["ab"])  # 0.06
    assert read(made) == {0, low}
    assert set(made.end_cut) == {Segment("scope/stream", key).name for key in (low, high)}
    assert made.estimate.bytes == 20
    skipped = next(one for one in made.ranges if Segment.parse(one.shard).id == high)
    assert (skipped.verdict, skipped.entries, skipped.end.parts[0]) == ("skipped: it holds other keys", 0, 10)
    assert "all but 1 of 3, and each as a whole" in made.remarks[-1]
    everything = plan(world, monkeypatch, [])
    assert everything.fingerprint != made.fingerprint
    assert plan(world, monkeypatch, ["abc"]).fingerprint != made.fingerprint
    assert read(plan(world, monkeypatch, ["ab", "abc"])) == {0, low, high}


def test_of_a_sealed_segment_at_the_start_its_followers_tell(world, monkeypatch):
    low, high = world.replace([0], 2)
    for key in (low, high):
        world.write(key, 10)
    start = world.tail()
    parts = world.replace([low], 2)
    for key in parts:
        world.write(key, 5)
    assert read(plan(world, monkeypatch, ["abc"], {low: 3, high: 3})) == {high}, "0.82"
    assert read(plan(world, monkeypatch, ["ab"], {low: 3, high: 3})) == {low, parts[0]}, "0.06"
    world.replace([parts[0], parts[1], high], 1)
    # its successors own all keys: readers cannot know that the first did not
    assert {low, high} & read(plan(world, monkeypatch, ["abc"], start)) <= {high}
    assert high in read(plan(world, monkeypatch, ["abc"], {low: 3, high: 3}))


def test_segments_of_a_sealed_stream_are_read_if_nothing_tells_their_keys(world, monkeypatch):
    world.write(0, 10)
    world.seal()
    assert read(plan(world, monkeypatch, ["abc"])) == {0}


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["split", "merge", "cut"]), st.integers(0, 9)), max_size=12), st.data())
def test_every_event_of_a_chosen_key_is_read_over_any_scaling(acts, data):
    world, key = World(), data.draw(st.sampled_from(sorted(PLACES)))
    place, written, cuts = PLACES[key], [], [{0: 0}]

    def write() -> None:
        for one in world.open:
            if world.segments[one].low <= place < world.segments[one].high:
                written.append((one, world.segments[one].end))
            world.write(one, 1)

    write()
    for act, choice in acts:
        ordered = sorted(world.open, key=lambda one: world.segments[one].low)
        if act == "cut":
            cuts.append(world.tail())
        elif act == "split":
            world.replace([ordered[choice % len(ordered)]], 2)
        elif len(ordered) > 1:
            first = choice % (len(ordered) - 1)
            world.replace(ordered[first : first + 2], 1)
        write()
    cuts.append(world.tail())
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for start, end in pairwise(cuts):
            for split in plan(world, patch, [key], start, end).splits:
                segment = Segment.parse(split.shard).id
                found += [(segment, at) for at in range(split.start.parts[0], split.end.parts[0])]
    assert len(set(found)) == len(found), "windows share nothing"
    assert set(written) <= set(found)


def test_streams_of_one_plan_are_all_narrowed(monkeypatch):
    from tests.unit.systems.pravega.planning.test_multi_stream_plan import SHOP, Cluster

    cluster = Cluster()
    monkeypatch.setattr(PravegaSystem, "client", cluster)
    for name in "ab":
        world = cluster.make(f"shop/{name}")
        for key in world.replace([0], 2):
            world.write(key, 10)
    source = PravegaSource(scope="shop", routing_keys="ab")
    system = PravegaSystem.from_options({"controller": "tcp://c:9090"})
    request = PlanRequest(source, Window(START, START + timedelta(hours=1)), "r", basis="cuts")
    made = system.plan(request)
    assert [split.bytes for split in made.splits] == [10, 10]
    assert made.selection == source.selection
    assert system.plan(replace(request, source=SHOP)).fingerprint != made.fingerprint
