"""The latest time that a server's clock may show, by the header of one answer."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from airflow_provider_streams.systems.rest.server_date import ServerClock

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_the_clock_is_never_behind_however_long_an_answer_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ServerClock()
    assert clock.latest() is None
    for date in (None, "no date"):
        clock.hear(date, 0.0)
        assert clock.latest() is None
    monkeypatch.setattr(time, "monotonic", lambda: 107.0)
    clock.hear(format_datetime(NOON, usegmt=True), 100.0)  # written at once, almost a second after noon, or just now
    assert clock.latest() == NOON + timedelta(seconds=8)
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    assert clock.latest() == NOON + timedelta(seconds=11)
