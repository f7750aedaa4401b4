"""Waits for the end of what was launched; if it does not come, the failure shows where everybody stands."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from stream_servers.waiting import wait_until

STACKS = signal.SIGUSR1
"""What `launching.py` answers with the stacks of its threads, into its output."""

_WRITTEN = ("(most recent call first)", "Full thread dump")


def until_ended(child: subprocess.Popen[bytes], output: Path, seconds: float) -> None:
    """Wait for its end; a process that does not end has shown its stacks and its JVM's, and fails the test."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        said = output.read_text()
        stacks = _stacks(child, output)
        pytest.fail(f"after {seconds:g} s, it has not ended\n{said[-3000:]}\n{stacks}")


def _stacks(child: subprocess.Popen[bytes], output: Path) -> str:
    before = output.stat().st_size
    expected = {_WRITTEN[0]}
    os.kill(child.pid, STACKS)
    for one in psutil.Process(child.pid).children(recursive=True):
        with suppress(psutil.Error):
            if one.name() == "java":
                one.send_signal(signal.SIGQUIT)
                expected.add(_WRITTEN[1])

    def written() -> bool:
        return all(text in _after(output, before) for text in expected)

    with suppress(TimeoutError):
        wait_until(written, "the stacks", seconds=10)
    return _after(output, before)[:60_000]


def _after(output: Path, size: int) -> str:
    return output.read_bytes()[size:].decode(errors="replace")
