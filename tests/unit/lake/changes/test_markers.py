"""Markers go as soon as no hole is before them, and no table changes for it, then or later."""

from __future__ import annotations

import random

import pytest

from airflow_provider_streams.lake.changes.states import history, stored_latest
from airflow_provider_streams.lake.changes.states.change_states import state_of
from airflow_provider_streams.lake.changes.states.events import events_of
from airflow_provider_streams.lake.changes.states.events import merge as merge_events
from airflow_provider_streams.lake.changes.states.latest import merge, reduced
from tests.unit.lake.changes import test_history
from tests.unit.lake.changes.histories import COLUMNS, Database, Event, fold, schedule
from tests.unit.lake.changes.tables import WRITTEN, change_rows, nothing, visible


def what_may_come(windows: list[list[Event]], done: set[int]) -> tuple[list[str], str | None]:
    """The holes before the newest landed window, and the sequence up to which nothing comes again."""
    missing = [events for number, events in enumerate(windows) if number not in done and number < max(done) and events]
    to_come = [one for number, events in enumerate(windows) if number not in done for one in events if one.number >= 0]
    again = [one for one in to_come if any(one.number == other.number for number in done for other in windows[number])]
    floor = min((f"{one.time + 2**63:016x}{one.lsn:016X}" for one in again), default=None)
    return [f"{events[0].position:08x}" for events in missing], floor


def ordered(windows: list[list[Event]], seed: int) -> list[int]:
    """Nearly in order, and some windows much later."""
    chance = random.Random(seed)
    return sorted(range(len(windows)), key=lambda number: number + chance.choice([0, 0, 0, 3, 9]))


@pytest.mark.parametrize("seed", range(12))
def test_latest_state_without_needless_markers(seed: int) -> None:
    windows = schedule(Database(seed, copies_cross_snapshots=seed % 2 == 0).events, seed).windows
    state, done = nothing(WRITTEN), set[int]()
    for number in ordered(windows, seed):
        state = merge(state, state_of(change_rows([(0, event) for event in windows[number]]), WRITTEN))
        done.add(number)
        rows, markers = stored_latest.split(state)
        holes, resent = what_may_come(windows, done)
        markers = stored_latest.kept(markers, holes, resent)
        if not holes and resent is None:
            assert len(markers) == 0
        state = reduced(stored_latest.joined(state.keys, rows, markers))
        assert visible(state).get(0, {}) == fold([event for one in done for event in windows[one]])


@pytest.mark.parametrize("seed", range(12))
def test_history_without_needless_markers(seed: int) -> None:
    events = [one for one in Database(seed, copies_cross_snapshots=seed % 2 == 0).events if one.op != "t"]
    windows = schedule(events, seed).windows
    state, done = events_of(change_rows([]), test_history.RULES), set[int]()
    for number in ordered(windows, seed):
        window = change_rows([(0, event) for event in windows[number]])
        state = merge_events(state, events_of(window, test_history.RULES))
        done.add(number)
        rows, markers = history.stored(state, ("a",))
        holes, resent = what_may_come(windows, done)
        markers = history.kept(markers, ("h", "id"), holes, resent)
        if not holes and resent is None:
            assert len(markers) == 0
        state = merge_events(history.loaded(state.keys, rows, markers))
        found = test_history.plain_times(test_history.versions(rows))
        assert found == test_history.fold(0, [event for one in done for event in windows[one]], ("a",)), COLUMNS
