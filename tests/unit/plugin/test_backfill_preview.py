from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.journal.coverage_rollup import Piece
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.plugin.backfill_preview import around, preview

HOUR = timedelta(hours=1)
T0 = datetime(2026, 11, 20, tzinfo=UTC)
NAMES = {"#": "covered", ".": "missing", "x": "failed", "!": "lost", "~": "running"}


def window(start: int, length: int = 1) -> Window:
    return Window(T0 + start * HOUR, T0 + (start + length) * HOUR)


def day(pattern: str, rows: int = 100) -> list[Piece]:
    """Hourly windows: `#` covered, `.` missing, `x` failed, `!` lost, `~` running."""
    return [
        Piece(
            window(hour),
            NAMES[mark],
            rows=rows * (mark == "#"),
            bytes=rows * 10 * (mark == "#"),
            seconds=3600,
            attempts=int(mark != "."),
        )
        for hour, mark in enumerate(pattern)
    ]


def of(
    pieces: list[Piece], select: str = "missing", horizon: datetime | None = None, nearby: list[Piece] | None = None
):
    return preview(pieces, pieces if nearby is None else nearby, select, horizon)


@pytest.mark.parametrize(
    ("select", "hours"), [("missing", [1, 2]), ("failed", [2]), ("lost", [3]), ("late", []), ("all", [0, 1, 2, 3, 5])]
)
def test_a_backfill_takes_what_was_asked_for_and_never_a_running_window(select, hours):
    found = of(day("#.x!~#"), select)
    assert [(one.window.start - T0) / HOUR for one in found.pieces] == hours


def test_windows_in_one_piece_count_one_by_one():
    many = Piece(window(0, 500), "missing", windows=500, seconds=500 * 3600)
    found = of([many], nearby=[many, *day("##", rows=60)])
    assert found.to_json() == {
        "windows": 500,
        "counts": {"missing": 500},
        "beyond_horizon": None,
        "rows": 30_000,
        "bytes": 300_000,
    }


def test_of_covered_windows_in_one_piece_only_the_late_ones_are_read_for_their_late_rows():
    piece = Piece(window(0, 500), "covered", windows=500, rows=50_000, seconds=500 * 3600, late_rows=9, late=3)
    assert of([piece], "late").to_json()["windows"] == 3


def test_sizes_come_from_the_covered_windows_around():
    found = of(day("##..##", rows=70))
    assert (found.rows, found.bytes) == (140, 1400)


def test_a_neighbor_of_another_length_counts_by_its_share():
    daily = Piece(window(-24, 24), "covered", rows=2400, bytes=24_000, seconds=24 * 3600)
    assert of(day(".."), nearby=[daily]).rows == 200


def test_without_a_covered_window_nobody_knows_the_size():
    found = of(day("...."))
    assert (found.to_json()["windows"], found.rows, found.bytes) == (4, None, None)


def test_windows_beyond_the_horizon_are_counted_and_not_estimated():
    found = of(day("...#"), horizon=T0 + 1.5 * HOUR)
    assert (found.beyond, found.rows) == (2, 100)
    assert found.to_json()["beyond_horizon"] == 2


def test_windows_in_one_piece_are_beyond_the_horizon_by_their_share_of_time():
    assert of([Piece(window(0, 100), "missing", windows=100, seconds=360_000)], horizon=T0 + 25 * HOUR).beyond == 25


def test_an_unknown_horizon_is_no_claim_that_all_is_held():
    assert of(day("..#")).beyond is None


def test_what_lies_around_ends_where_time_does():
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert around(Window(first + HOUR, first + 2 * HOUR)).start == first
    assert around(Window(last - 2 * HOUR, last - HOUR)).end == last
    assert around(window(0)).length == timedelta(days=14, hours=1)
