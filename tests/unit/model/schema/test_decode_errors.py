"""What becomes of events that cannot be decoded."""

from __future__ import annotations

import math

import pytest

from airflow_provider_streams.errors import InvalidRequest, TooManyDecodeErrors
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from tests.unit.model.plan.test_plan import WINDOW


class Named:
    """As much of a plan as an error says."""

    window = WINDOW

    class source:  # noqa: N801 - an attribute
        names = ("shop/orders",)


def receipt(rows: int, quarantined: int, dropped: int = 0) -> Receipt:
    halves = (SplitReceipt(0, rows=rows, quarantined=quarantined), SplitReceipt(1, dropped=dropped))
    return Receipt("f", halves, 0.1, "complete")


@pytest.mark.parametrize(
    "wrong",
    [("ignore", None), ("fail", 0.1), ("drop", -0.1), ("drop", 1.1), ("drop", math.nan), ("drop", True), ("drop", "1")],
)
def test_what_says_nothing_is_refused(wrong):
    with pytest.raises(InvalidRequest):
        DecodeErrorPolicy(*wrong)


@pytest.mark.parametrize(
    "policy", [DecodeErrorPolicy(), DecodeErrorPolicy("drop"), DecodeErrorPolicy("quarantine", 0.01)]
)
def test_it_survives_json(policy):
    assert DecodeErrorPolicy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    ("most", "counts", "too_many"),
    [
        (None, (0, 5), False),
        (0, (5, 0), False),
        (0, (10**9, 1), True),
        (0.01, (99, 1), False),
        (0.01, (98, 1, 1), True),
        (0.5, (0, 0), False),
        (1, (0, 7), False),
    ],
)
def test_the_share_is_of_all_events_of_the_window(most, counts, too_many):
    policy, read = DecodeErrorPolicy("quarantine", most), receipt(*counts)
    if not too_many:
        policy.check(Named, read)
        return
    with pytest.raises(TooManyDecodeErrors, match=rf"shop/orders: {sum(counts[1:]):,} of {sum(counts):,} events"):
        policy.check(Named, read)
