from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.model.coverage import Coverage, WindowState
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.preview import SELECTS, SourceName, backfill_command, preview

HOUR = timedelta(hours=1)
T0 = datetime(2026, 11, 20, tzinfo=UTC)


def window(start: int, length: int = 1) -> Window:
    return Window(T0 + start * HOUR, T0 + (start + length) * HOUR)


def day(pattern: str, rows: int = 100) -> Coverage:
    """Hourly windows: `#` covered, `.` missing, `x` failed, `!` lost, `~` running."""
    names = {"#": "covered", ".": "missing", "x": "failed", "!": "lost", "~": "running"}
    made = [
        WindowState(
            window(hour), names[mark], rows=rows if mark == "#" else 0, bytes=rows * 10 * (mark == "#"), attempts=1
        )
        for hour, mark in enumerate(pattern)
    ]
    return Coverage.of(made, T0, T0 + len(pattern) * HOUR, HOUR)


@pytest.mark.parametrize(("select", "hours"), [("missing", [1, 2, 3]), ("failed", [2]), ("all", [0, 1, 2, 3, 5])])
def test_a_backfill_takes_what_was_asked_for_and_never_a_running_window(select, hours):
    found = preview(day("#.x!~#"), window(0, 6), select, None)
    assert [(one.window.start - T0) / HOUR for one in found.windows] == hours


def test_only_windows_that_lie_wholly_in_the_span_count():
    seen = day("....")
    half = Window(T0 + 0.5 * HOUR, T0 + 2.5 * HOUR)
    assert [one.window for one in preview(seen, half, "missing", None).windows] == [window(1)]


def test_sizes_come_from_the_covered_windows_beside():
    found = preview(day("##..##", rows=70), window(0, 6), "missing", None)
    assert (found.rows, found.bytes) == (140, 1400)


def test_a_neighbour_of_another_length_counts_by_its_share():
    daily = WindowState(window(-24, 24), "covered", rows=2400, bytes=24_000)
    seen = Coverage.of([daily], T0 - 24 * HOUR, T0 + 2 * HOUR, HOUR)
    assert preview(seen, window(0, 2), "missing", None).rows == 200


def test_without_a_covered_window_nobody_knows_the_size():
    found = preview(day("...."), window(0, 4), "missing", None)
    assert (len(found.windows), found.rows, found.bytes) == (4, None, None)


def test_windows_beyond_the_horizon_are_counted_and_not_estimated():
    found = preview(day("...#"), window(0, 4), "missing", T0 + 1.5 * HOUR)
    assert (found.beyond, found.rows) == (2, 100)
    assert found.to_json()["beyond_horizon"] == 2


def test_an_unknown_horizon_is_no_claim_that_all_is_held():
    assert preview(day("..#"), window(0, 3), "missing", None).beyond is None


def test_a_source_key_comes_apart():
    name = SourceName.of("pulsar:prod:persistent://shop/orders/events-partition-3")
    assert (name.system, name.conn_id) == ("pulsar", "prod")
    assert name.name == "persistent://shop/orders/events-partition-3"
    assert name.title == "shop/orders/events-partition-3"


def test_the_command_is_one_line_for_a_shell():
    command = backfill_command("pravega:my conn:scope/stream", "d.t; rm -rf /", window(2, 24), HOUR, "failed")
    assert shlex.split(command) == [
        *("airflow", "streams", "backfill", "pravega", "scope/stream", "--conn-id", "my conn"),
        *("--reader", "d.t; rm -rf /", "--start", "2026-11-20T02:00:00Z", "--end", "2026-11-21T02:00:00Z"),
        *("--window-length", "1h", "--select", "failed"),
    ]
    assert "\n" not in command


@pytest.mark.parametrize(
    ("length", "text"),
    [(HOUR, "1h"), (timedelta(days=1), "1d"), (timedelta(minutes=15), "15m"), (timedelta(seconds=90), "90s")],
)
def test_lengths_are_written_as_people_do(length, text):
    assert f"--window-length {text} " in backfill_command("fake:f:n", "r", window(0), length, "missing")


def test_there_are_three_choices():
    assert SELECTS == ("missing", "failed", "all")
