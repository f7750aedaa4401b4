from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import (
    InvalidRequest,
    SourceNotFound,
    SourceReplaced,
    StartTrimmed,
    StartUnproven,
    UnknownServerError,
    WindowNotReady,
)
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, Span
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.metadata import incarnation
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut
from airflow_provider_streams.systems.pravega.operations import scaling
from airflow_provider_streams.systems.pravega.planning import cuts, planner
from airflow_provider_streams.systems.pravega.source import PravegaSource
from tests.unit.systems.pravega.conftest import Stored

STREAM = "scope/stream"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
REQUEST = PlanRequest(PravegaSource(STREAM), Window(START, START + timedelta(hours=1)), "reader", basis="cuts")


def cut(offsets):
    return None if offsets is None else StreamCut(STREAM, offsets).to_model()


def plan(world, start=None, end=None, **more):
    request = replace(REQUEST, start_cut=cut(start), end_cut=cut(end), **more)
    return world.run(planner.plan(request, stream=STREAM, cluster="c:9090"))


def spans(made):
    return [(Segment.parse(one.shard).id, one.start.parts[0], one.end.parts[0]) for one in made.splits]


def test_one_segment_between_two_offsets(world):
    world.write(0, 100)
    made = plan(world, {0: 20}, {0: 60})
    assert spans(made) == [(0, 20, 60)]
    assert made.splits[0].spans == (Span(0, 20, 60),)
    assert made.estimate.bytes == 40
    assert Plan.from_json(made.to_json()) == made


def test_without_cuts_everything_from_head_to_tail(world):
    world.write(0, 100)
    made = plan(world)
    assert spans(made) == [(0, 0, 100)]
    assert plan(world, {0: 0}, {0: 100}).fingerprint == made.fingerprint
    assert spans(plan(world, {}, {})) == [(0, 0, 100)], "unbounded is no cut"


def test_a_start_in_a_predecessor_and_an_end_in_its_successors(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 10)
    world.write(b, 20)
    made = plan(world, {0: 40}, {a: 10, b: 5})
    assert spans(made) == [(0, 40, 100), (a, 0, 10), (b, 0, 5)]
    assert set(made.start_cut) == {Segment(STREAM, 0).name}
    assert set(made.end_cut) == {Segment(STREAM, key).name for key in (a, b)}


def test_segments_made_and_sealed_inside_are_read_whole_and_predecessors_first(world):
    world.write(0, 10)
    a, b = world.replace([0], 2)
    world.write(a, 20)
    world.write(b, 30)
    (c,) = world.replace([a, b], 1)
    world.write(c, 40)
    d, e = world.replace([c], 2)
    world.write(d, 50)
    assert spans(plan(world, {0: 5}, {d: 50, e: 0})) == [(0, 5, 10), (a, 0, 20), (b, 0, 30), (c, 0, 40), (d, 0, 50)]


def test_adjacent_windows_share_one_cut_and_tile(world):
    cuts_taken = [world.tail()]
    for step in range(6):
        for key in world.open:
            world.write(key, 10 + step)
        if step % 2:
            world.replace(world.open[:1], 2)
            for key in world.open:
                world.write(key, 7)
        cuts_taken.append(world.tail())
    covered = [one for a, b in pairwise(cuts_taken) for one in spans(plan(world, a, b))]
    for key, start, end in spans(plan(world, cuts_taken[0], cuts_taken[-1])):
        pieces = [(first, last) for other, first, last in covered if other == key]
        assert (pieces[0][0], pieces[-1][1]) == (start, end)
        assert [last for _, last in pieces[:-1]] == [first for first, _ in pieces[1:]]


def test_an_empty_window_has_no_split(world):
    world.write(0, 10)
    made = plan(world, {0: 10}, {0: 10})
    assert made.is_empty
    assert [one.verdict for one in made.ranges] == ["empty"]


def test_rolls_without_events_leave_empty_ranges_and_no_tasks(world):
    world.write(0, 10)
    for _ in range(5):
        world.replace(world.open, 1)
    made = plan(world)
    assert spans(made) == [(0, 0, 10)]
    assert [one.verdict for one in made.ranges] == ["ok", *["empty"] * 5]


