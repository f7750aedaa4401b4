import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import ReceiptMismatch
from airflow_provider_streams.model.plan.plan import Loss, Span, Split
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.plans import plan_of
from tests.unit.model.values import split_receipts

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
EMPTY = Cut({})


def at(entry):
    return Position.of(1, entry, -1)


@st.composite
def read_plans(draw):
    """A plan, and what a right read of it reports, with all its gaps explained."""
    sizes = draw(st.lists(st.integers(1, 50), max_size=5))
    splits, reports, first = [], [], 0
    for index, size in enumerate(sizes):
        splits.append(
            Split(
                index,
                f"shard-{index * 2 // max(len(sizes), 1)}",
                at(first),
                at(first + size),
                1,
                (Span(1, first, first + size),),
            )
        )
        seen = draw(st.integers(0, size))
        markers = draw(st.integers(0, size - seen))
        explained = Counter({"marker": markers, "aborted": size - seen - markers})
        rows = draw(st.integers(0, 10)) if seen else 0
        places = {"first": at(first), "last": at(first + seen - 1)} if rows else {}
        reports.append(SplitReceipt(index, rows, rows * 3, seen, explained=dict(+explained), **places))
        first += size
    return plan_of(splits), reports


@given(split_receipts)
def test_a_split_receipt_survives_json(report):
    assert SplitReceipt.from_json(json.loads(json.dumps(report.to_json()))) == report


@given(read_plans(), st.randoms(use_true_random=False))
def test_a_right_read_agrees_in_any_order(read, dice):
    plan, reports = read
    dice.shuffle(reports)
    receipt = compare(plan, reports, seconds=1.25)
    assert receipt.verdict == "complete"
    assert receipt.fingerprint == plan.fingerprint
    assert receipt.rows == receipt.totals["rows"] == sum(report.rows for report in reports)
    assert receipt.bytes == 3 * receipt.rows
    assert [report.index for report in receipt.splits] == [split.index for split in plan.splits]
    assert Receipt.from_json(json.loads(json.dumps(receipt.to_json()))) == receipt


@given(read_plans(), st.data())
def test_any_single_deviation_is_refused(read, data):
    plan, reports = read
    if not reports:
        return
    chosen = data.draw(st.integers(0, len(reports) - 1))
    report = reports[chosen]
    outside = plan.splits[chosen].end
    deviations = {
        "split left out": [],
        "split reported twice": [report, report],
        "entry dropped": [replace(report, entries=report.entries - 1)],
        "entry invented": [replace(report, entries=report.entries + 1)],
        "gap left": [replace(report, gaps=(Span(1, 0, 1),))],
        "unexplained explained": [replace(report, explained={**report.explained, "magic": 1})],
        "row outside": [replace(report, last=outside)],
        "first row outside": [replace(report, first=Position.of(0, 0, -1))],
        "unknown split": [report, replace(report, index=len(reports))],
    }
    for name, instead in deviations.items():
        changed = [*reports[:chosen], *instead, *reports[chosen + 1 :]]
        with pytest.raises(ReceiptMismatch) as caught:
            compare(plan, changed, seconds=1)
        assert caught.value.problems, name
        assert plan.fingerprint[:12] in str(caught.value)


@given(read_plans())
def test_a_dropped_entry_that_is_a_known_gap_is_named(read):
    plan, reports = read
    for report, split in zip(reports, plan.splits, strict=True):
        if not report.entries:
            continue
        gap = split.spans[0].first
        broken = replace(report, entries=report.entries - 1, gaps=(Span(1, gap, gap + 1),))
        with pytest.raises(ReceiptMismatch) as caught:
            compare(plan, [broken if other is report else other for other in reports], seconds=1)
        assert any(f"1:{gap}" in problem and split.shard in problem for problem in caught.value.problems)


def test_accepted_losses_are_told_by_the_verdict():
    place = at(0)
    plan = plan_of([])
    assert compare(plan, [], seconds=0).verdict == "complete"
    lost = replace(plan, losses=(Loss("x", place, place, "trimmed"),))
    assert compare(lost, [], seconds=0).verdict == "loss recorded"
    split = Split(0, "x", at(0), at(4), 1, (Span(1, 0, 4),))
    report = SplitReceipt(0, entries=1, explained={"lost": 3})
    assert compare(plan_of([split]), [report], seconds=0).verdict == "loss recorded"


def test_a_split_that_cannot_be_counted_needs_only_its_report():
    split = Split(0, "x", at(0), at(4), 1)
    assert compare(plan_of([split]), [SplitReceipt(0, rows=7, entries=3)], seconds=0).rows == 7


@given(split_receipts, st.dictionaries(st.sampled_from(["marker", "aborted", "lost"]), st.integers(1, 9)))
def test_explaining_adds_causes_and_replaces_gaps(report, causes):
    left = (Span(9, 1, 2),)
    explained = report.explain(Counter(causes), left)
    assert explained.gaps == left
    assert Counter(explained.explained) == Counter(report.explained) + Counter(causes)
    assert replace(explained, gaps=report.gaps, explained=report.explained) == report
