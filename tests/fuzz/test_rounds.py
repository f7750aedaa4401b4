"""A few rounds of fuzzing, always the same ones: more of them with `make fuzz MINUTES=..`."""

from __future__ import annotations

import pytest

from tests.fuzz import compare, rounds
from tests.fuzz.compare import DifferentError
from tests.fuzz.rounds import Done


def forty_rounds():
    done = Done()
    for seed in range(40):
        rounds.legal(seed, done)
    return done


def test_legal_entries_in_unusual_encodings_are_read_as_the_plain_decoder_reads_them():
    done = forty_rounds()
    assert done.rows > 10_000
    assert set(done.paths) >= {"walk", "hop", "lanes", "pieces", "scan", "stride", "uniform", "single"}


def test_damaged_entries_are_read_as_the_plain_decoder_reads_them_or_refused_by_name():
    done = Done()
    for seed in range(25):
        rounds.damaged(seed, done)
    assert done.refused > 500
    assert done.rows > 2000


@pytest.mark.parametrize("column", ["value", "key", "batch_index"])
def test_a_decoder_that_reads_something_else_would_be_noticed(monkeypatch, column):
    """The comparison itself can fail."""
    true = compare.theirs

    def slightly_wrong(entries, columns, edges=None):
        found = true(entries, columns, edges)
        if column in found and len(found[column]) > 1:
            found[column] = found[column].take([1, 0, *range(2, len(found[column]))])
        return found

    monkeypatch.setattr(compare, "theirs", slightly_wrong)
    with pytest.raises(DifferentError, match=column):
        forty_rounds()
