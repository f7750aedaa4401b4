"""What tail observations prove of a window that begins at the head: held, lost, or neither."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import TailObservation, relevant
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.metadata import incarnation
from airflow_provider_streams.systems.pravega.metadata.segment_names import segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.planning import planner, start_verification
from airflow_provider_streams.systems.pravega.source import PravegaSource
from tests.unit.systems.pravega.conftest import Stored, World

STREAM = "scope/stream"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
REQUEST = PlanRequest(PravegaSource(STREAM), WINDOW, "reader", basis="chained")
BEFORE, INSIDE = START - timedelta(minutes=1), START + timedelta(minutes=1)


def seen(world: World, at: datetime) -> TailObservation:
    tail, identity = world.run(incarnation.observe_tail(STREAM))
    empty = frozenset(shard for shard, end in tail.to_model().items() if not any(end.parts))
    return TailObservation(at, tail.to_model(), identity, empty)


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


def test_without_an_observation_the_head_of_a_truncated_stream_is_unproven(world):
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
    with pytest.raises(StartTrimmed, match="20 bytes in 1 segment are gone"):
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
        before = replace(before, incarnation=())
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


@pytest.mark.parametrize("at", [BEFORE, INSIDE])
def test_what_a_stream_made_again_held_after_it_was_seen_empty_is_unknown(world, at):
    empty = seen(world, at)
    world.write(0, 100)
    made_anew(world, INSIDE + timedelta(minutes=1))
    (verdict,) = verdicts(plan(world, first_seen=empty))
    assert verdict.startswith("unproven: the stream was deleted and made again")
    with pytest.raises(StartUnproven):
        plan(world, first_seen=empty, on_unproven="fail")
    written = replace(empty, at=INSIDE + timedelta(seconds=1), tail=StreamCut(STREAM, {0: 100}).to_model())
    with pytest.raises(StartTrimmed, match="deleted and made again"):
        plan(world, first_seen=empty, seen_later=(written,))


def test_a_stream_made_again_before_the_window_began_has_all_of_it(world):
    world.write(0, 100)
    long_ago = seen(world, BEFORE - timedelta(days=1))
    made_anew(world, BEFORE)
    assert verdicts(plan(world, first_seen=long_ago, on_unproven="fail")) == ["empty"]
    assert verdicts(plan(world, on_unproven="fail")) == ["empty"]


def test_a_stream_made_again_tells_so_by_its_numbers_without_an_observation(world):
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
        assert made.tail_observation is not None
        assert made.tail_observation.tail == StreamCut(STREAM, {0: 100}).to_model()
        assert Plan.from_json(made.to_json()).tail_observation == made.tail_observation


def test_the_tail_of_a_plan_costs_nothing_while_its_end_is_open_and_is_asked_for_once_it_is_sealed(world):
    world.write(0, 100)
    end = StreamCut(STREAM, {0: 40}).to_model()
    plan(world, basis="cuts", end_cut=end)
    assert "getCurrentSegments" not in world.asked
    (one,) = world.replace([0], 1)
    world.write(one, 5)
    made = plan(world, basis="cuts", end_cut=end)
    assert made.tail_observation is not None
    assert made.tail_observation.tail == StreamCut(STREAM, {one: 5}).to_model()


def test_a_sighting_of_another_stream_is_no_proof(world):
    with pytest.raises(InvalidRequest, match="another stream"):
        plan(world, first_seen=TailObservation(BEFORE, Cut(dict(StreamCut("scope/other", {0: 0}).to_model()))))


@dataclass
class Event:
    """What was written at a time, and where it ends. No two segments have one key, not even of two incarnations."""

    at: datetime
    key: int
    end: int

    def is_gone(self, world: World) -> bool:
        return _is_gone(world, self.key, self.end)


def _is_gone(world: World, key: int, end: int) -> bool:
    # heads are places between events: one is gone when its last byte is
    return key not in world.segments or key in world.gone or world.segments[key].start >= end


ACTS = ("write", "write", "write", "write", "look", "look", "replace", "truncate", "cut")


class Life:
    """A stream to which things happen, one a minute."""

    def __init__(self, dice: random.Random, acts: Sequence[str] = ACTS) -> None:
        self.world, self.dice, self.now = World(), dice, START
        self.world.made_ms = int(START.timestamp() * 1000)
        self.written: list[Event] = []
        self.looks: list[TailObservation] = []
        self.cuts = [(START, self.world.tail())]
        self.truncated = self.made_anew = 0
        for minute in range(dice.randint(3, 25)):
            self.now = START + timedelta(minutes=minute)
            getattr(self, dice.choice(acts))()

    def write(self) -> None:
        for key in self.dice.sample(self.world.open, self.dice.randint(1, len(self.world.open))):
            self.world.write(key, self.dice.randint(1, 50))
            self.written.append(Event(self.now, key, self.world.segments[key].end))

    def look(self) -> None:
        self.looks.append(seen(self.world, self.now))

    def replace(self) -> None:
        first = self.dice.choice(self.world.open)
        self.world.replace([first] if len(self.world.open) > 3 else self.world.open, self.dice.choice([1, 2]))

    def truncate(self) -> None:
        self.truncated = self.dice.randrange(self.truncated, len(self.cuts))
        self.world.truncate(self.cuts[self.truncated][1])

    def make_anew(self) -> None:
        made_anew(self.world, self.now, number=self.world.number)
        self.world.number = min(self.world.segments) + 1
        self.cuts, self.truncated = [(self.now, self.world.tail())], 0
        self.made_anew += 1

    def cut(self) -> None:
        self.cuts.append((self.now, self.world.tail()))


def _contradicts(world: World, seen: TailObservation, one: Event) -> bool:
    """Whether a tail observation saw events in the segment of an event that is gone, and all of them are gone."""
    there = StreamCut.from_model(STREAM, seen.tail).offsets.get(one.key, 0)
    return there > 0 and _is_gone(world, one.key, there)


@pytest.mark.parametrize("seed", [*range(800), 874, 904])
def test_of_random_lives_what_is_said_to_be_held_is_and_what_is_said_to_be_lost_is_gone(seed):
    dice = random.Random(seed)  # noqa: S311 - repeatable
    life = Life(dice, ACTS if seed < 400 else (*ACTS, "make_anew"))
    since = START + timedelta(minutes=dice.randint(-2, 26))
    check(life, since, *any_end(life, since), relevant(life.looks, since))


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    with Journal.open(f"sqlite:///{tmp_path_factory.mktemp('journal') / 'journal.db'}") as opened:
        yield opened


@pytest.mark.parametrize(
    "seed", [*range(20), 118, 195, *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 100))]
)
def test_what_the_journal_keeps_of_the_sightings_is_enough(journal, seed):
    """Of windows that begin at full five minutes."""
    dice = random.Random(seed)  # noqa: S311 - repeatable
    life = Life(dice, (*ACTS, "make_anew", "look", "look"))
    for one in life.looks:
        journal.note_tail_observation(f"life {seed}", one)
    since = START + dice.randint(-1, 5) * timedelta(minutes=5)
    until, end = any_end(life, since)
    check(life, since, until, end, journal.tail_observations_around(f"life {seed}", since, until))


def any_end(life: Life, since: datetime) -> tuple[datetime, Cut | None]:
    """Windows end at the tail, or at a cut: then some tail observations come after them."""
    ends = [(at, StreamCut(STREAM, cut).to_model()) for at, cut in life.cuts if at > since]
    return life.dice.choice([(since + timedelta(hours=1), None), *ends])


def check(life: Life, since: datetime, until: datetime, end: Cut | None, looks: Sequence[TailObservation]) -> None:
    """The verdict of a window that is planned with these tail observations, against all that were made."""
    first, *later = looks or (None,)
    told = {"first_seen": first, "seen_later": tuple(later), "basis": "chained" if end is None else "cuts"}
    made = plan(life.world, window=Window(since, until), end_cut=end, on_loss="record", **told)
    verdict = "lost" if made.losses else "unproven" if made.unproven else "ok"
    gone = [one for one in life.written if one.is_gone(life.world)]
    within = [one for one in gone if since <= one.at < until]
    assert not within or verdict != "ok"
    if any(_contradicts(life.world, seen, one) for seen in life.looks if seen.at >= since for one in within):
        assert verdict == "lost"
    if verdict == "lost":
        assert gone
        assert end is None or end not in [seen.tail for seen in life.looks if seen.at <= since], "it holds nothing"
    if verdict == "unproven":
        is_first = start_verification.is_beginning(StreamCut(STREAM, life.world.head)) and not life.made_anew
        assert not is_first


def test_a_beginning_is_of_first_segments_from_their_first_byte_on():
    assert start_verification.is_beginning(StreamCut(STREAM, {5: 0, 6: 0}))
    assert not start_verification.is_beginning(StreamCut(STREAM, {5: 0, 6: 1}))
    assert not start_verification.is_beginning(StreamCut(STREAM, {segment_id(1, 1): 0}))
