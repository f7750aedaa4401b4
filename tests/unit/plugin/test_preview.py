from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from airflow_provider_streams.cli import BACKFILL
from airflow_provider_streams.cli_reading import source_of_args
from airflow_provider_streams.cli_windows import parse_duration
from airflow_provider_streams.model.coverage import Coverage, RunRef, WindowState
from airflow_provider_streams.model.source import PravegaSource, PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.preview import SourceName, backfill_command, preview
from airflow_provider_streams.testing.fake import FakeSource

HOUR = timedelta(hours=1)
T0 = datetime(2026, 11, 20, tzinfo=UTC)


def window(start: int, length: int = 1) -> Window:
    return Window(T0 + start * HOUR, T0 + (start + length) * HOUR)


def day(pattern: str, rows: int = 100) -> Coverage:
    """Hourly windows: `#` covered, `.` missing, `x` failed, `!` lost, `~` running."""
    names = {"#": "covered", ".": "missing", "x": "failed", "!": "lost", "~": "running"}
    made = [
        WindowState(
            window(hour),
            names[mark],
            rows=rows * (mark == "#"),
            bytes=rows * 10 * (mark == "#"),
            run=None if mark == "." else RunRef(hour, "dag", "run", "task", 1),
        )
        for hour, mark in enumerate(pattern)
    ]
    return Coverage.of(made, T0, T0 + len(pattern) * HOUR, HOUR)


@pytest.mark.parametrize(
    ("select", "hours"), [("missing", [1, 2]), ("failed", [2]), ("lost", [3]), ("all", [0, 1, 2, 3, 5])]
)
def test_a_backfill_takes_what_was_asked_for_and_never_a_running_window(select, hours):
    found = preview(day("#.x!~#"), window(0, 6), select, None)
    assert [(one.window.start - T0) / HOUR for one in found.windows] == hours


def test_only_windows_that_lie_wholly_in_the_span_count():
    half = Window(T0 + 0.5 * HOUR, T0 + 2.5 * HOUR)
    assert [one.window for one in preview(day("...."), half, "missing", None).windows] == [window(1)]


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


def arguments(command: str) -> Namespace:
    """What the command line makes of a command that a shell hands over."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["airflow", "streams", "backfill"]
    parser = ArgumentParser()
    for arg in BACKFILL.args:
        arg.add_to_parser(parser)
    return parser.parse_args(words[3:])


@pytest.mark.parametrize(
    "source",
    [
        PulsarSource("shop/orders/events", conn_id="prod"),
        PulsarSource(["a", "b"]),
        PulsarSource(pattern="persistent://shop/orders/.*"),
        PulsarSource("shop/orders/a+b"),
        PravegaSource("scope/stream"),
        PravegaSource("scope/stream", "prod", event_time_unit="us"),
    ],
)
def test_the_command_line_takes_the_command_and_means_the_same_source(source):
    args = arguments(backfill_command(source, "d.t; rm -rf /", window(2, 24), HOUR, "failed"))
    assert source_of_args(args) == source
    assert (args.reader, args.select, args.dry_run) == ("d.t; rm -rf /", "failed", True)
    assert (args.start, args.end) == ("2026-11-20T02:00:00Z", "2026-11-21T02:00:00Z")
    assert parse_duration(args.window_length) == HOUR


def test_the_command_reads_by_the_basis_of_the_plans_before():
    made = partial(backfill_command, PulsarSource("a/b/c", conn_id="prod"), "r", window(0), HOUR, "missing")
    assert arguments(made(basis="append")).basis == "append"
    assert arguments(made(basis="publish")).basis is None
    assert made(basis="chained") is None


def test_a_lost_window_is_read_only_by_accepting_the_loss():
    made = partial(backfill_command, FakeSource("n", "f"), "r", window(0), HOUR)
    assert arguments(made("lost")).on_loss == "record"
    assert arguments(made("missing")).on_loss == "fail"


@pytest.mark.parametrize(
    ("length", "text"),
    [(HOUR, "1h"), (timedelta(days=1), "1d"), (timedelta(minutes=15), "15m"), (timedelta(seconds=90), "90s")],
)
def test_lengths_are_written_as_people_do(length, text):
    assert f"--window-length {text} " in backfill_command(FakeSource("n", "f"), "r", window(0), length, "missing")
    assert parse_duration(text) == length
