"""What was seen of a real stream proves later what a window that begins at its head still holds, or has lost."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, StartUnproven
from airflow_provider_streams.model.stream.tail_observation import TailObservation, relevant
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.source import PravegaSource

pytestmark = pytest.mark.pravega

SECOND = timedelta(seconds=1)


def look(lab, stream) -> TailObservation:
    return lab.system.observe_tail(PravegaSource(stream))


def since(moment) -> Window:
    return Window(moment, moment + timedelta(hours=1))


def verdicts(plan) -> list[str]:
    plan.check()
    return [one.verdict.partition(":")[0] for one in plan.ranges]


def test_what_is_held_since_an_observation_is_proven_and_what_is_not_is_lost(lab, peer, stream):
    peer.write(stream, 10)
    lab.split(stream)
    peer.write(stream, 10)
    seen = look(lab, stream)
    assert dict(seen.incarnation).keys() == seen.tail.keys(), "stores tell when segments were made"
    assert TailObservation.from_json(seen.to_json()) == seen
    after, before = since(seen.at), since(seen.at - SECOND)
    peer.write(stream, 10)
    assert lab.call(stream_calls.truncate_stream(stream, {0: 10 * 108}))
    lab.roll(stream)
    peer.write(stream, 10)
    held = lab.plan(stream, window=after, first_seen=seen, on_unproven="fail")
    assert set(verdicts(held)) <= {"ok", "empty"}
    assert len(lab.read(held)[0]) == 30
    for known in (None, seen):
        with pytest.raises(StartUnproven):
            lab.plan(stream, window=before, first_seen=known, on_unproven="fail")
        assert lab.read(lab.plan(stream, window=before, first_seen=known))[1].verdict == "unproven"
    # now events go that were written after an observation
    lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    for window in (after, before):
        with pytest.raises(StartTrimmed, match="are gone"):
            lab.plan(stream, window=window, first_seen=seen)
    lost = lab.plan(stream, window=before, first_seen=seen, on_loss="record")
    assert "lost" in verdicts(lost)
    assert lab.read(lost, on_loss="record")[1].verdict == "loss recorded"


def test_a_sealed_stream_is_seen_and_planned_as_well(lab, peer, stream):
    peer.write(stream, 10)
    seen, middle = look(lab, stream), lab.tail(stream)
    peer.write(stream, 5)
    assert lab.call(stream_calls.truncate_stream(stream, middle.offsets))
    lab.call(stream_calls.seal_stream(stream))
    again = look(lab, stream)
    assert (again.incarnation, again.tail) == (seen.incarnation, lab.tail(stream).to_model())
    plan = lab.plan(stream, window=since(seen.at), first_seen=seen, on_unproven="fail")
    assert len(lab.read(plan)[0]) == 5
    assert lab.plan(stream, middle, middle).tail_observation.tail == again.tail


def test_a_sealed_stream_of_which_nothing_is_held_has_lost_what_came_after_the_look(lab, peer, stream):
    peer.write(stream, 10)
    seen = look(lab, stream)
    peer.write(stream, 10)
    assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    lab.call(stream_calls.seal_stream(stream))
    assert verdicts(lab.plan(stream, lab.tail(stream), lab.tail(stream), on_unproven="fail")) == ["empty"]
    with pytest.raises(StartTrimmed, match="1,080 bytes"):
        lab.plan(stream, window=since(seen.at), first_seen=seen)
    assert verdicts(lab.plan(stream, window=since(seen.at))) == ["unproven"], "there is no observation"


def test_a_stream_made_again_has_lost_what_was_seen_and_tells_so_itself_without_an_observation(lab, peer, stream):
    peer.write(stream, 10)
    seen, start = look(lab, stream), lab.tail(stream)
    assert lab.call(stream_calls.seal_stream(stream))
    assert lab.call(stream_calls.delete_stream(stream))
    assert lab.call(stream_calls.create_stream(stream))
    peer.write(stream, 3)
    made = datetime.now(UTC)
    window = since(seen.at)
    for known in (seen, replace(seen, incarnation=())):
        with pytest.raises(StartTrimmed, match="deleted and made again"):
            lab.plan(stream, window=window, first_seen=known)
        events, receipt = lab.read(lab.plan(stream, window=window, first_seen=known, on_loss="record"), "record")
        assert (len(events), receipt.verdict) == (3, "loss recorded")
        assert verdicts(lab.plan(stream, window=since(made), first_seen=known, on_unproven="fail")) == ["ok"]
    with pytest.raises(InvalidRequest, match="was the stream deleted and made again"):
        lab.plan(stream, start, window=window)
    with pytest.raises(StartTrimmed, match="deleted and made again, with segments of"):
        lab.plan(stream, start, window=window, first_seen=seen)
    goes_on = lab.plan(stream, start, window=window, first_seen=seen, on_loss="record")
    assert goes_on.start_cut == lab.head(stream).to_model(), "a chained reader goes on at the new one's beginning"
    assert len(lab.read(goes_on, "record")[0]) == 3
    with pytest.raises(StartUnproven, match="deleted before, and made again at"):
        lab.plan(stream, window=window, on_unproven="fail")
    assert verdicts(lab.plan(stream, window=since(made), on_unproven="fail")) == ["ok"]


def test_what_was_seen_only_after_a_window_and_was_truncated_is_lost(lab, peer, stream):
    started = datetime.now(UTC)
    peer.write(stream, 10)
    end = lab.tail(stream)
    ended = datetime.now(UTC)
    peer.write(stream, 5)
    seen = look(lab, stream)
    assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
    window = Window(started, ended)
    with pytest.raises(StartTrimmed, match="and all before that, was truncated"):
        lab.plan(stream, None, end, window=window, first_seen=seen)
    lost = lab.plan(stream, None, end, window=window, first_seen=seen, on_loss="record")
    assert lab.read(lost, on_loss="record")[1].verdict == "loss recorded"
    assert verdicts(lab.plan(stream, None, end, window=window)) == ["unproven"], "there is no observation"
    idle = replace(seen, at=started - SECOND, tail=end.to_model())
    assert verdicts(lab.plan(stream, None, end, window=window, first_seen=idle, seen_later=(seen,))) == ["empty"]


@pytest.mark.parametrize("seed", range(2))
def test_no_verdict_on_a_real_stream_covers_what_a_look_contradicts(lab, peer, stream, seed):
    dice = random.Random(seed)  # noqa: S311 - repeatable
    written: list[tuple[bytes, datetime]] = []
    looks, marks = [look(lab, stream)], [datetime.now(UTC)]
    acts = dice.choices(["truncate", "split", "remake"], k=3)
    steps = ["write", "look", "write", *(step for act in acts for step in (act, "look", "write"))]
    for number, step in enumerate(steps):
        match step:
            case "write":
                peer.write(stream, 5, tag=f"{number}x")
                written.append((b"%dx" % number, marks[-1]))
            case "look":
                looks.append(look(lab, stream))
            case "truncate":
                assert lab.call(stream_calls.truncate_stream(stream, lab.tail(stream).offsets))
            case "split":
                lab.split(stream)
            case "remake":
                assert lab.call(stream_calls.seal_stream(stream))
                assert lab.call(stream_calls.delete_stream(stream))
                assert lab.call(stream_calls.create_stream(stream))
        marks.append(datetime.now(UTC))
    for start in marks[:-1]:
        first, *later = relevant(looks, start) or (None,)
        told = {"first_seen": first, "seen_later": tuple(later), "on_loss": "record", "basis": "chained"}
        made = lab.plan(stream, window=Window(start, marks[-1]), **told)
        events = {event.partition(b"x")[0] + b"x" for event in lab.read(made, "record")[0]}
        verdict = "lost" if made.losses else "unproven" if made.unproven else "ok"
        gone = [at for tag, at in written if at >= start and tag not in events]
        assert not gone or verdict != "ok", (seed, acts, start)
        if any(start <= one.at < at and any(end.parts[0] for end in one.tail.values()) for one in looks for at in gone):
            assert verdict == "lost", (seed, acts, start)
        assert verdict != "lost" or {"truncate", "remake"} & set(acts), "to scale loses nothing"
