"""After kill -9 at any moment, a table is what one pass over the windows gives whose marks it bears."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.changes import test_history
from tests.unit.lake.changes.engines import ENGINES, Engine, hour
from tests.unit.lake.changes.histories import COLUMNS, Event, Schedule, fold
from tests.unit.lake.changes.killed_applying import HISTORIES, RANDOM, STEPS
from tests.unit.lake.changes.tables import WRITTEN
from tests.unit.lake.changes.test_engines import HISTORY, latest, plans_of, windows_of

KILLS = int(os.environ.get("STREAMS_CDC_KILLS", "3"))
"""At random moments, of each engine."""


def events_of(plan: Schedule, steps: set[int]) -> list[Event]:
    numbers = {plan.order[step] for step in steps if step < len(plan.order)}
    return [event for number in numbers for event in plan.windows[number]]


def check(engine: Engine, plans: dict[int, Schedule], steps: set[int], *, history: bool) -> None:
    if not steps:
        return
    rows = engine.rows()
    if history:
        wanted = [
            one for seed, plan in plans.items() for one in test_history.fold(seed, events_of(plan, steps), COLUMNS)
        ]
        assert test_history.plain_times(test_history.versions(rows)) == sorted(wanted, key=repr)
        return
    found = latest(rows)
    for seed, plan in plans.items():
        assert found.get(seed, {}) == fold(events_of(plan, steps)), seed


@pytest.mark.slow
@pytest.mark.parametrize("history", [False, True], ids=["latest", "history"])
@pytest.mark.parametrize("kind", ENGINES)
def test_a_killed_merge_leaves_the_windows_whose_marks_are_there(kind: str, history: bool, tmp_path: Path) -> None:  # noqa: FBT001
    plans = plans_of(range(HISTORIES))
    windows = windows_of(plans)
    engine = Engine(kind, tmp_path, HISTORY if history else WRITTEN, range_bytes=3000)
    chance = random.Random(7)
    orders = [chance.sample(range(len(windows)), len(windows)) for _ in range(len(STEPS) + KILLS)]
    children = list(zip(orders, [*STEPS, *[RANDOM] * KILLS], strict=True))
    told = {"kind": kind, "folder": str(tmp_path), "history": history, "children": children, "seed": 1}
    program = [sys.executable, "-W", "ignore", "-m", "tests.unit.lake.changes.killed_applying", json.dumps(told)]
    hits = 0
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for order, step in children:
            answer: Any = json.loads(process.stdout.readline())  # type: ignore[union-attr]
            assert answer[0] == -9, f"the child was not killed at {step}, it failed"
            begun = answer[1][0].startswith("begin") if answer[1] else False
            hits += begun
            landed = {number for number in range(len(windows)) if hour(number) in engine.landed()}
            assert step not in STEPS or begun, step
            if step == "committed":
                assert order[0] in landed
            check(engine, plans, landed, history=history)
            process.stdin.write("\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
    assert hits >= len(STEPS) + KILLS * 2 // 3, f"only {hits} kills hit the middle of a merge"
    for number, window in windows:
        engine.apply(number, window)
    check(engine, plans, set(range(len(windows))), history=history)
