"""The stack of these tests itself: a process that ends unexpectedly is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.airflow.stack.conftest import AirflowStack

COMPONENT = """#!/bin/sh
echo "the $3 has begun"
exec sleep 60
"""


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """Its components only sleep."""
    python = tmp_path / "python"
    python.write_text(COMPONENT)
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    said: list[str] = []
    stack = AirflowStack(tmp_path, 1, tmp_path / "truth.json", say=said.append)
    yield stack, said
    for process in stack.processes.values():
        process.kill()
        process.wait()


def begun(stack: AirflowStack, times: int) -> bool:
    return Path(stack.home / "scheduler.out").read_text().count("the scheduler has begun") == times


def test_what_ended_by_itself_is_started_again_at_the_next_look_and_said(stack):
    stack, said = stack
    stack.start("scheduler")
    stack.until("it has begun", lambda: begun(stack, 1), 60)
    assert said == []
    first = stack.processes["scheduler"]
    first.kill()
    first.wait()
    stack.until("it has begun again", lambda: begun(stack, 2), 60)
    assert said == ["Airflow's scheduler ended itself (-9), and is started again: ['the scheduler has begun']"]
    assert stack.processes["scheduler"].poll() is None
    stack.kill("scheduler")
    stack.supervise()
    assert (len(said), stack.processes) == (1, {}), "what was killed on purpose stays dead"
