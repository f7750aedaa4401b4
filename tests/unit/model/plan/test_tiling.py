"""A plan that leaves something out, or reads it twice, is refused, even with matching digests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal.chained_windows import Chain
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan import Loss, Plan, Range, Skipped, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.testing.plans import plan_of
from tests.seeds import examples
from tests.unit.model.values import plans


def at(number: int) -> Position:
    return Position.of(number)


def split(shard: str, start: int, end: int) -> Split:
    return Split(0, shard, at(start), at(end), 1, (Span(1, start, end),))


def numbered(splits: Sequence[Split]) -> tuple[Split, ...]:
    return tuple(replace(one, index=index) for index, one in enumerate(splits))


WHOLE = plan_of(numbered([split("a", 0, 4), split("a", 4, 7), split("a", 7, 10), split("b", 3, 5)]))
"""Units 0 to 10 of one shard by three splits, 3 to 5 of another by one."""
LOST = replace(WHOLE, start_cut=Cut({"a": at(0), "b": at(1)}), losses=(Loss("b", at(1), at(3), "trimmed"),))
"""The same, after two units of the second shard were lost."""


def with_splits(*splits: Split) -> Plan:
    return replace(WHOLE, splits=numbered(splits))


def with_range(shard: str, **parts: object) -> Plan:
    ranges = (replace(one, **parts) if one.shard == shard else one for one in WHOLE.ranges)  # type: ignore[arg-type]
    return replace(WHOLE, ranges=tuple(ranges))


A1, A2, A3, B = WHOLE.splits
UNCOUNTED = with_range("a", entries=None)


def leaving_out(*skipped: Skipped, splits: Sequence[Split] = (A1, A3, B)) -> Plan:
    return replace(with_splits(*splits), skipped=skipped)


SKIPPED = Skipped("a", at(4), at(7), 1, 3, "it was read before")
LESS = leaving_out(SKIPPED)
"""What the second split would read was proven to be none of the window's."""
BROKEN = {
    "a split is dropped at the begin": with_splits(A2, A3, B),
    "a split is dropped in the middle": with_splits(A1, A3, B),
    "a split is dropped at the end": with_splits(A1, A2, B),
    "all splits of a shard are dropped": with_splits(A1, A2, A3),
    "all splits of an uncounted shard are dropped": replace(UNCOUNTED, splits=numbered([B])),
    "a split is read twice": with_splits(A1, A2, A2, A3, B),
    "a split is cut short at its end": with_splits(A1, A2, split("a", 7, 9), B),
    "a split is cut short at its start": with_splits(split("a", 1, 4), A2, A3, B),
    "a split is cut short in the middle": with_splits(A1, split("a", 4, 6), A3, B),
    "two splits overlap": with_splits(A1, split("a", 3, 7), A3, B),
    "a split reaches beyond its range": with_splits(A1, A2, split("a", 7, 11), B),
    "splits go forth and back": replace(
        UNCOUNTED, splits=numbered([replace(A1, end=at(12), spans=()), replace(A3, start=at(12), spans=()), B])
    ),
    "a split leaves units of its span out": with_splits(A1, replace(A2, spans=(Span(1, 4, 6),)), A3, B),
    "a split is of a shard without a range": with_splits(A1, A2, A3, B, split("c", 0, 1)),
    "a range is dropped with its splits": replace(WHOLE, ranges=WHOLE.ranges[:1], splits=WHOLE.splits[:3]),
    "a range starts late, and its splits with it": replace(
        with_range("a", start=at(4), entries=6), splits=numbered([A2, A3, B])
    ),
    "a range ends early, and its splits with it": replace(
        with_range("a", end=at(7), entries=7), splits=numbered([A1, A2, B])
    ),
    "a hole between two ranges of a shard": replace(
        WHOLE,
        ranges=(Range("a", at(0), at(4), 1, 4), Range("a", at(7), at(10), 1, 3), WHOLE.ranges[1]),
        splits=numbered([A1, A3, B]),
    ),
    "a range goes backwards": replace(
        WHOLE,
        ranges=(*WHOLE.ranges, Range("c", at(5), at(4), 0)),
        splits=(*WHOLE.splits, replace(B, index=4, shard="c")),
    ),
    "the start cut has moved": replace(WHOLE, start_cut=Cut({"a": at(0), "b": at(2)})),
    "the end cut has moved": replace(WHOLE, end_cut=Cut({"a": at(11), "b": at(5)})),
    "the start cut names one more shard": replace(WHOLE, start_cut=Cut({**WHOLE.start_cut, "c": at(0)})),
    "the end cut names one more shard": replace(WHOLE, end_cut=Cut({**WHOLE.end_cut, "c": at(0)})),
    "a skipped piece is dropped": leaving_out(),
    "a skipped piece is of another shard": leaving_out(replace(SKIPPED, shard="b")),
    "a skipped piece begins late": leaving_out(replace(SKIPPED, start=at(5), entries=2)),
    "a skipped piece ends late": leaving_out(replace(SKIPPED, end=at(8), entries=4)),
    "a skipped piece has fewer units": leaving_out(replace(SKIPPED, entries=2)),
    "a skipped piece is also read": leaving_out(SKIPPED, splits=(A1, A2, A3, B)),
    "a skipped piece is skipped twice": leaving_out(SKIPPED, SKIPPED),
    "a loss is dropped": replace(LOST, losses=()),
    "a loss ends before its range starts": replace(LOST, losses=(Loss("b", at(1), at(2), "trimmed"),)),
    "a loss begins after the start cut": replace(LOST, losses=(Loss("b", at(2), at(3), "trimmed"),)),
    "a loss is of another shard": replace(LOST, losses=(Loss("a", at(1), at(3), "trimmed"),)),
}


