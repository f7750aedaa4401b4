"""A pytest plugin: one line of JSON for each test that was collected, and for each that ended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

RECORD = "STREAMS_TEST_RECORD"
"""The environment variable that names the file."""


def _write(**line: object) -> None:
    with Path(os.environ[RECORD]).open("a") as record:
        record.write(json.dumps(line) + "\n")


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        _write(collected=item.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(broken=report.nodeid, error=_first_line(report.longreprtext))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _write(failed=report.nodeid, error=_first_line(report.longreprtext))
    if report.when == "teardown":
        _write(ended=report.nodeid)


def _first_line(text: str) -> str:
    """The first line of the error itself: pytest marks its lines with an E."""
    lines = text.splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return next(filter(None, errors or lines), "")
