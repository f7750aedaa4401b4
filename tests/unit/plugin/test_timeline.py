"""What a span of a reader looks like, on a journal of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.reader_overview import overviews, schedule_of
from airflow_provider_streams.model.window.coverage import STATES
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.plugin.timeline import (
    TimelineRequest,
    columns,
    grain_of,
    next_due,
    schedule_json,
    timeline,
)
from airflow_provider_streams.plugin.window_edges import cells_of, snap
from tests.airflow.ui.story import Chapter, write

HOUR = timedelta(hours=1)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEY = "fake:fake_default:numbers"


@pytest.fixture
def journal(tmp_path):
    """`journal(chapter, start, end, ..)` writes a reader's past, and gives the page's answer for a span."""
    url = f"sqlite:///{tmp_path / 'journal.db'}"

    def told(
        chapter: Chapter | None, start: datetime, end: datetime, *, width: int = 1000, now: datetime = NOW, **more
    ):
        if chapter is not None:
            write(url, [chapter], NOW)
        database = Database(url)
        with database.reading() as connection:
            (one,) = overviews(connection)
            one = one.of_dags(more["dags"]) if "dags" in more else one
            asked = TimelineRequest(Window(start, end), width, now, whole=more.get("whole", False))
            found = timeline(connection, one, schedule_of(connection, one), asked)
        database.close()
        return found

    return told


def at(hours: float) -> datetime:
    return NOW + hours * HOUR


def states(seen) -> list[tuple[float, str]]:
    return [((piece.window.start - NOW) / HOUR, piece.state) for piece in seen.pieces]


def test_blank_time_between_and_after_windows_is_missing_up_to_now(journal):
    seen = journal(Chapter(KEY, "d.t", 4, missing=frozenset({3})), at(-24), at(24), now=at(2.5))
    expected = {-4: "covered", -3: "missing", -2: "covered", -1: "covered", 0: "missing", 1: "missing"}
    assert dict(states(seen)) == expected, "nothing before the first window, and nothing that has not ended"
    assert seen.is_exact


def test_a_window_planned_ahead_is_not_missing_yet(journal):
    seen = journal(Chapter(KEY, "d.t", 2, planned=frozenset({1})), at(-24), at(24), now=at(-0.5))
    assert states(seen) == [(-2, "covered")]


def test_of_an_older_reader_the_blank_start_of_the_span_is_missing(journal):
    seen = journal(Chapter(KEY, "d.t", 10, missing=frozenset({5, 4})), at(-5), at(-2))
    assert states(seen) == [(-5, "missing"), (-4, "missing"), (-3, "covered")]


def test_windows_that_share_time_with_earlier_ones_are_marked(journal):
    seen = journal(Chapter(KEY, "d.t", 4, shifted=frozenset({2})), at(-24), NOW)
    marked = [((piece.window.start - NOW) / HOUR, piece.overlaps) for piece in seen.pieces]
    assert (-2.5, 1) in marked
    assert sum(overlaps for _, overlaps in marked) == 1


def test_unproven_windows_are_covered_and_marked(journal):
    seen = journal(Chapter(KEY, "d.t", 4, unproven=frozenset({1, 2})), at(-24), NOW)
    assert [(piece.state, piece.unproven) for piece in seen.pieces] == [("covered", 0)] * 2 + [("covered", 1)] * 2


def test_a_span_takes_whole_windows_if_asked(journal):
    seen = journal(Chapter(KEY, "d.t", 6), at(-4.5), at(-1.5), whole=True)
    assert states(seen) == [(-4, "covered"), (-3, "covered")]


@pytest.fixture
def many(journal):
    """A hundred days of minutes with a failed one, a lost one and a gap of ten; the first answer."""
    chapter = Chapter(
        KEY,
        "d.t",
        20_000,
        timedelta(minutes=1),
        failed=frozenset({700}),
        lost=frozenset({9000}),
        missing=frozenset(range(400, 410)),
        unproven=frozenset({5, 6}),
    )
    return lambda width: journal(chapter if width == 500 else None, NOW - timedelta(minutes=20_000), NOW, width=width)


@pytest.mark.slow
def test_many_windows_are_summed_up_for_the_pixels_and_none_is_lost(many):
    for width in (500, 2000):
        seen = many(width)
        assert not seen.is_exact
        assert len(seen.pieces) <= width, "a piece takes two pixels; few begin in one grain"
        counts = {state: sum(piece.windows for piece in seen.pieces if piece.state == state) for state in STATES}
        assert counts == {"covered": 19_988, "running": 0, "failed": 1, "lost": 1, "missing": 10}
        assert sum(piece.unproven for piece in seen.pieces) == 2
        body = columns(seen, Window(NOW - timedelta(minutes=20_000), NOW))
        assert sum(body["windows"]) == 20_000


def test_pieces_are_wide_enough_to_be_seen_and_stay_where_they_are():
    assert [grain_of(timedelta(days=1), 1000), grain_of(timedelta(days=30), 1000)] == [300, 7200]
    assert grain_of(timedelta(days=3_000_000), 50) <= 86_400 * 2**21


def test_columns_are_parallel_and_say_what_the_windows_say(journal):
    seen = journal(Chapter(KEY, "d.t", 3, failed=frozenset({2})), at(-3), NOW)
    body = columns(seen, Window(at(-3), NOW))
    parallel = ("start", "length", "state", "windows", "rows", "bytes", "late", "attempts", "planned", "cause")
    assert {len(body[name]) for name in (*parallel, "overlaps", "unproven", "fingerprint")} == {3}
    assert (body["zero"], body["start"], body["length"]) == (at(-3).timestamp(), [0, 3600, 7200], [3600] * 3)
    assert [body["states"][index] for index in body["state"]] == ["covered", "failed", "covered"]
    assert body["causes"][body["cause"][1]].startswith("ReadStalled: ")
    assert (body["attempts"][1], len(body["fingerprint"][1])) == (2, 12)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("1h", "2026-11-20T10:00Z", "2026-11-20T12:00Z"),
        ("1h +15m", "2026-11-20T10:15Z", "2026-11-20T12:15Z"),
        ("1d Europe/Berlin", "2026-11-19T23:00Z", "2026-11-20T23:00Z"),
        ("1mo Europe/Berlin", "2026-10-31T23:00Z", "2026-11-30T23:00Z"),
        ("cron 0 6 * * * UTC", "2026-11-20T06:00Z", "2026-11-21T06:00Z"),
    ],
)
def test_a_drag_is_widened_to_whole_cells(text, start, end):
    dragged = Window.parse("2026-11-20T10:56:00.100011Z/2026-11-20T11:17:03Z")
    assert snap(parse_schedule(text), dragged) == Window.parse(f"{start}/{end}")
    assert snap(None, dragged) == dragged


def test_a_browser_can_snap_as_the_server_does():
    assert schedule_json(parse_schedule("1h +15m"), None) == {"every": 3600.0, "shift": 900.0}
    days = parse_schedule("1d Europe/Berlin")
    stretch = days.around(Window.parse("2026-10-24T10:00Z/2026-10-26T10:00Z"))
    found = schedule_json(days, cells_of(days, stretch))["edges"]
    edges = [datetime.fromtimestamp(edge, UTC).isoformat()[:13] for edge in found]
    assert edges == ["2026-10-23T22", "2026-10-24T22", "2026-10-25T23", "2026-10-26T23", "2026-10-27T23"]
    assert schedule_json(None, None) is None


def test_the_next_window_is_due_at_its_end():
    assert next_due(parse_schedule("1h"), at(0.2)) == at(1).timestamp()
    assert next_due(None, NOW) is None


@pytest.mark.parametrize("text", ["1h", "1d Europe/Berlin", "1mo", "cron 0 6 * * * UTC"])
def test_the_ends_of_time_are_no_errors(journal, text):
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    window_schedule = parse_schedule(text)
    early, late = Window(first, first + HOUR), Window(last - HOUR, last)
    assert snap(window_schedule, early).start == first
    assert snap(window_schedule, late) == late
    assert next_due(window_schedule, last) is None
    assert journal(Chapter(KEY, "d.t", 2), early.start, early.end).pieces == ()
    assert journal(None, late.start, late.end).pieces == ()
    assert sum(piece.windows for piece in journal(None, first, last).pieces) == 2
