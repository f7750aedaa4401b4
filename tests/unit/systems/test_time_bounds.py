"""Every event's time is within what its piece says, however events are noted; pieces begin between two events."""

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics, with_unknown
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.time_bounds import FEWEST_PIECES, MOST_PIECES, PIECE_BYTES, TimeBounds, Times

times = st.integers(-(2**62), 2**62)
UNITS = [Fraction(1000), Fraction(1), Fraction(1, 1000), Fraction(86_400 * 10**6)]


def split_of(spans, size=0):
    return Split(0, "shard", Position.of(0), Position.of(1), size, tuple(spans))


@st.composite
def stored(draw):
    """A split, and the events in it: run, first unit, time in some unit; None: it is unknown."""
    spans, run = [], 0
    for _ in range(draw(st.integers(1, 3))):
        run += draw(st.integers(1, 5))
        first = draw(st.integers(0, 50))
        spans.append(Span(run, first, first + draw(st.integers(1, 60))))
    places = [(span.run, unit) for span in spans for unit in range(span.first, span.end)]
    begun = sorted(draw(st.lists(st.sampled_from(places), max_size=30)))
    return split_of(spans, draw(st.integers(0, 40)) * PIECE_BYTES), [
        (*place, draw(st.none() | times)) for place in begun
    ]


@given(stored(), st.sampled_from(UNITS), st.data())
def test_bounds_hold_every_event_and_pieces_tile_what_is_stored(read, unit, data):
    split, events = read
    bounds, others = TimeBounds(split), TimeBounds(split)
    together = [one for one in events if data.draw(st.booleans())]
    alone = list(events)
    for one in together:
        alone.remove(one)
    for run, first, time in data.draw(st.permutations(alone)):
        if time is None:
            others.add_unknown(run, first)
        elif unit >= 1:
            others.add(run, first, int(time * unit))
        else:
            others.add_all(np.array([run]), np.array([first]), Times(np.array([time]), unit))
    note_together(bounds, [one for one in together if one[2] is not None], unit)
    note_together(bounds, [one for one in together if one[2] is None], None)
    bounds.merge(others)
    seen = bounds.seen()
    assert [TimeStatistics.from_json(one) for one in json.loads(json.dumps([one.to_json() for one in seen]))] == list(
        seen
    )
    for run, first, time in events:
        (piece,) = [one for one in seen if one.span.run == run and one.span.first <= first < one.span.end]
        if time is None:
            assert piece.unknown
        else:
            assert piece.earliest_us <= time * unit <= piece.latest_us
    assert sum(one.unknown for one in seen) == sum(time is None for *_, time in events)
    assert all(one.span.first < one.span.end for one in seen)
    for span in split.spans:
        mine = [one.span for one in seen if one.span.run == span.run]
        assert (mine[0].first, mine[-1].end) == (span.first, span.end)
        assert all(before.end == after.first for before, after in pairwise(mine))
        begun = {first for run, first, _ in events if run == span.run}
        assert all(one.first in begun for one in mine[1:]), "a piece that can be read alone begins with an event"
    assert len(seen) <= MOST_PIECES + len(split.spans)


def note_together(bounds, events, unit):
    columns = [np.array([one[n] for one in events], np.int64) for n in (0, 1)]
    noted = None if unit is None else Times(np.array([one[2] for one in events], np.int64), unit)
    bounds.add_all(*columns, noted)


@given(stored())
def test_a_piece_is_left_out_only_for_windows_that_none_of_its_events_is_in(read):
    split, events = read
    bounds = TimeBounds(split)
    note_together(bounds, [one for one in events if one[2] is not None], Fraction(1))
    known = [one[2] for one in events if one[2] is not None]
    for edge in known:
        for start, end in ((edge, edge + 1), (edge - 1, edge), (edge + 1, edge + 2)):
            met = any(one.may_meet(start, end) for one in bounds.seen())
            assert met or not any(start <= time < end for time in known)


def test_small_splits_have_few_pieces_and_what_is_not_counted_none():
    assert len(TimeBounds(split_of([Span(1, 0, 1000)])).seen()) == 1, "nothing was met in it: it is one piece"
    bounds = TimeBounds(split_of([Span(1, 0, 1000)]))
    for unit in range(1000):
        bounds.add(1, unit, unit)
    assert [one.span.entries for one in bounds.seen()] == [1000 // FEWEST_PIECES] * FEWEST_PIECES
    uncounted = TimeBounds(split_of([]))
    uncounted.add(1, 5, 0)
    uncounted.add_all(np.array([1]), np.array([5]), None)
    assert uncounted.seen() == ()


def test_what_lies_outside_the_split_is_not_noted():
    bounds = TimeBounds(split_of([Span(3, 10, 20)]))
    for run, unit in ((2, 15), (4, 15), (3, 9), (3, 20)):
        bounds.add(run, unit, 0)
    bounds.add_all(np.array([2, 3, 3, 4]), np.array([15, 5, 25, 15]), None)
    assert bounds.seen() == (TimeStatistics(Span(3, 10, 20), None, None),)


def test_what_one_reader_does_not_know_the_other_does_not_prove():
    seen = (
        TimeStatistics(Span(1, 0, 10), 5, 6),
        TimeStatistics(Span(1, 10, 20), 5, 6),
        TimeStatistics(Span(2, 0, 10), 5, 6),
    )
    doubts = (TimeStatistics(Span(1, 5, 12), None, None, 2), TimeStatistics(Span(2, 0, 3), 1, 1))
    assert [one.unknown for one in with_unknown(seen, doubts)] == [2, 2, 0]
