"""No event of a window is lost silently: neither a row, nor an event that was counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.sinks.landing import Held

COUNTS = st.integers(0, 9)


def read(rows: int, quarantined: int, dropped: int) -> Receipt:
    split = SplitReceipt(0, rows=rows, quarantined=quarantined, dropped=dropped)
    return Receipt("plan", (split,), 1.0, "complete")


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_an_event_that_is_neither_a_row_nor_counted_is_missing(rows, undecodable, now, quarantined, dropped):
    told = quarantined + dropped
    missing = Held(rows, undecodable).missing(read(now, quarantined, dropped))
    assert (missing == 0) == (now >= rows and now + told >= rows + undecodable)
    assert Held.from_json(Held(rows, undecodable).to_json()) == Held(rows, undecodable)


def test_an_event_that_became_another_windows_is_missed():
    assert Held(157, 3).missing(read(157, 0, 0)) == 3
    assert Held(157, 3).missing(read(160, 0, 0)) == 0
    assert Held(157, 3).missing(read(157, 0, 3)) == 0
