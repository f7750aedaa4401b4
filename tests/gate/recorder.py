"""`python -m tests.gate.recorder ..`: run pytest, and write down what became of each test.

One line of JSON for each test that was collected, failed, passed or ended, in the file that STREAMS_TEST_RECORD names;
and a last one when pytest itself has ended.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TextIO

import pytest

from tests.gate.record import BROKEN

RECORD = "STREAMS_TEST_RECORD"
"""The environment variable that names the file."""

_LONGEST = 300


class Recorder:
    """A plugin of pytest.

    Args:
        file: where the lines go. Tests cannot reach it, and processes that they fork write nothing.
    """

    def __init__(self, file: TextIO) -> None:
        self._file, self._process = file, os.getpid()
        self._failures = 0

    def write(self, **line: object) -> None:
        """Add a line."""
        if os.getpid() == self._process:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.write(collected=item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failures += 1
            self.write(broken=report.nodeid, error=_first_line(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failures += 1
            # A fixture of many tests ends with the last of them, which alone would not repeat what another one did. A
            # counterexample that Hypothesis could repeat stays one, whatever is drawn the next time.
            is_counterexample = "hypothesis" in report.keywords and "Flaky" not in report.longreprtext
            is_final = report.when == "teardown" or is_counterexample
            self.write(failed=report.nodeid, error=_first_line(report.longreprtext), final=is_final)
        elif report.skipped:
            self.write(skipped=report.nodeid)
        elif report.when == "call" and not hasattr(report, "wasxfail"):
            self.write(passed=report.nodeid)
        if report.when == "teardown":
            self.write(ended=report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.write(failures_of_pytest=session.testsfailed, failures_seen=self._failures)


def _first_line(text: str) -> str:
    """The first line of the error itself: pytest marks its lines with an E."""
    lines = text.splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    found = next(filter(None, errors or lines), "")
    return "".join(letter if letter.isprintable() else "?" for letter in found[:_LONGEST])


def main(arguments: list[str]) -> int:
    """Pytest's exit code, or `BROKEN`."""
    with Path(os.environ.pop(RECORD)).open("a") as file:
        recorder = Recorder(file)
        try:
            code = int(pytest.main(arguments, [recorder]))
        except Exception:  # noqa: BLE001 - whatever pytest failed with at its end
            traceback.print_exc()
            code = BROKEN
        recorder.write(finished=code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
