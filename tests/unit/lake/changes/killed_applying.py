"""Applies windows in a forked process, which is killed: at a named step, or at a random moment.

python -m tests.unit.lake.changes.killed_applying <engine, folder, history or not, order of windows, steps, as JSON>

Prints for each child what it had begun and ended when it died.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.unit.lake.changes.engines import COMMITS, Engine
from tests.unit.lake.changes.tables import WRITTEN
from tests.unit.lake.changes.test_engines import HISTORY, plans_of, windows_of

HISTORIES = 20
STEPS = ("rows", "markers", "committing", "committed")
"""Files of rows are written; the list of markers is; the commit is to be sent; it was answered."""
RANDOM = "random"
_LONGEST_SECONDS = 0.4


def say(out: int, text: str) -> None:
    os.write(out, f"{text}\n".encode())


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(kind: str, step: str) -> None:
    module, owner, name = COMMITS[kind]
    if step == "rows":
        module, owner, name = "airflow_provider_streams.lake.changes.copy_on_write", "Merging", "list_of_markers"
    elif step == "markers":
        module, owner, name = "airflow_provider_streams.lake.changes.marker_files", "MarkerFiles", "write_list"
    holder = getattr(importlib.import_module(module), owner)
    original = getattr(holder, name)

    def act(*arguments: Any, **named: Any) -> None:
        if step in ("markers", "committed"):
            original(*arguments, **named)
        die()

    setattr(holder, name, die if step in ("rows", "committing") else act)


def apply_for_ever(told: dict[str, Any], order: list[int], report: Callable[[str], None]) -> None:
    engine = Engine(told["kind"], Path(told["folder"]), HISTORY if told["history"] else WRITTEN, range_bytes=3000)
    windows = dict(windows_of(plans_of(range(HISTORIES))))
    while True:
        for number in order:
            report(f"begin {number}")
            engine.apply(number, windows[number])
            report(f"end {number}")


def main() -> None:
    told = json.loads(sys.argv[1])
    for module, _, _ in COMMITS.values():
        importlib.import_module(module)  # once, for all children
    importlib.import_module(f"airflow_provider_streams.lake.{told['kind']}.change_applier")
    chance = random.Random(told["seed"])
    for order, step in told["children"]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            if step != RANDOM:
                die_at(told["kind"], step)
            try:
                apply_for_ever(told, order, partial(say, writing))
            finally:
                os._exit(3)
        os.close(writing)
        if step == RANDOM:
            select.select([reading], [], [], 60)  # until it begins
            time.sleep(chance.uniform(0, _LONGEST_SECONDS))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as lines:
            print(json.dumps([os.waitstatus_to_exitcode(status), lines.read().split("\n")[-2:-1]]), flush=True)
        sys.stdin.readline()  # until the table is checked


if __name__ == "__main__":
    main()
