from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Range
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, Ledger
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout, at
from airflow_provider_streams.systems.pulsar.planning.splitting import MAX_SPLITS, TARGET_ENTRIES, split
from tests.unit.systems.pulsar.strategies import layouts, places

MB = 1024 * 1024


def split_between(layout, start, end, target):
    return split(layout, Range("shard", start, end, 0), target)


def flat(layout, spans):
    return [(span.run, span.first, span.end) for span in spans]


@given(layouts(), st.data(), st.integers(1, 200 * MB))
def test_pieces_cover_the_range_exactly(layout, data, target):
    start, end = sorted([data.draw(places(layout)), data.draw(places(layout))])
    pieces = split_between(layout, start, end, target)
    whole = layout.spans(start, end)
    if not whole:
        assert pieces == ()
        return
    assert (pieces[0].start, pieces[-1].end) == (start, end)
    assert all(left.end == right.start for left, right in pairwise(pieces))
    assert sum(span.entries for piece in pieces for span in piece.spans) == sum(span.entries for span in whole)
    assert all(piece.start < piece.end and piece.spans for piece in pieces), "a piece holds nothing"
    assert len(pieces) <= MAX_SPLITS
    assert all(piece.spans == layout.spans(piece.start, piece.end) for piece in pieces)


@given(layouts(), st.integers(1, 200 * MB))
def test_bytes_of_pieces_add_up(layout, target):
    pieces = split_between(layout, layout.head, layout.end, target)
    assert abs(sum(piece.bytes for piece in pieces) - layout.bytes_of(layout.spans(layout.head, layout.end))) <= len(
        pieces
    )


def test_pieces_are_about_even():
    layout = Layout((Ledger(1, 40_000, 400 * MB),), EntryId(1, 39_999))
    pieces = split_between(layout, layout.head, layout.end, 100 * MB)
    assert [piece.spans[0].entries for piece in pieces] == [10_000] * 4


def test_a_ledger_boundary_nearby_is_taken():
    layout = Layout((Ledger(1, 10_500, 105 * MB), Ledger(5, 9_500, 95 * MB)), EntryId(5, 9_499))
    first, second = split_between(layout, layout.head, layout.end, 100 * MB)
    assert first.end == second.start == at(5, 0)
    layout = Layout((Ledger(1, 9_500, 95 * MB), Ledger(5, 10_500, 105 * MB)), EntryId(5, 10_499))
    first, second = split_between(layout, layout.head, layout.end, 100 * MB)
    assert first.end == second.start == at(5, 0)


def test_many_small_entries_are_split_by_their_number():
    entries = 3 * TARGET_ENTRIES
    layout = Layout((Ledger(1, entries, entries * 10),), EntryId(1, entries - 1))
    assert len(split_between(layout, layout.head, layout.end, 64 * MB)) == 3


def test_one_entry_is_one_piece_however_large():
    layout = Layout((Ledger(1, 1, 500 * MB),), EntryId(1, 0))
    assert len(split_between(layout, layout.head, layout.end, MB)) == 1


def test_a_window_inside_a_batch_keeps_its_own_edges():
    layout = Layout((Ledger(1, 10, 1000),), EntryId(1, 9))
    start, end = Position.of(1, 2, 3), Position.of(1, 2, 5)
    (piece,) = split_between(layout, start, end, MB)
    assert (piece.start, piece.end) == (start, end)
    assert flat(layout, piece.spans) == [(1, 2, 3)]
