"""Windows whose cuts are of an incarnation of the stream that is gone.

Lost as a whole, or from the new life's beginning on.
"""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import InvalidRequest, NotAuthorized, SourceNotFound, StartTrimmed
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.metadata import incarnation as origin
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import planner
from airflow_provider_streams.systems.pravega.source import PravegaSource
from tests.unit.systems.pravega.conftest import Stored, World

STREAM = "scope/stream"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
REQUEST = PlanRequest(PravegaSource(STREAM), Window(START, START + timedelta(hours=1)), "reader", basis="append")


def recorded(world):
    """A cut and its incarnation, as a recorder takes them."""
    tail, incarnation = world.run(origin.observe_tail(STREAM))
    return tail, incarnation


def plan(world, start, end, on_loss="record", **more):
    request = replace(
        REQUEST,
        start_cut=start[0].to_model(),
        end_cut=end[0].to_model(),
        start_incarnation=start[1],
        end_incarnation=end[1],
        on_loss=on_loss,
        **more,
    )
    made = world.run(planner.plan(request, stream=STREAM, cluster="c:9090"))
    assert Plan.from_json(made.to_json()) == made, "it holds together"
    return made


def spans(made):
    return [(Segment.parse(one.shard).id, one.start.parts[0], one.end.parts[0]) for one in made.splits]


def wiped(world, number=0):
    """The stream made again: of a server that was wiped with the same ids, else with a later number."""
    made = world.made_ms
    world.__init__()
    key = segment_id(number, 0)
    world.segments, world.head, world.number = {key: Stored(0.0, 1.0)}, {key: 0}, number + 1
    world.made_ms = made + 60_000
    return key


@pytest.mark.parametrize("number", [0, 7], ids=["wiped", "made again"])
def test_every_event_of_the_new_life_is_in_one_window_and_dead_windows_are_lost(world, number):
    cuts = [recorded(world)]
    for size in (10, 20):
        world.write(0, size)
        cuts.append(recorded(world))
    key = wiped(world, number)
    world.write(key, 500)
    cuts.append(recorded(world))
    world.write(key, 100)
    cuts.append(recorded(world))
    plans = [plan(world, *pair) for pair in pairwise(cuts)]
    assert [spans(one) for one in plans] == [[], [], [(key, 0, 500)], [(key, 500, 600)]]
    assert [len(one.losses) for one in plans] == [1, 1, 1, 0]
    assert [one.verdict.partition(":")[0] for made in plans for one in made.ranges] == ["lost", "lost", "lost", "ok"]
    loss = plans[1].losses[0]
    assert (loss.start.parts, loss.end.parts) == ((10,), (30,))
    assert "deleted and made again" in loss.cause
    for pair in list(pairwise(cuts))[:3]:
        with pytest.raises(StartTrimmed, match="deleted and made again"):
            plan(world, *pair, on_loss="fail")


@pytest.mark.parametrize("number", [0, 7], ids=["wiped", "made again"])
def test_a_window_between_two_cuts_of_one_place_holds_nothing_whatever_became_of_the_stream(world, number):
    world.write(0, 10)
    first, second = recorded(world), recorded(world)
    key = wiped(world, number)
    world.write(key, 500)
    made = plan(world, first, second, on_loss="fail", on_unproven="fail")
    assert (spans(made), made.losses) == ([], ())
    assert [one.verdict for one in made.ranges] == ["empty"]
    with pytest.raises(StartTrimmed, match="deleted and made again"):
        plan(world, first, (second[0], recorded(world)[1]), on_loss="fail")


def test_a_window_between_two_cuts_of_one_place_holds_nothing_although_the_place_is_gone(world):
    world.write(0, 10)
    first, second = recorded(world), recorded(world)
    world.write(0, 10)
    world.truncate({0: 15})
    made = plan(world, first, second, on_loss="fail", on_unproven="fail")
    assert (spans(made), made.losses) == ([], ())


def test_what_planning_a_dead_window_saw_is_of_the_life_of_today(world):
    first = recorded(world)
    world.write(0, 10)
    second = recorded(world)
    wiped(world)
    world.write(0, 5)
    made = plan(world, first, second)
    assert made.tail_observation.incarnation == made.source.incarnation == recorded(world)[1]
    assert made.tail_observation.tail == recorded(world)[0].to_model()


