"""What a backfill says to have covered is what is covered when it ends."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.window import EPOCH, Window
from airflow_provider_streams.windows.backfilling import Outcome

HOUR = timedelta(hours=1)


def window(start: int, hours: int) -> Window:
    return Window(EPOCH + start * HOUR, EPOCH + (start + hours) * HOUR)


@given(st.lists(st.builds(window, st.integers(0, 12), st.integers(1, 5)), max_size=8))
def test_a_window_that_a_later_one_replaced_is_not_covered(windows: list[Window]) -> None:
    landed: Any = tuple((SimpleNamespace(window=one), None) for one in windows)
    standing: list[Window] = []
    for one in windows:
        standing = [*(kept for kept in standing if not kept.overlaps(one)), one]
    assert Outcome(landed).as_it_stands().covered == tuple(standing)
