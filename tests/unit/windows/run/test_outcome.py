"""What a backfill says to have covered is what is covered when it ends."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.schema.change_rows import KINDS
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.window import EPOCH, Window
from airflow_provider_streams.windows.run.outcome import _KIND_WORDS, Outcome, kind_sentence

HOUR = timedelta(hours=1)


def window(start: int, hours: int) -> Window:
    return Window(EPOCH + start * HOUR, EPOCH + (start + hours) * HOUR)


@given(st.lists(st.builds(window, st.integers(0, 12), st.integers(1, 5)), max_size=8))
def test_a_window_that_a_later_one_replaced_is_not_covered(windows: list[Window]) -> None:
    landed: Any = tuple((SimpleNamespace(source_key="s"), SimpleNamespace(window=one), None) for one in windows)
    standing: list[Window] = []
    for one in windows:
        standing = [*(kept for kept in standing if not kept.overlaps(one)), one]
    assert Outcome(landed).without_replaced().covered == tuple(standing)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (120, "1 window covered, 120 rows"),
        (3, "1 window covered, 120 rows read, 3 landed"),
        (0, "1 window covered, 120 rows read, 0 landed"),
        (None, "1 window covered, 120 rows"),
    ],
)
def test_rows_that_a_transform_left_out_are_not_said_to_be_landed(written: int | None, said: str) -> None:
    outcome = landed(120, written)
    assert (outcome.rows, outcome.written, outcome.words) == (120, written, said)


def test_rows_of_windows_of_which_one_was_not_counted_have_no_sum() -> None:
    assert landed(120, 3).and_then(landed(120, 4)).written == 7
    assert landed(120, 3).and_then(landed(120, None)).written is None
    assert Outcome().written == 0


def landed(rows: int, written: int | None) -> Outcome:
    receipt = Receipt("f", (SplitReceipt(0, rows=rows),), 1.0, "complete")
    read: Any = (SimpleNamespace(source_key="s"), SimpleNamespace(window=window(0, 1)), Landed(receipt, written))
    return Outcome((read,))


def test_words_count_messages_that_change_no_row_by_kind() -> None:
    splits = (
        SplitReceipt(0, rows=3, kinds={"tombstone": 2, "schema_change": 1}),
        SplitReceipt(1, rows=1, kinds={"tombstone": 1, "truncate": 1}),
    )
    receipt = Receipt("", splits, 1.0, "complete")
    landed: Any = ((None, None, Landed(receipt, 4)),)
    assert Outcome(landed).words == "1 window covered, 4 rows, with 1 schema change, 3 tombstones, 1 truncate"
    assert receipt.totals | {"tombstone": 3, "schema_change": 1, "truncate": 1} == receipt.totals
    assert kind_sentence(window(10, 1), receipt).endswith(": 1 schema change, 3 tombstones, 1 truncate")
    assert {kind for kind in KINDS if kind != "change"} <= set(_KIND_WORDS)