def test_repeated_numbers_of_a_rolled_transaction_stay_apart(world):
    again = segment_id(0, 2)
    world.write(0, 10)
    (a,) = world.replace([0], 1)
    world.write(a, 5)
    (b,) = world.replace([a], 1)
    world.segments[again] = world.segments.pop(b)
    world.segments[a].successors = [again]
    world.write(again, 3)
    assert spans(plan(world)) == [(0, 0, 10), (a, 0, 5), (again, 0, 3)]


def test_a_sealed_stream_ends_where_nothing_follows(world):
    world.write(0, 10)
    a, b = world.replace([0], 2)
    world.write(a, 4)
    world.seal()
    tail = world.run(cuts.tail(STREAM))
    assert tail == StreamCut(STREAM, {a: 4, b: 0})
    assert world.run(cuts.is_sealed(STREAM))
    assert spans(plan(world)) == [(0, 0, 10), (a, 0, 4)]


def test_a_start_before_the_head_is_loss_in_bytes(world):
    world.write(0, 100)
    world.truncate({0: 30})
    with pytest.raises(StartTrimmed, match=r"0\.#epoch\.0: the window starts at 10, .* is 30 \(20 bytes in 1 seg"):
        plan(world, {0: 10}, {0: 100})
    made = plan(world, {0: 10}, {0: 100}, on_loss="record")
    assert spans(made) == [(0, 30, 100)]
    assert [(loss.start.parts, loss.end.parts) for loss in made.losses] == [((10,), (30,))]
    assert made.ranges[0].verdict == "lost: 20 bytes"
    assert spans(plan(world, {0: 30}, {0: 100})) == [(0, 30, 100)], "the head itself is no loss"


def test_segments_truncated_away_are_loss_though_their_length_is_unknown(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 50)
    world.write(b, 50)
    world.truncate({a: 10, b: 0})
    with pytest.raises(StartTrimmed, match="of 1 of them the length is no longer known"):
        plan(world, {0: 40}, {a: 50, b: 50})
    made = plan(world, {0: 40}, {a: 50, b: 50}, on_loss="record")
    assert spans(made) == [(a, 10, 50), (b, 0, 50)]
    assert [loss.shard for loss in made.losses] == [Segment(STREAM, key).name for key in (0, a)]


def test_a_window_wholly_before_the_head_is_lost_not_empty(world):
    world.write(0, 100)
    world.truncate({0: 90})
    with pytest.raises(StartTrimmed, match="40 bytes"):
        plan(world, {0: 10}, {0: 50})
    world.replace([0], 1)
    world.truncate(world.tail())
    with pytest.raises(StartTrimmed, match="40 bytes"):
        plan(world, {0: 10}, {0: 50})


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ({0: 50}, {0: 40}, "before the start cut"),
        ({0: 0}, {0: 101}, "the end cut is ahead of the stream: .* ends at 100, the cut says 101"),
        ({0: 101}, None, "before the start cut|ahead of the stream"),
        ({7: 0}, {0: 100}, "is no segment of this stream"),
        ({0: 0}, {0: 100, 9: 1}, "is no segment of this stream"),
        ({0: -1}, {0: 100}, "holds offset -1 .* a reader group's position"),
    ],
)
def test_cuts_that_cannot_be_right_are_refused(world, start, end, message):
    world.write(0, 100)
    with pytest.raises(InvalidRequest, match=message):
        plan(world, start, end)


def test_partial_and_doubled_cuts_are_refused(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 10)
    for partial in ({a: 10}, {0: 100, a: 10}):
        with pytest.raises(InvalidRequest, match="the end cut of scope/stream is partial"):
            plan(world, {0: 0}, partial)
    with pytest.raises(InvalidRequest, match="the start cut of scope/stream is partial"):
        plan(world, {b: 0}, {a: 10, b: 0})


