"""What is proven, lost or neither of a window that begins at the head, by what somebody saw before."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pravega import beginning, origin, planner
from airflow_provider_streams.systems.pravega.names import segment_id
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut
from tests.unit.systems.pravega.conftest import Stored, World

STREAM = "scope/stream"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
REQUEST = PlanRequest(PravegaSource(STREAM), WINDOW, "reader", basis="chained")
BEFORE, INSIDE = START - timedelta(minutes=1), START + timedelta(minutes=1)


def seen(world: World, at: datetime) -> Sighting:
    tail, identity = world.run(origin.look(STREAM))
    return Sighting(at, tail.to_model(), identity)


def plan(world: World, **more: object) -> Plan:
    made: Plan = world.run(planner.plan(replace(REQUEST, **more), stream=STREAM, cluster="c:9090"))  # type: ignore[arg-type]
    made.check()
    return made


def verdicts(made: Plan) -> list[str]:
    return [one.verdict for one in made.ranges]


def made_anew(world: World, at: datetime, number: int = 7) -> World:
    """A stream of this name, deleted and made again."""
    world.__init__()  # type: ignore[misc]
    key = segment_id(number, 0)
    world.segments, world.head = {key: Stored(0.0, 1.0)}, {key: 0}
    world.made_ms = int(at.timestamp() * 1000) - number
    return world


def test_where_nobody_has_looked_the_head_of_a_truncated_stream_is_unproven(world):
    world.write(0, 100)
    assert verdicts(plan(world, on_unproven="fail")) == ["ok"]
    world.truncate({0: 30})
    assert verdicts(plan(world)) == [
        "unproven: it begins at the first event still held, of a stream that was truncated before"
    ]
    with pytest.raises(StartUnproven, match="window 2026-11-20T10:00:00Z"):
        plan(world, on_unproven="fail")


def test_what_was_seen_before_the_window_and_is_held_proves_it(world):
    world.write(0, 100)
    first = seen(world, BEFORE)
    world.write(0, 50)
    a, b = world.replace([0], 2)
    world.write(a, 9)
    for head in ({0: 30}, {0: 100}):
        world.truncate(head)
        assert verdicts(plan(world, first_seen=first, on_unproven="fail")) == ["ok", "ok", "empty"]
    world.truncate({0: 101})
    with pytest.raises(StartTrimmed, match=r"starts at 100, the first position still held is 101"):
        plan(world, first_seen=first)
    world.truncate({a: 0, b: 0})
    cause = "what was written after 2026-11-20T09:59:00+00:00, when the stream was seen, was truncated, or was nothing"
    assert verdicts(plan(world, first_seen=first)) == [f"unproven: {cause}"] * 2


def test_what_was_seen_inside_the_window_and_is_gone_is_lost_in_bytes(world):
    world.write(0, 100)
    first = seen(world, INSIDE)
    world.write(0, 50)
    world.truncate({0: 90})
    with pytest.raises(StartUnproven, match="truncated before it was first seen, at 2026-11-20T10:01:00"):
        plan(world, first_seen=first, on_unproven="fail")
    world.truncate({0: 120})
    with pytest.raises(StartTrimmed, match="20 bytes in 1 segments are gone"):
        plan(world, first_seen=first)
    made = plan(world, first_seen=first, on_loss="record", on_unproven="fail")
    assert verdicts(made) == ["lost: 20 bytes"]
    assert [(loss.start.parts, loss.end.parts) for loss in made.losses] == [((100,), (120,))]
    assert (made.start_cut, made.ranges[0].start.parts) == (first.tail, (120,))


def test_a_window_with_an_end_of_its_own_is_judged_by_the_same_sighting(world):
    world.write(0, 100)
    first = seen(world, INSIDE)
    world.write(0, 50)
    world.truncate({0: 120})
    end = StreamCut(STREAM, {0: 140}).to_model()
    for basis in ("cuts", "event"):
        assert plan(world, basis=basis, end_cut=end, first_seen=first, on_loss="record").losses[0].end.parts == (120,)
    later = replace(first, at=INSIDE + timedelta(minutes=9), tail=StreamCut(STREAM, {0: 145}).to_model())
    world.truncate({0: 146})
    end = StreamCut(STREAM, {0: 146}).to_model()
    assert verdicts(plan(world, basis="cuts", end_cut=end, first_seen=later, on_loss="record")) == ["lost: 1 bytes"]
    given = StreamCut(STREAM, {0: 146}).to_model()
    assert verdicts(plan(world, start_cut=given, first_seen=first, on_unproven="fail")) == ["ok"]


@pytest.mark.parametrize("known", ["identity", "identity and ids", "ids", "length"])
def test_a_stream_made_again_after_the_window_began_has_lost_it(world, known):
    world.write(0, 100)
    before = seen(world, BEFORE)
    if "identity" not in known:
        before = replace(before, identity=())
    made_anew(world, INSIDE, number=7 if "ids" in known else 0)
    (only,) = world.open
    size = 200 if known == "identity" else 10
    world.write(only, size)
    for start in (None, StreamCut(STREAM, {only: 4}).to_model(), StreamCut(STREAM, {0: 100}).to_model()):
        with pytest.raises(StartTrimmed, match=r"deleted and made again, with segments of 2026-11-20T10:01.*seen at"):
            plan(world, first_seen=before, start_cut=start)
        made = plan(world, first_seen=before, start_cut=start, on_loss="record")
        assert verdicts(made)[0].startswith("lost: the stream was deleted")
        assert [loss.shard for loss in made.losses] == [f"{STREAM}/{only}.#epoch.0"]
        assert made.estimate.bytes == size, "what there is is read, from its beginning: the start was another stream's"


def test_a_stream_made_again_before_the_window_began_has_all_of_it(world):
    world.write(0, 100)
    long_ago = seen(world, BEFORE - timedelta(days=1))
    made_anew(world, BEFORE)
    assert verdicts(plan(world, first_seen=long_ago, on_unproven="fail")) == ["empty"]
    assert verdicts(plan(world, on_unproven="fail")) == ["empty"]


def test_a_stream_made_again_tells_so_by_its_numbers_although_nobody_looked(world):
    made_anew(world, INSIDE)
    (verdict,) = verdicts(plan(world))
    again = "the stream was deleted before, and made again at 2026-11-20T10:01:00.000+00:00: after the window's start"
    assert verdict == f"unproven: {again}"
    made_anew(world, INSIDE, number=0)
    assert verdicts(plan(world, on_unproven="fail")) == ["empty"], "the first of its name"


def test_stores_that_tell_no_times_prove_nothing(world):
    world.write(0, 100)
    before = seen(world, BEFORE)
    made_anew(world, BEFORE)
    for made_ms in (None, 1 << 62):
        world.made_ms = made_ms
        with pytest.raises(StartTrimmed, match="of an unknown time"):
            plan(world, first_seen=before)
        assert verdicts(plan(world))[0].startswith("unproven: the stream was deleted before")


@pytest.mark.parametrize("start", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 22, tzinfo=UTC)])
def test_windows_at_the_ends_of_the_calendar_are_judged_like_others(world, start):
    world.write(0, 100)
    first = seen(world, BEFORE)
    world.truncate({0: 50})
    end = StreamCut(STREAM, {0: 100}).to_model()
    for basis in ("cuts", "event", "append"):
        made = plan(
            world,
            window=Window(start, start + timedelta(hours=1)),
            basis=basis,
            first_seen=first,
            start_cut=StreamCut(STREAM, {0: 50}).to_model() if basis == "append" else None,
            end_cut=end,
        )
        assert verdicts(made)[0].startswith("unproven" if start.year == 1 and basis != "append" else "ok")


def test_a_plan_is_a_sighting_of_the_tail_whatever_its_end(world):
    world.write(0, 100)
    for end in (None, StreamCut(STREAM, {0: 40}).to_model()):
        made = plan(world, basis="cuts", end_cut=end)
        assert made.sighting is not None
        assert made.sighting.tail == StreamCut(STREAM, {0: 100}).to_model()
        assert Plan.from_json(made.to_json()).sighting == made.sighting


def test_the_tail_of_a_plan_costs_nothing_while_its_end_is_open_and_is_asked_for_once_it_is_sealed(world):
    world.write(0, 100)
    end = StreamCut(STREAM, {0: 40}).to_model()
    plan(world, basis="cuts", end_cut=end)
    assert "getCurrentSegments" not in world.asked
    (one,) = world.replace([0], 1)
    world.write(one, 5)
    made = plan(world, basis="cuts", end_cut=end)
    assert made.sighting is not None
    assert made.sighting.tail == StreamCut(STREAM, {one: 5}).to_model()


def test_a_sighting_of_another_stream_is_no_proof(world):
    with pytest.raises(InvalidRequest, match="another stream"):
        plan(world, first_seen=Sighting(BEFORE, Cut(dict(StreamCut("scope/other", {0: 0}).to_model()))))


def _random_life(dice: random.Random) -> tuple[World, list[tuple[datetime, int, int]], list[Sighting]]:
    """A stream to which things happen, one a minute: what was written when, as (time, segment, end), and sightings."""
    world, written, sightings = World(), [], []
    cuts_so_far = [world.tail()]
    for minute in range(dice.randint(3, 25)):
        now = START + timedelta(minutes=minute)
        match dice.choice(["write", "write", "write", "look", "replace", "truncate", "cut"]):
            case "write":
                for key in dice.sample(world.open, dice.randint(1, len(world.open))):
                    world.write(key, dice.randint(1, 50))
                    written.append((now, key, world.segments[key].end))
            case "look":
                sightings.append(seen(world, now))
            case "replace":
                first = dice.choice(world.open)
                world.replace([first] if len(world.open) > 3 else world.open, dice.choice([1, 2]))
            case "truncate":
                cuts_so_far = cuts_so_far[dice.randrange(len(cuts_so_far)) :]
                world.truncate(cuts_so_far[0])
            case "cut":
                cuts_so_far.append(world.tail())
    return world, written, sightings


@pytest.mark.parametrize("seed", range(150))
def test_of_random_lives_what_is_said_to_be_held_is_and_what_is_said_to_be_lost_is_gone(seed):
    dice = random.Random(seed)  # noqa: S311 - repeatable
    world, written, sightings = _random_life(dice)
    since = START + timedelta(minutes=dice.randint(-2, 26))
    before = [one for one in sightings if one.at <= since]
    first = (before[-1:] or sightings[:1] or [None])[0]
    # heads are places between events: one is gone when its last byte is
    looked = min([since, *(one.at for one in before[-1:])])
    gone = [
        (at, key)
        for at, key, end in written
        if at >= looked and (key in world.gone or world.segments[key].start >= end)
    ]
    made = plan(world, window=Window(since, since + timedelta(hours=1)), first_seen=first, on_loss="record")
    verdict = "lost" if made.losses else "unproven" if made.unproven else "ok"
    if verdict == "ok":
        assert not [key for at, key in gone if at >= since]
    if verdict == "lost":
        assert gone
    if verdict == "unproven":
        assert not beginning.is_beginning(StreamCut(STREAM, world.head))


def test_a_beginning_is_of_first_segments_from_their_first_byte_on():
    assert beginning.is_beginning(StreamCut(STREAM, {5: 0, 6: 0}))
    assert not beginning.is_beginning(StreamCut(STREAM, {5: 0, 6: 1}))
    assert not beginning.is_beginning(StreamCut(STREAM, {segment_id(1, 1): 0}))
