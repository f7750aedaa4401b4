import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window, moment_of_label, parse_length, utc_moment
from tests.unit.model.values import moments, windows

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@given(windows())
def test_json_and_text_round_trips_are_exact(window):
    assert Window.from_json(json.loads(json.dumps(window.to_json()))) == window
    assert Window.parse(str(window)) == window
    assert pickle.loads(pickle.dumps(window)) == window  # noqa: S301 - our own bytes


@given(moments, moments)
def test_only_ends_after_starts_are_windows(start, end):
    if start < end:
        window = Window(start, end)
        assert (window.start, window.end) == (start, end)
        assert window.start.tzinfo is window.end.tzinfo is UTC
    else:
        with pytest.raises(InvalidWindow, match="after it starts"):
            Window(start, end)


@pytest.mark.parametrize("naive", [TEN.replace(tzinfo=None)])
def test_times_without_a_zone_are_refused(naive):
    for bounds in ((naive, TEN + HOUR), (TEN - HOUR, naive)):
        with pytest.raises(InvalidWindow, match="time zone"):
            Window(*bounds)


def test_zones_are_kept_as_utc_and_equal_times_are_equal_windows():
    east = timezone(timedelta(hours=5, minutes=30))
    assert Window(TEN.astimezone(east), (TEN + HOUR).astimezone(east)) == Window(TEN, TEN + HOUR)


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-20T10:00Z", "2026-11-20T10:00/2026-11-20T11:00", "a/b", "2026-11-20T11:00Z/2026-11-20T10:00Z", "/"],
)
def test_other_texts_are_no_windows(text):
    with pytest.raises(InvalidWindow):
        Window.parse(text)


@given(windows(), st.integers(-(2**52), 2**52))
def test_a_whole_millisecond_is_inside_exactly_when_its_time_is(window, ms):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(max(ms, -(2 * 10**12)), 2 * 10**14))
    exact = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert (window.start <= moment < window.end) == (window.start_ms <= exact < window.end_ms)


@given(moments, st.lists(st.integers(1, 10**9), min_size=2, max_size=5))
def test_adjacent_windows_share_one_bound_in_milliseconds_too(start, steps):
    start = min(start, datetime(9990, 1, 1, tzinfo=UTC))
    edges = [start]
    for step in steps:
        edges.append(edges[-1] + timedelta(microseconds=step))
    parts = [Window(*pair) for pair in pairwise(edges)]
    assert all(left.end_ms == right.start_ms for left, right in pairwise(parts))


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_utc_cannot_say_is_no_edge(text):
    with pytest.raises(InvalidWindow, match="years 1 to 9999"):
        Window(datetime.fromisoformat(text), TEN)
    with pytest.raises(InvalidWindow, match="years 1 to 9999"):
        utc_moment(text)


@pytest.mark.parametrize("text", ["soon", "", "2026-11-20T10:00", "2026-13-01T00:00Z"])
def test_a_text_that_is_no_aware_time_is_refused(text):
    with pytest.raises(InvalidWindow):
        utc_moment(text)


@given(st.lists(windows(), max_size=5))
def test_labels_sort_like_their_edges_and_tell_windows_apart(drawn):
    drawn = sorted(set(drawn))
    labels = [window.label for window in drawn]
    assert len(set(labels)) == len(drawn)
    whole = [window.label for window in drawn if not window.start.microsecond and not window.end.microsecond]
    assert whole == sorted(whole)


@given(windows())
def test_a_label_gives_its_edges_back(window):
    start, end = window.label.split("_")
    assert Window(moment_of_label(start), moment_of_label(end)) == window


def test_a_label_names_both_edges():
    assert Window(TEN, TEN + HOUR).label == "20261120T100000Z_20261120T110000Z"
    part = Window(TEN + timedelta(milliseconds=250), TEN + HOUR)
    assert part.label == "20261120T100000.250000Z_20261120T110000Z"


@pytest.mark.parametrize("text", ["", "20261120", "20261120T250000Z", "__HIVE_DEFAULT_PARTITION__"])
def test_what_is_no_label_is_no_moment(text):
    assert moment_of_label(text) is None


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        (" 15m ", timedelta(minutes=15)),
        ("1.5h", timedelta(hours=1.5)),
        ("90d", timedelta(days=90)),
    ],
)
def test_a_length_of_time_is_a_number_and_a_unit(text, length):
    assert parse_length(text) == length


@pytest.mark.parametrize("text", ["", "90", "-1d", "1.2.3h", "1w", "h", "1 h", "9" * 30 + "d"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(InvalidWindow):
        parse_length(text)
