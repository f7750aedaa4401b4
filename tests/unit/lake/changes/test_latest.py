"""Windows in any order, any subset and any number of times give what one pass in the source's order gives."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.lake.changes.states.change_states import Rules, state_of
from airflow_provider_streams.lake.changes.states.latest import State, merge
from tests.seeds import examples
from tests.unit.lake.changes.histories import Database, Event, fold, schedule
from tests.unit.lake.changes.tables import COMMITTED, WRITTEN, applied, canonical, change_rows, nothing, visible

HISTORIES = int(os.environ.get("STREAMS_CDC_HISTORIES", "200"))
AT_ONCE = 200


def of_seed(seed: int, rules: Rules) -> Database:
    """Without truncates where histories share a table: `one_by_one` has those."""
    return Database(seed, copies_cross_snapshots=seed % 2 == 0, commit_log=rules is COMMITTED)


def without_truncates(events: list[Event]) -> list[Event]:
    """A truncate has no key, so it would empty the tables of all histories: deletes of each key stand for it."""
    found: list[Event] = []
    for event in events:
        if event.op != "t":
            found.append(Event(event.op, event.key, event.values, len(found), *_facts(event)))
    return found


def _facts(event: Event) -> tuple[int, int, int, tuple[str, ...]]:
    return event.lsn, event.time, event.number, event.unavailable


@pytest.mark.parametrize("rules", [WRITTEN, COMMITTED], ids=["written", "committed"])
def test_any_order_subset_and_repetition_gives_one_pass_over_the_covered_windows(rules: Rules) -> None:
    for first in range(0, HISTORIES, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, HISTORIES))
        plans = {
            seed: schedule(without_truncates(of_seed(seed, rules).events), seed, all_of_them=seed % 3 == 0)
            for seed in seeds
        }
        steps = max(len(plan.order) for plan in plans.values())
        windows = [
            change_rows(
                [
                    (seed, event)
                    for seed, plan in plans.items()
                    if step < len(plan.order)
                    for event in plan.windows[plan.order[step]]
                ]
            )
            for step in range(steps)
        ]
        found = visible(applied(windows, rules))
        for seed, plan in plans.items():
            assert found.get(seed, {}) == fold(plan.covered), f"history {seed}"


@given(st.integers(0, 2**32), st.booleans(), st.booleans())
@settings(max_examples=examples(20))
def test_a_history_with_truncates_gives_one_pass_in_any_order(seed: int, committed: bool, crosses: bool) -> None:  # noqa: FBT001
    rules = COMMITTED if committed else WRITTEN
    database = Database(seed, copies_cross_snapshots=crosses, commit_log=committed)
    plan = schedule(database.events, seed)
    windows = [change_rows([(0, event) for event in plan.windows[number]]) for number in plan.order]
    assert visible(applied(windows, rules)).get(0, {}) == fold(plan.covered)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=examples(15))
def test_when_all_windows_are_there_the_table_is_the_databases(seed: int, committed: bool) -> None:  # noqa: FBT001
    database = Database(seed, copies_cross_snapshots=seed % 2 == 0, commit_log=committed)
    plan = schedule(database.events, seed, all_of_them=True)
    windows = [change_rows([(0, event) for event in plan.windows[number]]) for number in plan.order]
    found = visible(applied(windows, COMMITTED if committed else WRITTEN)).get(0, {})
    began = {event.key for event in database.events}
    assert {key: row for key, row in found.items() if key in began} == database.rows


@given(st.integers(0, 2**32))
@settings(max_examples=examples(15))
def test_states_are_joined_in_any_grouping_and_order_and_twice(seed: int) -> None:
    events = Database(seed).events
    chance = random.Random(seed)
    parts: list[State] = []
    for _ in range(3):
        chosen = [(0, event) for event in events if chance.random() < 0.5]
        chance.shuffle(chosen)
        parts.append(merge(nothing(WRITTEN), state_of(change_rows(chosen), WRITTEN)))
    a, b, c = parts
    assert canonical(merge(merge(a, b), c)) == canonical(merge(a, merge(b, c)))
    assert canonical(merge(a, b)) == canonical(merge(b, a))
    assert canonical(merge(a, a)) == canonical(a)


def test_an_order_by_lsn_alone_would_fail_these_histories() -> None:
    """Otherwise the workloads have no transactions that wait for each other, and prove little."""
    wrong = 0
    for seed in range(300):
        database = Database(seed)
        table: dict[int, object] = {}
        for event in sorted((one for one in database.events if one.number >= 0), key=lambda one: one.lsn):
            if event.op == "t":
                table.clear()
            elif event.op == "d":
                table.pop(event.key, None)  # type: ignore[arg-type]
            else:
                table[event.key] = event  # type: ignore[index]
        wrong += table.keys() != database.rows.keys()
    assert wrong > 5
