"""Every version once, whatever the order of the windows: against a plain fold over the changes of each key."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.lake.changes.states.events import Events, events_of, merge
from airflow_provider_streams.lake.changes.states.history import loaded, stored
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import SourceOrder
from tests.unit.lake.changes.histories import COLUMNS, Database, Event, in_source_order, schedule
from tests.unit.lake.changes.tables import change_rows

HISTORIES = int(os.environ.get("STREAMS_CDC_HISTORIES", "100"))
AT_ONCE = 100
TRACKED = ("a",)
RULES = Rules(AutoCdc(keys=["h", "id"], stored_as_scd_type=2), ("h", "id"), SourceOrder("written"))

Version = tuple[Any, ...]


def apply_all(windows: list[pa.Table], rules: Rules, tracked: tuple[str, ...] | None = None) -> pa.Table:
    """Windows one after the other; the state is stored and read again in between."""
    state: Events | None = None
    rows = pa.table({})
    for window in windows:
        new = events_of(window, rules)
        state = new if state is None else merge(state, new)
        rows, markers = stored(state, tracked)
        state = merge(loaded(rules.keys, rows, markers))
    return rows


def versions(rows: pa.Table) -> list[Version]:
    names = ["h", "id", *COLUMNS, "__START_AT", "__END_AT"]
    return sorted((tuple(row[name] for name in names) for row in rows.to_pylist()), key=repr)


def fold(history: int, events: list[Event], tracked: tuple[str, ...]) -> list[Version]:
    """One pass, key by key, with plain lists. A change starts no later than those after it."""
    ordered = in_source_order(events)
    found: list[Version] = []
    for key in sorted({event.key for event in events if event.key is not None}):
        own = [event for event in ordered if event.key == key or event.op == "t"]
        moments: list[tuple[int, dict[str, Any] | None]] = []
        row: dict[str, Any] | None = None
        for number, event in enumerate(own):
            start = min(later.time for later in own[number:])
            before = (row or {}) if event.op == "u" else {}
            values = {
                name: before.get(name) if name in event.unavailable else event.values.get(name) for name in COLUMNS
            }
            row = None if event.op in "dt" else values
            if moments and moments[-1][0] == start:
                moments.pop()
            moments.append((start, row))
        runs: list[tuple[int, dict[str, Any] | None]] = []
        for start, row in moments:
            last = runs[-1][1] if runs else None
            if row is not None and last is not None and all(row[name] == last[name] for name in tracked):
                runs[-1] = (runs[-1][0], row)
            else:
                runs.append((start, row))
        ends = [start for start, _ in runs[1:]] + [None]
        found += [
            (history, key, *(row[name] for name in COLUMNS), start, end)
            for (start, row), end in zip(runs, ends, strict=True)
            if row is not None
        ]
    return sorted(found, key=repr)


def plain_times(rows: list[Version]) -> list[Version]:
    def number(moment: Any) -> Any:
        return None if moment is None else round(moment.timestamp() * 1_000_000)

    return sorted(((*row[:-2], number(row[-2]), number(row[-1])) for row in rows), key=repr)


@pytest.mark.parametrize("tracked", [None, TRACKED], ids=["all", "tracked"])
def test_any_order_subset_and_repetition_gives_each_version_once(tracked: tuple[str, ...] | None) -> None:
    for first in range(0, HISTORIES, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, HISTORIES))
        plans = {
            seed: schedule(
                [event for event in Database(seed, copies_cross_snapshots=seed % 2 == 0).events if event.op != "t"],
                seed,
            )
            for seed in seeds
        }
        steps = max(len(plan.order) for plan in plans.values())
        windows = [
            change_rows(
                [(seed, event) for seed, plan in plans.items() if step < len(plan.order)
                 for event in plan.windows[plan.order[step]]]
            )
            for step in range(steps)
        ]  # fmt: skip
        found = plain_times(versions(apply_all(windows, RULES, tracked)))
        wanted = [one for seed, plan in plans.items() for one in fold(seed, plan.covered, tracked or COLUMNS)]
        assert found == sorted(wanted, key=repr)


@pytest.mark.parametrize("seed", range(8))
def test_truncates_end_the_versions_of_all_keys(seed: int) -> None:
    database = Database(seed, commit_log=False)
    events = [event for event in database.events if event.op != "r"]
    plan = schedule(events, seed)
    windows = [change_rows([(0, event) for event in plan.windows[number]]) for number in plan.order]
    found = plain_times(versions(apply_all(windows, RULES))) if windows else []
    assert found == fold(0, plan.covered, COLUMNS)


def test_equal_rows_ties_and_deletes_are_as_documented() -> None:
    rules = Rules(AutoCdc(keys=["id"], sequence_by="n", apply_as_deletes="a = -1", stored_as_scd_type=2), ("id",))
    rows = [(1, 5), (2, 5), (3, 6), (3, 7), (4, -1), (6, -1), (7, 7)]  # n, a
    tables = [pa.table({"id": [1], "n": [n], "a": [a], "_position": [f"{at:02}"]}) for at, (n, a) in enumerate(rows)]
    wanted = [(1, 1, 3, 5), (1, 3, 4, 7), (1, 7, None, 7)]
    for order in itertools.islice(itertools.permutations(tables), 0, 5040, 97):
        found = apply_all(list(order), rules, ("a",)).to_pylist()
        assert sorted((row["id"], row["__START_AT"], row["__END_AT"], row["a"]) for row in found) == wanted


def test_a_sequence_of_several_columns_is_a_struct() -> None:
    rules = Rules(AutoCdc(keys=["id"], sequence_by="struct(day, n)", stored_as_scd_type=2), ("id",))
    rows = pa.table({"id": [1, 1], "day": [2, 1], "n": [1, 9], "a": ["new", "old"], "_position": ["0", "1"]})
    found = sorted(apply_all([rows], rules).to_pylist(), key=lambda row: row["a"], reverse=True)
    assert [(row["a"], row["__START_AT"], row["__END_AT"]) for row in found] == [
        ("old", {"day": 1, "n": 9}, {"day": 2, "n": 1}),
        ("new", {"day": 2, "n": 1}, None),
    ]
