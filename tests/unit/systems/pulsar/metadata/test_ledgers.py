from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Span
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, Ledger
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout, after
from tests.unit.systems.pulsar.strategies import layouts, places

LAYOUT = Layout((Ledger(40, 20, 2000), Ledger(41, 0, 0), Ledger(43, 5, 500)), EntryId(43, 4))


def entries_of(layout):
    return {(row.ledger, entry) for row in layout.ledgers for entry in range(row.entries)}


def entries_in(spans):
    found = [(span.run, entry) for span in spans for entry in range(span.first, span.end)]
    assert len(found) == len(set(found)), "a span overlaps another"
    return set(found)


def test_head_and_end_are_around_what_is_stored():
    assert LAYOUT.head == Position.of(40, 0, -1)
    assert LAYOUT.end == Position.of(43, 5, -1)


def test_the_entry_before_a_place_may_lie_in_an_older_ledger():
    assert LAYOUT.before(Position.of(43, 2, -1)) == Position.of(43, 1, -1)
    assert LAYOUT.before(Position.of(43, 0, -1)) == Position.of(40, 19, -1)
    assert LAYOUT.before(LAYOUT.end) == Position.of(43, 4, -1)
    assert LAYOUT.before(EARLIEST) == LAYOUT.before(LAYOUT.head) == LAYOUT.head


@pytest.mark.parametrize("index", range(26))
def test_places_are_counted_over_ledgers(index):
    place = LAYOUT.shifted(LAYOUT.head, index)
    assert LAYOUT.index_of(place) == index
    assert LAYOUT.shifted(LAYOUT.end, index - 25) == place
    assert place == (Position.of(40, index, -1) if index < 20 else Position.of(43, index - 20, -1))


def test_nothing_lies_before_the_head_or_behind_the_end():
    assert LAYOUT.shifted(LAYOUT.head, -3) == LAYOUT.head == LAYOUT.inside(EARLIEST)
    assert LAYOUT.shifted(LAYOUT.head, 99) == LAYOUT.end == LAYOUT.inside(Position.of(99, 0, -1))
    # a place after a ledger's last entry, or in one that is gone, is where the next entry stored after it is
    assert LAYOUT.index_of(Position.of(40, 20, -1)) == LAYOUT.index_of(Position.of(41, 7, -1)) == 20


def test_an_empty_shard_begins_and_ends_in_its_open_ledger():
    empty = Layout((Ledger(29, 0, 0),), EntryId(28, 19))
    assert empty.head == empty.end == Position.of(29, 0, -1)
    assert empty.is_empty


def test_a_shard_without_ledgers_ends_after_its_last_entry():
    assert Layout((), EntryId(28, 19)).head == Position.of(28, 20, -1)
    assert Layout(()).head == EARLIEST


def test_spans_skip_empty_ledgers():
    assert LAYOUT.spans(Position.of(40, 18, -1), Position.of(43, 2, -1)) == (Span(40, 18, 20), Span(43, 0, 2))


def test_a_bound_inside_a_batch_counts_its_entry_on_both_sides():
    inside = Position.of(43, 2, 3)
    assert LAYOUT.spans(Position.of(43, 0, -1), inside) == (Span(43, 0, 3),)
    assert LAYOUT.spans(inside, Position.of(43, 5, -1)) == (Span(43, 2, 5),)


def test_positions_past_a_ledgers_end_continue_in_the_next():
    assert LAYOUT.spans(Position.of(40, 500, -1), Position.of(43, 1, -1)) == (Span(43, 0, 1),)
    assert LAYOUT.spans(EARLIEST, Position.of(40, 1, -1)) == (Span(40, 0, 1),)


@given(layouts(500), st.data())
def test_spans_of_entry_bounds_are_exactly_the_entries_between(layout, data):
    start, end = sorted([data.draw(places(layout)), data.draw(places(layout))])
    expected = {e for e in entries_of(layout) if start <= Position.of(*e, -1) < end}
    assert entries_in(layout.spans(start, end)) == expected


@given(layouts(500), st.data())
def test_adjacent_ranges_share_no_entry_and_miss_none(layout, data):
    bounds = sorted(data.draw(st.lists(places(layout), min_size=3, max_size=6)))
    parts = [entries_in(layout.spans(a, b)) for a, b in pairwise(bounds)]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert set().union(*parts) == entries_in(layout.spans(bounds[0], bounds[-1]))


@given(layouts())
def test_the_whole_shard_holds_all_its_bytes(layout):
    whole = layout.spans(layout.head, layout.end)
    assert layout.bytes_of(whole) == sum(row.bytes for row in layout.ledgers)


def test_after_an_entry_is_the_next_number_even_at_a_ledgers_end():
    assert after(EntryId(40, 19)) == Position.of(40, 20, -1)
