"""No event of a window is given up unseen: neither a row, nor one that was told of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.landing import Held
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt

COUNTS = st.integers(0, 9)


def read(rows: int, quarantined: int, dropped: int) -> Receipt:
    split = SplitReceipt(0, rows=rows, quarantined=quarantined, dropped=dropped)
    return Receipt("plan", (split,), 1.0, "complete")


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_what_is_neither_a_row_nor_told_of_is_missing(rows, undecodable, now, quarantined, dropped):
    told = quarantined + dropped
    missing = Held(rows, undecodable).missing(read(now, quarantined, dropped))
    assert (missing == 0) == (now >= rows and now + told >= rows + undecodable)
    assert Held.from_json(Held(rows, undecodable).to_json()) == Held(rows, undecodable)


def test_an_event_that_became_another_windows_is_missed():
    assert Held(157, 3).missing(read(157, 0, 0)) == 3
    assert Held(157, 3).missing(read(160, 0, 0)) == 0
    assert Held(157, 3).missing(read(157, 0, 3)) == 0