def read_again(plan: Plan) -> Plan:
    """As it comes back from a file, with digests that are its own."""
    return Plan.from_json(json.loads(json.dumps(plan.to_json())))


def reports_of(plan: Plan) -> list[SplitReceipt]:
    """Every split says to have read all that it was told to."""
    return [SplitReceipt(one.index, entries=one.entries or 0) for one in plan.splits]


@pytest.mark.parametrize("plan", [WHOLE, LOST, LESS], ids=["whole", "with a loss", "with less to read"])
def test_a_plan_that_holds_together_is_read_and_proven(plan: Plan) -> None:
    assert read_again(plan) == plan
    assert compare(plan, reports_of(plan), seconds=0).fingerprint == plan.fingerprint


@pytest.mark.parametrize("name", BROKEN)
def test_a_plan_that_does_not_is_neither_read_nor_proven(name: str) -> None:
    plan = BROKEN[name]
    with pytest.raises(PlanMismatch, match="does not hold together"):
        read_again(plan)
    with pytest.raises(PlanMismatch, match="does not hold together"):
        compare(plan, reports_of(plan), seconds=0)


def test_what_is_skipped_is_part_of_what_a_plan_is() -> None:
    elsewhere = leaving_out(replace(SKIPPED, start=at(0), end=at(4), entries=4), splits=(A2, A3, B))
    assert len({plan.fingerprint for plan in (WHOLE, LESS, elsewhere)}) == len((WHOLE, LESS, elsewhere))
    assert LESS.fingerprint == leaving_out(replace(SKIPPED, because="of another receipt")).fingerprint


def test_a_plan_that_does_not_is_not_pinned(tmp_path: Path) -> None:
    plan = BROKEN["a split is dropped in the middle"]
    with Journal(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        pins = (
            lambda: journal.pin("source", plan),
            lambda: journal.replan("source", plan),
            lambda: journal.pin_chained("source", plan, Chain(None, (), (), None)),
        )
        for pin in pins:
            with pytest.raises(PlanMismatch, match="does not hold together"):
                pin()
        assert journal.pinned("source", plan.reader, plan.window) is None


CHANGES: dict[str, Callable[[Split], Split | None]] = {
    "dropped": lambda _: None,
    "starts late": lambda one: replace(one, start=later(one.start)),
    "starts early": lambda one: replace(one, start=later(one.start, -1)),
    "ends late": lambda one: replace(one, end=later(one.end)),
    "ends early": lambda one: replace(one, end=later(one.end, -1)),
    "of another shard": lambda one: replace(one, shard=one.shard + "x"),
}


def later(position: Position, units: int = 1) -> Position:
    return Position((*position.parts[:-1], position.parts[-1] + units))


@settings(max_examples=examples(60))
@given(plans().filter(lambda plan: plan.splits), st.data())
def test_no_split_of_any_plan_can_be_changed(plan: Plan, data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(plan.splits) - 1))
    change = CHANGES[data.draw(st.sampled_from(sorted(CHANGES)))]
    changed = (change(one) if one.index == chosen else one for one in plan.splits)
    broken = replace(plan, splits=numbered([one for one in changed if one is not None]))
    with pytest.raises(PlanMismatch, match="does not hold together"):
        read_again(broken)
