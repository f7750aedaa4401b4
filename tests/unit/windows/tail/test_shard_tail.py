from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.testing.plans import plan_of
from airflow_provider_streams.windows.tail.shard_tail import ShardTail, tails_of

UNITS = SimpleNamespace(starts_at_units=True, position_of=lambda run, unit: Position.of(run, unit, -1))
BYTES = SimpleNamespace(starts_at_units=False)


def of_entries(*counts: int) -> ShardTail:
    """A shard with a ledger for each count, of 10 bytes an entry."""
    splits = [
        Split(number, "s", Position.of(number, 0, -1), Position.of(number, count, -1), 10 * count, (span,))
        for number, count in enumerate(counts)
        for span in [Span(number, 0, count)]
    ]
    (tail,) = tails_of(plan_of(splits), UNITS, {})
    return tail


def of_bytes(size: int, *places: int) -> ShardTail:
    """A segment, and known places in it."""
    split = Split(0, "s", Position.of(0), Position.of(size), size, (Span(7, 0, size),))
    (tail,) = tails_of(plan_of([split]), BYTES, {"s": [Position.of(one) for one in places]})
    return tail


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_pieces_cover_every_unit_once(counts, steps):
    left, seen = of_entries(*counts), []
    for step in [*steps, *[100]]:
        if left is None:
            break
        piece = left.piece(step)
        assert piece.end == left.end
        assert sum(span.entries for span in piece.spans) == min(step, left.units)
        seen = [(span.run, unit) for span in piece.spans for unit in range(span.first, span.end)] + seen
        left = left.before(piece)
    assert left is None
    assert seen == [(run, unit) for run, count in enumerate(counts) for unit in range(count)]


def test_bytes_are_in_proportion_to_units():
    tail = of_entries(4, 6)
    piece = tail.piece(3)
    assert (piece.bytes, tail.before(piece).bytes) == (30, 70)
    assert tail.units_of(35) == 3
    assert tail.units_of(1) == 1


def test_adjacent_splits_of_one_ledger_are_one_span():
    middle = Position.of(1, 5, -1)
    splits = [
        Split(0, "s", Position.of(1, 0, -1), middle, 5, (Span(1, 0, 5),)),
        Split(1, "s", middle, Position.of(1, 9, -1), 4, (Span(1, 5, 9),)),
    ]
    (tail,) = tails_of(plan_of(splits), UNITS, {})
    assert tail.spans == (Span(1, 0, 9),)
    assert tail.piece(6).start == Position.of(1, 3, -1)


def test_a_segment_is_read_from_known_places_only():
    tail = of_bytes(1000, 300, 900, 1000)
    assert tail.piece(50).start == Position.of(900)
    assert tail.piece(101).start == Position.of(300)
    assert tail.piece(701).start == Position.of(0)
    left = tail.before(tail.piece(50))
    assert (left.end, left.bytes, left.spans) == (Position.of(900), 900, (Span(7, 0, 900),))
    assert left.piece(1).start == Position.of(300)


def test_a_piece_that_fits_begins_at_the_furthest_place_within():
    tail = of_bytes(1000, 300, 800, 900, 950)
    assert tail.fitting(250).start == Position.of(800)
    assert tail.fitting(10).start == Position.of(950)
    assert of_entries(10).fitting(3).start == Position.of(0, 7, -1)


def test_what_cannot_be_counted_is_read_as_a_whole():
    split = Split(0, "s", Position.of(0, 1), Position.of(9, 1), 100)
    (tail,) = tails_of(plan_of([split]), BYTES, {})
    piece = tail.piece(1)
    assert (piece.start, piece.end, piece.bytes, tail.before(piece)) == (split.start, split.end, 100, None)