def test_a_start_after_its_end_is_also_refused_across_segments(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    with pytest.raises(InvalidRequest, match="not at or after the start cut"):
        plan(world, {a: 0, b: 0}, {0: 100})


def test_a_missing_stream_is_not_found(world):
    world.missing = True
    with pytest.raises(SourceNotFound):
        plan(world)


def test_planning_asks_only(world):
    world.write(0, 100)
    plan(world)
    assert set(world.asked) <= {
        "getSegments",
        "getCurrentSegments",
        "getSegmentsBetween",
        "isStreamCutValid",
        "getSegmentsImmediatelyFollowing",
    }


def test_bases_that_need_what_pravega_does_not_have_are_refused_with_the_way_out():
    now = REQUEST.window.end
    with pytest.raises(InvalidRequest, match=r"'publish' cannot be read: Pravega stores no time.*basis='append'"):
        planner.check_basis(replace(REQUEST, basis="publish"), now)
    for basis, given in (("append", {"end_cut": cut({0: 1})}), ("event", {"start_cut": cut({0: 1})})):
        with pytest.raises(InvalidRequest, match="needs both cuts"):
            planner.check_basis(replace(REQUEST, basis=basis, **given), now)
        planner.check_basis(replace(REQUEST, basis=basis, start_cut=cut({0: 0}), end_cut=cut({0: 1})), now)


def test_a_chained_window_is_not_read_before_it_has_ended():
    request = replace(REQUEST, basis="chained", start_cut=cut({0: 0}))
    planner.check_basis(request, request.window.end)
    with pytest.raises(WindowNotReady, match="has not ended yet"):
        planner.check_basis(request, request.window.end - timedelta(seconds=1))


def test_a_stream_being_deleted_is_not_found_rather_than_asked_for_ever(world):
    world.gone.add(0)
    with pytest.raises(SourceNotFound):
        world.run(cuts.tail(STREAM))


# Order: the controller says nothing but that it failed


def test_cuts_that_cross_are_refused_with_the_segment(world):
    a, b = world.replace([0], 2)
    (c,) = world.replace([a], 1)
    (d,) = world.replace([b], 1)
    with pytest.raises(InvalidRequest, match=rf"in every segment: {Segment(STREAM, b).name}"):
        plan(world, {a: 0, d: 0}, {c: 0, b: 0})


def test_a_controller_that_fails_is_not_taken_for_cuts_in_no_order(world):
    world.write(0, 100)
    (a,) = world.replace([0], 1)
    between = world.between

    def failing(start, end):
        if start and end:
            raise UnknownServerError("the controller", "UNKNOWN")
        return between(start, end)

    world.between = failing
    with pytest.raises(UnknownServerError) as failed:
        plan(world, {0: 0}, {a: 0})
    assert failed.value.retryable
    with pytest.raises(InvalidRequest, match="in every segment"):
        plan(world, {a: 0}, {0: 50})


# Starts at the end of a segment that is gone


def test_a_start_at_an_end_that_retention_passed_says_where_it_may_go_on(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 50)
    world.truncate({a: 0, b: 0})
    place = f"{Segment(STREAM, a).name}@0, {Segment(STREAM, b).name}@0 is that place, and held"
    with pytest.raises(StartTrimmed, match=place):
        plan(world, {0: 100}, {a: 50, b: 0})
    assert spans(plan(world, {a: 0, b: 0}, {a: 50, b: 0})) == [(a, 0, 50)]
    world.truncate({a: 10, b: 0})
    with pytest.raises(StartTrimmed) as trimmed:
        plan(world, {0: 100}, {a: 50, b: 0})
    assert "is that place" not in str(trimmed.value), "some of what follows is gone as well"


def test_a_boundary_is_named_by_what_follows_it(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    boundary = world.run(scaling.roll(STREAM, [0]))
    assert (boundary.ends.offsets, boundary.cut.offsets) == ({0: 100}, {a: 0, b: 0})
    world.write(a, 50)
    world.truncate({a: 0, b: 0})
    assert spans(plan(world, boundary.cut.offsets)) == [(a, 0, 50)]


def test_a_boundary_that_others_cross_is_named_by_its_ends(world):
    a, b = world.replace([0], 2)
    world.write(a, 5)
    _, d = world.replace([a], 2)
    world.replace([b, d], 1)
    boundary = world.run(scaling.roll(STREAM, [a, b]))
    assert boundary.cut == boundary.ends == StreamCut(STREAM, {a: 5, b: 0})


def test_a_tail_names_open_segments_where_it_can(world):
    world.write(0, 10)
    answer, seen = world.answer, []

    def scaling(question):
        """Sealed before the controller says so."""
        found = answer(question)
        if getattr(question, "method", "") == "getCurrentSegments" and not seen:
            seen.extend(world.replace([0], 2))
        return found

    world.answer = scaling
    assert world.run(cuts.tail(STREAM)).offsets == dict.fromkeys(seen, 0)


# What cannot be proven


def test_a_window_from_the_head_is_unproven_once_the_stream_was_truncated(world):
    world.write(0, 100)
    assert [one.verdict for one in plan(world).ranges] == ["ok"], "it was never truncated"
    world.truncate({0: 30})
    a, _ = world.replace([0], 2)
    world.write(a, 7)
    for start in (None, {}):
        made = plan(world, start)
        assert [one.verdict.partition(":")[0] for one in made.ranges] == ["unproven", "ok", "empty"]
        assert spans(made) == [(0, 30, 100), (a, 0, 7)]
        with pytest.raises(StartUnproven, match=r"window 2026-11-20T10:00:00Z/.*truncated before.*on_unproven='land'"):
            plan(world, start, on_unproven="fail")
    assert plan(world, {0: 30}, on_unproven="fail").ranges[0].verdict == "ok", "from a known place it is proven"


def test_an_empty_window_from_the_head_is_also_unproven(world):
    world.write(0, 100)
    world.truncate({0: 100})
    made = plan(world)
    assert made.is_empty
    assert made.ranges[0].verdict.startswith("unproven")


# Which incarnation of the stream it is


def test_a_plan_names_when_its_segments_were_made(world):
    world.write(0, 100)
    a, b = world.replace([0], 2)
    world.write(a, 7)
    made = plan(world)
    assert [name for name, _ in made.source.incarnation] == [Segment(STREAM, key).name for key in (0, a)]
    assert made.source.incarnation[0][1] == "2026-11-18T11:06:40.000+00:00"
    assert world.run(incarnation.check(made.source)) is None
    world.replace([a, b], 1)
    world.truncate({a: 3, b: 0})
    world.seal()
    assert world.run(incarnation.check(made.source)) is None, "scaled, truncated, sealed: it is the same"
    empty = plan(world, {a: 7, b: 0}, {a: 7, b: 0})
    assert len(empty.source.incarnation) == 2, "an empty plan names where it ends"


def test_a_plan_of_another_life_is_refused(world):
    world.write(0, 100)
    made = plan(world)
    world.made_ms += 60_000
    with pytest.raises(
        SourceReplaced, match=r"0\.#epoch\.0 made at 2026-11-18T11:06:40.*made at 2026-11-18T11:07:40"
    ) as other:
        world.run(incarnation.check(made.source))
    assert not other.value.retryable


def test_a_plan_of_segments_that_the_stream_never_had_is_refused(world):
    world.write(0, 100)
    made = plan(world)
    again = segment_id(7, 0)
    world.segments = {again: Stored(0.0, 1.0)}
    world.head = {again: 0}
    world.between = lambda _start, _end: (again,)
    with pytest.raises(SourceReplaced, match="a stream of this name that never had it"):
        world.run(incarnation.check(made.source))
    world.exists = False
    assert world.run(incarnation.check(made.source)) is None, "a stream that is gone: reading tells what is lost"


def test_segments_that_were_truncated_away_tell_nothing(world):
    world.write(0, 100)
    made = plan(world)
    (a,) = world.replace([0], 1)
    world.truncate({a: 0})
    assert world.run(incarnation.check(made.source)) is None


def test_a_plan_without_an_identity_is_read_as_it_is(world):
    world.made_ms = None
    made = plan(world)
    assert made.source.incarnation == ()
    assert world.run(incarnation.check(made.source)) is None