@pytest.mark.parametrize("number", [0, 7], ids=["wiped", "made again"])
def test_where_the_new_life_was_truncated_beyond_the_windows_end_nothing_is_read(world, number):
    first = recorded(world)
    key = wiped(world, number)
    world.write(key, 50)
    second = recorded(world)
    world.write(key, 50)
    third = recorded(world)
    world.truncate({key: 80})
    assert spans(plan(world, first, second)) == []
    assert spans(plan(world, second, third)) == [(key, 80, 100)]
    (after,) = world.replace([key], 1)
    world.truncate({after: 0})
    assert spans(plan(world, first, second)) == []
    with pytest.raises(StartTrimmed):
        plan(world, first, second, on_loss="fail")


def test_a_chain_goes_on_at_the_head_of_a_stream_that_was_wiped(world):
    world.write(0, 10)
    end, incarnation = recorded(world)
    wiped(world)
    world.write(0, 50)
    chained = replace(REQUEST, basis="chained", start_cut=end.to_model(), start_incarnation=incarnation)
    with pytest.raises(StartTrimmed, match="deleted and made again"):
        world.run(planner.plan(chained, stream=STREAM, cluster="c:9090"))
    made = world.run(planner.plan(replace(chained, on_loss="record"), stream=STREAM, cluster="c:9090"))
    assert spans(made) == [(0, 0, 50)]


def test_without_a_known_life_a_segment_that_was_never_there_is_lost_where_another_life_was_seen(world):
    world.write(0, 10)
    first, second = (StreamCut(STREAM, {0: place}) for place in (0, 10))
    seen = TailObservation(START - timedelta(minutes=1), *_sighting(world))
    made_ms = int((START + timedelta(minutes=5)).timestamp() * 1000)
    world.made_ms = made_ms - 60_000
    wiped(world, 7)
    cuts = (first, ()), (second, ())
    with pytest.raises(InvalidRequest, match=r"is no segment of this stream.*Give cuts of the stream as it is now"):
        plan(world, *cuts)
    with pytest.raises(StartTrimmed, match="deleted and made again"):
        plan(world, *cuts, on_loss="fail", first_seen=seen)
    made = plan(world, *cuts, first_seen=seen)
    assert (spans(made), len(made.losses)) == ([], 1)


def _sighting(world):
    tail, incarnation = recorded(world)
    return tail.to_model(), incarnation


@pytest.mark.parametrize("seed", range(30))
def test_whatever_becomes_of_a_stream_its_events_are_in_one_window_or_lost(seed):
    """Lives, scalings and cuts at random: bytes of today's life lie in exactly one window each."""
    chance = random.Random(seed)  # noqa: S311 - a test's seed
    world, cuts = World(), []
    for _ in range(12):
        act = chance.choice(["write", "write", "scale", "record", "record", "wipe"])
        if act == "write":
            world.write(chance.choice(world.open), chance.randint(1, 50))
        elif act == "scale":
            world.replace([chance.choice(world.open)], 2)
        elif act == "record":
            cuts.append(recorded(world))
        elif chance.random() < 0.5:
            wiped(world, chance.choice([0, world.number]))
    cuts = [recorded(copy.deepcopy(World())), *cuts, recorded(world)]
    cuts[0] = (cuts[0][0], ((Segment(STREAM, 0).name, "before all"),))
    read = sorted(span for pair in pairwise(cuts) for span in spans(plan(world, *pair)))
    held = dict.fromkeys(world.segments, 0)
    for key, start, end in read:
        assert held[key] == start, (seed, read)
        held[key] = end
    assert held == {key: one.end for key, one in world.segments.items()}, seed
    assert world.run(iter(segment_calls.head(STREAM))) == world.head


def test_a_plan_is_not_read_where_not_even_its_scope_is(world, monkeypatch):
    world.write(0, 10)
    made = plan(world, recorded(world), recorded(world))
    world.gone.add(0)
    scopes = [True, False, NotAuthorized("we", "look", STREAM)]

    def scope_exists(_):
        if isinstance(found := scopes.pop(0), Exception):
            raise found
        return found

    monkeypatch.setattr(
        World, "calls", {"checkStreamExists": lambda _: False, "checkScopeExists": scope_exists}, raising=True
    )
    world.run(origin.check(made.source))
    with pytest.raises(SourceNotFound, match="scope"):
        world.run(origin.check(made.source))
    world.run(origin.check(made.source))
    assert not scopes
