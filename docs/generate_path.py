"""Writes `fragments/path.md`, the path of one window through the code: `python docs/generate_path.py`.

A task reads a small window of the fake system into a Parquet folder, and a profiler notes which calls lead to the steps
of the work. A test compares the fragment with the code.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any
from unittest.mock import patch

PACKAGE = Path(__file__).resolve().parent.parent / "airflow_provider_streams"
FRAGMENT = Path(__file__).parent / "fragments" / "path.md"

Stop = tuple[str, str]
"""A module, and the function by which the path enters it."""

STEPS = {
    "decide": "may the window land in this table?",
    "FakeSystem.plan": "resolve the window to cuts, ranges and splits",
    "PinnedPlans.pin": "pin the plan",
    "WindowRuns.start_run": "begin a run",
    "FakeSystem.read": "read a split from the socket",
    "write_table": "write files",
    "compare": "compare the receipt with the plan",
    "ParquetWriter.commit": "commit the window",
    "WindowRuns.finish_run": "the window is covered",
    "Announcement.send": "send asset events",
}
SHOWN = {"testing/fake/system.py": "systems/<system>/", "lake/parquet/writer.py": "lake/<format>/"}
"""The fake system and the Parquet folder stand for all systems and formats."""


def fragment() -> str:
    """The path as a tree, and how deep it is."""
    paths = _trace()
    lines = [
        f"{'  ' * depth}{place:<{50 - 2 * depth}} {name:<27} {what}".rstrip()
        for depth, place, name, what in _tree(paths)
    ]
    return "\n".join(["```text", *lines, "```", "", f"From the task to the socket are {stops(paths)} stops.", ""])


def stops(paths: dict[str, list[Stop]]) -> int:
    """How many modules the longest path goes through."""
    return max(map(len, paths.values()))


def _tree(paths: dict[str, list[Stop]]) -> Iterator[tuple[int, str, str, str]]:
    """Each stop once, below the one that calls it."""
    last: list[Stop] = []
    for step, path in paths.items():
        same = next(
            (depth for depth, pair in enumerate(zip(last, path, strict=False)) if pair[0] != pair[1]), len(last)
        )
        for depth, (module, name) in enumerate(path[same:], same):
            is_step = depth == len(path) - 1
            shown = name.replace("FakeSystem.", "").replace("ParquetWriter.", "")
            yield depth, SHOWN.get(module, module), shown, STEPS[step] if is_step else ""
        last = path


def _trace() -> dict[str, list[Stop]]:
    """The path to each step, in the order in which the steps are first reached."""
    found: dict[str, list[Stop]] = {}
    begun: dict[str, list[Stop]] = defaultdict(list)

    def note(frame: FrameType, event: str, _arg: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        name = frame.f_code.co_qualname
        if name == "read_table":
            begun["spark/job/plan_reading.py"] = _calls(frame)
        if name in STEPS and name not in found:
            calls = _calls(frame)
            before = begun.get(calls[0][0], [])  # a thread goes on where it was started
            found[name] = _entries([*before, *calls])

    with tempfile.TemporaryDirectory() as folder, _connections(folder):
        run = _task(folder)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as `sys.setprofile`
    return found


def _calls(frame: FrameType | None) -> list[Stop]:
    """The calls of this package that lead to a frame."""
    calls: list[Stop] = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            calls.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))
        frame = frame.f_back
    return calls[::-1]


def _entries(calls: list[Stop]) -> list[Stop]:
    """The calls from one module into another, and the last call."""
    entries = [one for before, one in zip([("", ""), *calls], calls, strict=False) if before[0] != one[0]]
    return [*entries[:-1], calls[-1]]


@contextmanager
def _connections(folder: str) -> Iterator[None]:
    connections = {
        "FAKE_DEFAULT": {"conn_type": "fake", "extra": {"events": "60"}},
        "STREAMS_JOURNAL": {"conn_type": "sqlite", "host": f"{folder}/journal.db"},
    }
    variables = {f"AIRFLOW_CONN_{name}": json.dumps(value) for name, value in connections.items()}
    home = os.environ.get("AIRFLOW_HOME", folder)
    with patch.dict(os.environ, {**variables, "AIRFLOW_HOME": home, "_AIRFLOW_PROCESS_CONTEXT": "server"}):
        yield


def _task(folder: str) -> Any:
    """A task that reads a small window, and what runs it."""
    from airflow.sdk import DAG  # noqa: PLC0415 - after its home is known

    from airflow_provider_streams import ParquetSink  # noqa: PLC0415
    from airflow_provider_streams.operators.read import ReadWindowOperator  # noqa: PLC0415
    from airflow_provider_streams.systems.registry import register  # noqa: PLC0415
    from airflow_provider_streams.testing.fake import FakeSource  # noqa: PLC0415

    register("fake", "airflow_provider_streams.testing.fake.declaration:Fake")
    task = ReadWindowOperator(
        task_id="read",
        dag=DAG("path", schedule=None),
        source=FakeSource("numbers"),
        sink=ParquetSink(f"{folder}/lake"),
        window="2026-11-20T10:00Z/2026-11-20T10:01Z",
    )
    times = dict.fromkeys(("partition_key", "partition_date", "data_interval_start", "data_interval_end"))
    context: Any = {
        "ti": SimpleNamespace(dag_id="path", run_id="run", task_id="read", try_number=1, map_index=-1),
        "task": task,
        "dag_run": SimpleNamespace(run_type="manual", **times),
        "dag": None,
        "outlet_events": defaultdict(lambda: SimpleNamespace(extra={})),
    }
    return lambda: task.execute(context)


if __name__ == "__main__":
    FRAGMENT.write_text(fragment())
    sys.stdout.write(f"{FRAGMENT} is written\n")
